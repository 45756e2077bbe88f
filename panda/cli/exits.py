"""Decides what the exit code of `panda` means."""

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    """An expectation or a process failed."""
    REFUSED = 2
    """The command line or the topology was refused."""
    UNREACHABLE = 3
    """A host did not answer."""
    GATE_NOT_MET = 4
    """The first phase ended before every broker and link was up."""
    DETACHED = 5
    """The run goes on without this controller."""
    LOCKED = 6
    """Another controller holds the run."""
    BUG = 70
    """Ours, never the user's."""
    INTERRUPTED = 130
