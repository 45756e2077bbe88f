"""Decides which runs are meant: by id, by a part of it, by several of these, or by a pattern over ids."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from panda.experiment.folder import RunFolder, RunRefused


def runs_of(runs: Path, wanted: str) -> list[RunFolder]:
    """The runs that a comma list of names, folders and patterns stands for; each once."""
    found: dict[str, RunFolder] = {}
    names = [name.strip() for name in wanted.split(",")]
    if not all(names):
        raise RunRefused(f"{wanted!r} names no run: say an id, a part of one, ids with commas, or a pattern")
    for name in names:
        for folder in _fitting(runs, name):
            found.setdefault(folder.id, folder)
    return list(found.values())


def _fitting(runs: Path, name: str) -> list[RunFolder]:
    if not any(letter in name for letter in "*?["):
        return [RunFolder.find(runs, name)]
    known = RunFolder.all(runs)
    fitting = [run for run in known if fnmatch.fnmatchcase(run.id, name)]
    if not fitting:
        newest = ", ".join(run.id for run in known[-5:]) or "none at all"
        raise RunRefused(f"no run in {runs}/ fits the pattern {name!r}; the newest are {newest}")
    return fitting
