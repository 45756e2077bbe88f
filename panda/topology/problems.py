"""Decides how what is wrong with a topology is told: where, what, and what would fix it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from panda.topology.model import Place, Topology

LINE_SHOWN_MAX_CHARACTERS: Final = 160
PROBLEMS_MAX: Final = 100
"""As many are told; the rest are counted."""
_WORD_SHOWN_MAX_CHARACTERS: Final = 60


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    place: Place
    severity: Severity
    message: str
    hint: str = ""
    line_text: str = ""

    @property
    def refuses(self) -> bool:
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        """`path:line:column: error: message`, the line with a caret under the place, and the hint."""
        lines = [_flat(f"{self.place}: {self.severity}: {self.message}")]
        if self.line_text.strip():
            lines += _pointed(self.line_text, self.place.column)
        if self.hint:
            lines.append(_flat(f"  hint: {self.hint}"))
        return "\n".join(lines)

    def as_data(self) -> dict[str, object]:
        return {
            "path": self.place.path,
            "line": self.place.line,
            "column": self.place.column,
            "severity": str(self.severity),
            "message": self.message,
            "hint": self.hint,
            "text": self.line_text,
        }


class TopologyRefused(Exception):
    """A topology with errors, and all that was found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, if it says anything at all, and what is wrong with it.

    There may be a topology though there are errors, to show what was understood: ask `refused`.
    """

    topology: Topology | None
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.refuses)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if not problem.refuses)

    @property
    def refused(self) -> bool:
        return self.topology is None or bool(self.errors)

    def accepted(self) -> Topology:
        """The topology; TopologyRefused when there are errors."""
        if self.topology is None or self.errors:
            raise TopologyRefused(self.problems)
        return self.topology


def error(place: Place, message: str, hint: str = "") -> Problem:
    return Problem(place, Severity.ERROR, message, hint)


def warning(place: Place, message: str, hint: str = "") -> Problem:
    return Problem(place, Severity.WARNING, message, hint)


def shown(word: str) -> str:
    """A word of the user's in a message: short, and without anything that a terminal would obey."""
    if len(word) > _WORD_SHOWN_MAX_CHARACTERS:
        word = word[:_WORD_SHOWN_MAX_CHARACTERS] + "…"
    return visible(word) or "''"


def visible(text: str) -> str:
    """A text of which a terminal shows every character and obeys none."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _pointed(line: str, column: int) -> list[str]:
    """The line, cut around the column if it is long, and a caret."""
    at = max(0, min(column - 1, len(line)))
    start = max(0, at - LINE_SHOWN_MAX_CHARACTERS * 2 // 3) if len(line) > LINE_SHOWN_MAX_CHARACTERS else 0
    end = start + LINE_SHOWN_MAX_CHARACTERS
    before = ("…" if start else "") + _flat(line[start:at])
    after = _flat(line[at:end]) + ("…" if end < len(line) else "")
    return [f"  {before}{after}", "  " + " " * _width(before) + "^"]


def _flat(text: str) -> str:
    return "".join(" " if character == "\t" else _visible(character) for character in text)


def _width(text: str) -> int:
    """Columns of a terminal that the text takes."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
