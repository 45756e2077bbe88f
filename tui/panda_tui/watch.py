"""Decides what it is to watch: what a screen may ask of the run or the broker that is looked at.

Watching changes nothing and needs no lock. Whoever steers does it through a `Deed`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from broker_runtime.client import BrokerInfo, Client, ClientError
from panda_tui.model import Snapshot

Tell = Callable[[Snapshot], None]


class Piece(NamedTuple):
    """A piece of a file, and how large the file is now."""

    data: bytes
    size: int


NOTHING_READ = Piece(b"", 0)


class Away(ClientError):
    """There is no broker to ask right now; says why."""


class Watch(Protocol):
    """All of it is called in the loop of the console; nothing here blocks."""

    @property
    def snapshot(self) -> Snapshot:
        """The latest one."""

    @property
    def client(self) -> Client | None:
        """The console's own client while it is connected: to read and to follow, shared by all screens."""

    def start(self, tell: Tell) -> None:
        """From now on `tell` gets every new snapshot."""

    def pace(self, every_s: float) -> None:
        """How often brokers are asked how they are; the screen in front says what it needs."""

    async def control(self, broker: str, command: str, **fields: str) -> BrokerInfo:
        """Have a broker carry out a command, connected to it directly if its way may be blocked."""

    def visit(self, broker: str, id_: str = "") -> AbstractAsyncContextManager[Client]:
        """A client of its own at this broker, for whoever advertises, subscribes and publishes there."""

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        """What a process wrote to `stdout`, `stderr` or `log`. Blocks: for a worker's thread alone."""

    def told(self) -> tuple[tuple[float, str], ...]:
        """What the controller told lately, with its time by our clock."""

    async def close(self) -> None: ...


class Idle:
    """Nothing is watched yet."""

    snapshot = Snapshot()
    client: Client | None = None

    def start(self, tell: Tell) -> None:
        tell(self.snapshot)

    def pace(self, every_s: float) -> None:
        pass

    async def control(self, broker: str, command: str, **fields: str) -> BrokerInfo:
        raise Away("nothing is watched: open a run first")

    def visit(self, broker: str, id_: str = "") -> AbstractAsyncContextManager[Client]:
        raise Away("nothing is watched: open a run first")

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        return NOTHING_READ

    def told(self) -> tuple[tuple[float, str], ...]:
        return ()

    async def close(self) -> None:
        pass
