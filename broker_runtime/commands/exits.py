"""Decides what the exit code of a process of the runtime means; the same numbers as of `panda`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    """An expectation or a process failed."""
    REFUSED = 2
    """The command line or a message was refused."""
    UNREACHABLE = 3
    """Nobody answered."""
    BUG = 70
    """Ours, never the user's."""
    INTERRUPTED = 130


class Refusal(Exception):
    """What ends a command: its exit code, and what to say on stderr."""

    def __init__(self, message: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(message)
        self.code = code
