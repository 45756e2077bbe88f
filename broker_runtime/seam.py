"""The seam between the core and the world: what comes in (inputs), what goes out (effects).

Brokers and clients are functions of inputs and time. The asyncio shell and the simulator are the only two
places that make inputs and carry out effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from broker_runtime.wire.frames import Frame


class RandomSource(Protocol):
    """Randomness that is handed in: the system's in a process, a seed's in the simulator."""

    def random(self) -> float: ...

    def randbytes(self, n: int, /) -> bytes: ...


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A connection is there. `address` is what was dialled, or empty when the peer dialled us."""

    connection: int
    address: str = ""


class Received(msgspec.Struct, frozen=True):
    """Frames arrived, in order."""

    connection: int
    frames: list[Frame]


class Malformed(msgspec.Struct, frozen=True):
    """Bytes arrived that are not frames; the connection cannot be read on."""

    connection: int
    code: str
    message: str


class Closed(msgspec.Struct, frozen=True):
    """The connection is gone."""

    connection: int
    reason: str = ""


class DialFailed(msgspec.Struct, frozen=True):
    """A dial did not become a connection."""

    address: str
    reason: str = ""


class Reachable(msgspec.Struct, frozen=True):
    """What kept a peer away is over: it may be dialled without waiting for the next try."""

    peer: str


class Tick(msgspec.Struct, frozen=True):
    """The time asked for by the last WakeAt has come."""


class Command(msgspec.Struct, frozen=True):
    """The process that holds the broker wants something of it.

    The words are `stop`, `pause`, `resume`, `connect` and `disconnect`.
    """

    word: str
    argument: str = ""


Input = Opened | Received | Malformed | Closed | DialFailed | Reachable | Tick | Command


class Send(msgspec.Struct, frozen=True, gc=False):
    connection: int
    data: bytes


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close once what was sent has left."""

    connection: int


class Dial(msgspec.Struct, frozen=True, gc=False):
    address: str


class WakeAt(msgspec.Struct, frozen=True, gc=False):
    at: float


class Log(msgspec.Struct, frozen=True):
    """One line of the process's log; the shell adds time, host, run and process."""

    kind: str
    fields: Mapping[str, object]


class Exit(msgspec.Struct, frozen=True):
    """The process should end, all sends done."""

    reason: str


Effect = Send | Close | Dial | WakeAt | Log | Exit
