"""Decides how refused text is reported: where, what was expected, and what would fix it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a text. Line and column count from 1."""

    line: int
    column: int
    message: str
    hint: str = ""
    source_line: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: {self.message}"
        return f"{where} ({self.hint})" if self.hint else where

    def pointing(self) -> str:
        """The message with the source line and a caret under the place."""
        if not self.source_line:
            return str(self)
        caret = " " * (self.column - 1) + "^"
        return f"{self}\n  {self.source_line}\n  {caret}"


class LanguageError(ValueError):
    """A text that is not of the language, with every problem that was found."""

    def __init__(self, problems: list[Problem]) -> None:
        assert problems
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems
