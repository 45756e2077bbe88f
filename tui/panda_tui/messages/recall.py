"""Decides what the arrow keys bring back: earlier lines, and the one that was being written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LINES_MAX: Final = 1000


@dataclass
class Recall:
    lines: list[str] = field(default_factory=list)
    _at: int = 0
    _draft: str = ""

    def add(self, line: str) -> None:
        if line.strip() and (not self.lines or self.lines[-1] != line):
            self.lines.append(line)
            del self.lines[:-LINES_MAX]
        self._at = len(self.lines)
        self._draft = ""

    def back(self, current: str) -> str:
        """The line before; the oldest stays."""
        if self._at == len(self.lines):
            self._draft = current
        self._at = max(0, self._at - 1)
        return self.lines[self._at] if self.lines else current

    def forward(self, current: str) -> str:
        if self._at >= len(self.lines):
            return current
        self._at += 1
        return self.lines[self._at] if self._at < len(self.lines) else self._draft


@dataclass
class Batch:
    """The lines of a file, one after the other; comments and empty lines are passed over."""

    name: str
    lines: list[tuple[int, str]]
    total: int
    _at: int = 0

    @property
    def next(self) -> tuple[int, str] | None:
        """Its number in the file, from 1, and the line."""
        return self.lines[self._at] if self._at < len(self.lines) else None

    def step(self) -> None:
        self._at += 1

    def caption(self) -> str:
        upcoming = self.next
        if upcoming is None:
            return f"{self.name} is done"
        return f"{self.name}, line {upcoming[0]} of {self.total}"


def batch_of(name: str, text: str) -> Batch:
    from panda_tui.messages.words import is_comment

    lines = text.splitlines()
    return Batch(name, [(i, line) for i, line in enumerate(lines, 1) if not is_comment(line)], len(lines))
