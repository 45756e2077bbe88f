"""The ways in which an analysis does not come about, each with the words for it."""

from __future__ import annotations

from pathlib import Path


class AnalysisRefused(Exception):
    """What was asked for, or what there is to do it with, does not allow it; says what would help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.message = message
        self.hint = hint


class AnalysisFailed(Exception):
    """The analysis broke off; with its last words and where all of them are."""

    def __init__(self, message: str, last: tuple[str, ...] = (), log: Path | None = None) -> None:
        super().__init__(message)
        self.last = last
        self.log = log


class AnalysisBroken(AnalysisFailed):
    """It broke off by a bug of ours."""
