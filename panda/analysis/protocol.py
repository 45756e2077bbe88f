"""Decides how what the analysis says is read: progress, its one answer, its rows; trusts none of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from panda.analysis.refusals import AnalysisRefused

MARK: Final = b"PANDA-SPARK "
DONE: Final = 0
EXPECTATION_FAILED: Final = 1
REFUSED: Final = 2
BUG: Final = 70
STAGE_LENGTH_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str
    done: int | None = None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    data: dict[str, Any]
    met: bool = True  # whether what was expected of the figures holds


def progress_of(line: bytes) -> Progress | None:
    """What a line of stderr says about the work; None if it is something else."""
    if not line.startswith(MARK):
        return None
    said = _object(line[len(MARK) :])
    if said is None or not isinstance(said.get("stage"), str):
        return None
    return Progress(
        printable(said["stage"])[:STAGE_LENGTH_MAX], _count(said.get("done")), _count(said.get("of"))
    )


def answer_of(code: int, out: bytes) -> Answer | None:
    """What it answered; None if it broke off without an answer. AnalysisRefused when it says no."""
    said = _object(out)
    if said is not None and code == REFUSED and isinstance(said.get("error"), Mapping):
        error = said["error"]
        raise AnalysisRefused(
            printable(str(error.get("message", ""))), printable(str(error.get("hint") or ""))
        )
    if said is None or code not in (DONE, EXPECTATION_FAILED):
        return None
    return Answer(said, met=code == DONE)


def row_of(line: bytes) -> dict[str, Any] | None:
    """One line of those that come while a run is followed."""
    return _object(line)


def printable(text: str) -> str:
    """Nothing in it can steer the terminal; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
