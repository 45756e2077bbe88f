"""Decides how a text becomes a topology, or a list of what is wrong; alone in this room it opens files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from panda.topology.assembly import assemble
from panda.topology.lines import read_lines
from panda.topology.model import Place, Topology
from panda.topology.problems import Problem, Reading, error

TEXT_MAX_CHARACTERS: Final = 8_000_000


def read_topology(text: str, path: str, variables: Mapping[str, object] | None = None) -> Reading:
    """Read text or YAML, by the suffix of `path`; all problems at once."""
    if len(text) > TEXT_MAX_CHARACTERS:
        return Reading(None, (error(Place(path), f"it has more than {TEXT_MAX_CHARACTERS} characters"),))
    rows = text.split("\n")
    lines = read_lines((Place(path, number, 1), row.removesuffix("\r")) for number, row in enumerate(rows, 1))
    topology = assemble(PurePath(path).stem, text, lines.steps, lines.unread)
    return _told(topology, lines.problems, rows)


def _told(topology: Topology | None, problems: Iterable[Problem], rows: Sequence[str]) -> Reading:
    """In order of place, each with its line."""
    ordered = sorted(problems, key=lambda each: (each.place.line, each.place.column))
    shown = tuple(
        replace(each, line_text=rows[each.place.line - 1] if 0 < each.place.line <= len(rows) else "")
        for each in dict.fromkeys(ordered)
    )
    return Reading(topology, shown)
