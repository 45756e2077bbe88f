"""Decides how a refused source of hosts is reported: every problem, each with its place and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PROBLEMS_MAX = 50
SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse. Line and column count from 1; 0 means that there is no such place."""

    message: str
    hint: str = ""
    path: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        place = ":".join([self.path or "line", *numbers]) if self.path or numbers else ""
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class SourceRefused(ValueError):
    """A source of hosts that cannot be used, or that does not know a host."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        assert problems
        self.problems = tuple(problems[:PROBLEMS_MAX])
        super().__init__("; ".join(map(str, self.problems)))


class Findings:
    """Collects the problems of one text, so that all of them are reported at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._problems: list[Problem] = []

    def add(self, message: str, hint: str = "", line: int = 0, column: int = 0) -> None:
        self._problems.append(Problem(message, hint, self.path, line, column))
        if len(self._problems) >= PROBLEMS_MAX:
            self.check()

    def check(self) -> None:
        """Refuse if there is anything to refuse."""
        if self._problems:
            raise SourceRefused(self._problems)


def shown(text: str) -> str:
    """A piece of the input on one line, safe to print whatever is in it."""
    cut = text if len(text) <= SHOWN_LENGTH_MAX else text[: SHOWN_LENGTH_MAX - 1] + "…"
    return repr(cut)
