"""Decides how a run, or a broker alone, is watched while it lives: two feeds, and snapshots of both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from broker_runtime.client import BrokerInfo, Client
from panda_tui.agents import AgentFeed
from panda_tui.brokers import BrokerFeed
from panda_tui.composing import snapshot_of
from panda_tui.model import Connection, Snapshot
from panda_tui.watch import NOTHING_READ, Away, Piece, Tell

LOOK_EVERY_S = 0.2
ANYWAY_EVERY_S = 1.0  # a snapshot although nothing has changed: time has


class LiveWatch:
    def __init__(self, agents: AgentFeed | None, *, broker: str = "", token: str = "") -> None:
        self.agents = agents
        self.snapshot = Snapshot(state="looking")
        self._brokers = BrokerFeed(self._addresses, token)
        self._given = [broker] if broker else []
        self._task: asyncio.Task[None] | None = None
        self._tell: Tell = lambda snapshot: None

    @property
    def client(self) -> Client | None:
        return self._brokers.client

    def start(self, tell: Tell) -> None:
        self._tell = tell
        if self.agents is not None:
            self.agents.start()
        self._brokers.start()
        self._task = asyncio.create_task(self._run(), name="snapshots")

    def pace(self, every_s: float) -> None:
        self._brokers.pace(every_s)

    async def control(self, broker: str, command: str, **fields: str) -> BrokerInfo:
        return await self._brokers.control(broker, self._address_of(broker), command, **fields)

    @asynccontextmanager
    async def visit(self, broker: str, id_: str = "") -> AsyncIterator[Client]:
        async with self._brokers.visit(self._address_of(broker), id_) as client:
            yield client

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        if self.agents is None:
            return NOTHING_READ
        return self.agents.read_log(process, stream, offset, length)

    def told(self) -> tuple[tuple[float, str], ...]:
        if self.agents is None:
            return ()
        with self.agents.lock:
            return tuple(self.agents.told)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._brokers.close()
        if self.agents is not None:  # it waits for connections to end, which must not keep anybody waiting
            threading.Thread(target=self.agents.close, name="leave", daemon=True).start()

    # Inside

    async def _run(self) -> None:
        """A snapshot that cannot be made is our bug: it is shown, and the next one tried."""
        while True:
            try:
                await self._take_snapshots()
            except Exception as error:
                why = f"internal error: {type(error).__name__}: {error} (please report)"
                self.snapshot = replace(self.snapshot, at=time.time(), connection=Connection.LOST, why=why)
                self._tell(self.snapshot)
                await asyncio.sleep(ANYWAY_EVERY_S)

    async def _take_snapshots(self) -> None:
        known, drawn_at = -1, 0.0
        while True:
            changes = self._brokers.changes + (self.agents.changes if self.agents is not None else 0)
            now = time.time()
            if changes != known or now - drawn_at >= ANYWAY_EVERY_S:
                known, drawn_at = changes, now
                self.snapshot = snapshot_of(self.agents, self._brokers, now)
                self._tell(self.snapshot)
            await asyncio.sleep(LOOK_EVERY_S)

    def _addresses(self) -> Sequence[str]:
        """Where a broker may be found now, those first that are known to run."""
        living = [
            each.address
            for each in self.snapshot.overlay.brokers
            if each.living and each.address and each.heard_at is None
        ]
        told = [
            each.address
            for each in self.snapshot.overlay.brokers
            if each.living and each.address and each.heard_at is not None
        ]
        return list(dict.fromkeys((*self._given, *told, *living)))

    def _address_of(self, broker: str) -> str:
        found = self.snapshot.overlay.broker(broker)
        if found is None:
            raise Away(f"there is no broker {broker}")
        return found.address or self._brokers.address_of(broker)
