"""Decides what a person is asked before something is done that matters, and what the journal says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from panda.experiment.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that changes a run: asked about first, then written to its journal, then done in a worker.

    `act` runs in the console's loop and must not block it: what blocks belongs into `asyncio.to_thread`. It
    gets whether to take the run over from another controller, and returns what is to be told when it is done.
    """

    title: str  # "Pause broker Alice"
    means: str  # what will happen, in full sentences
    act: Callable[[bool], Awaitable[str]]
    record: Mapping[str, object] = field(default_factory=dict)  # the journal's fields: action="pause", …
    folder: RunFolder | None = None  # of the run whose journal keeps it; none: nothing is kept
    dangerous: bool = True  # else it is done without asking
