"""Decides what the list of runs says of each; reads their records, and again only when they grew."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panda.experiment.folder import RunFolder, RunRefused


@dataclass(frozen=True, slots=True)
class RunRow:
    id: str
    name: str
    state: str
    began: float  # by our clock
    hosts: int
    processes: int
    verdict: str = ""
    over: bool = False


@dataclass(slots=True)
class Listing:
    """The runs of a folder, the newest first. Called from one thread at a time."""

    runs: Path
    _known: dict[str, tuple[object, RunRow]] = field(default_factory=dict)

    def rows(self) -> list[RunRow]:
        folders = RunFolder.all(self.runs)
        found = []
        for folder in reversed(folders):
            sign = (*_sizes(folder), folder.holder)
            known = self._known.get(folder.id)
            if known is None or known[0] != sign:
                known = self._known[folder.id] = (sign, _row(folder))
            found.append(known[1])
        for gone in self._known.keys() - {folder.id for folder in folders}:
            del self._known[gone]
        return found


def _sizes(folder: RunFolder) -> tuple[object, ...]:
    found: list[object] = []
    for name in ("journal.jsonl", "plan.json", "analysis.json"):
        try:
            there = (folder.path / name).stat()
            found.append((there.st_size, there.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def _row(folder: RunFolder) -> RunRow:
    try:
        plan = folder.read_plan()
    except RunRefused:
        return RunRow(folder.id, "", "cannot be read", _began(folder), 0, 0)
    state, over = state_in_record(folder, {host.name for host in plan.hosts})
    return RunRow(
        folder.id,
        plan.name,
        state,
        _began(folder),
        len(plan.hosts),
        len(plan.processes),
        verdict_of_run(folder),
        over,
    )


def state_in_record(folder: RunFolder, hosts: set[str]) -> tuple[str, bool]:
    """As far as the record says; and whether nothing of the run is left anywhere."""
    went, finish, unreached, cleaned = False, "", False, set()
    for entry in folder.journal():
        kind = entry.get("kind")
        went = went or kind == "go"
        if kind == "finish":
            finish = str(entry.get("result"))
        elif kind == "unreached":
            unreached = True
        elif kind == "closed" and entry.get("cleaned"):
            cleaned.add(str(entry["host"]))
    if folder.held:
        return "steered", False
    if unreached:
        return "unreached", True
    if cleaned >= hosts:
        return (finish if finish not in ("running", "") else "stopped"), True
    if cleaned:
        return "partly stopped", False
    return ("running" if went else finish or "not begun"), False


def verdict_of_run(folder: RunFolder) -> str:
    """What the analysis said of it, if there was one."""
    from panda.analysis.expectations import verdict_of

    kept = analysis_in(folder)
    summary = kept.get("summary")
    return verdict_of(summary) if isinstance(summary, Mapping) else ""


def analysis_in(folder: RunFolder) -> Mapping[str, Any]:
    try:
        kept = json.loads((folder.path / "analysis.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _began(folder: RunFolder) -> float:
    """From its id, which begins with it."""
    try:
        return time.mktime(time.strptime(folder.id[:15], "%Y%m%d-%H%M%S"))
    except ValueError:
        try:
            return folder.path.stat().st_mtime
        except OSError:
            return time.time()
