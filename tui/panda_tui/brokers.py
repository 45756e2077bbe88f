"""Decides how brokers are listened to: by an ordinary client of any of them, which asks all how they are.

A connection that is lost is told of at once; the client dials again by itself, and when that takes long
another broker is tried. Everything happens in the console's loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from broker_runtime.client import (
    BrokerInfo,
    Change,
    Client,
    ClientError,
    ClientOptions,
    Connected,
    Disconnected,
    Noticed,
    Notification,
    Policy,
    connect,
)
from broker_runtime.language import Value
from panda_tui.model import Connection
from panda_tui.watch import Away

BROKER_INFO: Final = "BROKER_INFO"
CONNECT_TIMEOUT_S = 3.0
GIVE_UP_S = 3.0  # then another broker is tried
AGAIN_S = 0.5
ANSWER_TIMEOUT_S = 5.0
HELD_MAX = 1_000
RATE_SPAN_S = 0.5  # rates are taken over so long or longer
DIRECTLY: Final = frozenset(("pause", "resume", "shutdown", "cut"))


@dataclass(slots=True)
class Peer:
    """One end of a link or of a client's session, as its broker tells."""

    role: str
    up: bool
    queue_length: int = 0
    records: int = 0
    bytes: int = 0
    counted_at: float = 0.0
    rate: float = 0.0
    bytes_per_s: float = 0.0


@dataclass(slots=True)
class Heard:
    """What a broker said of itself last."""

    at: float
    content: Mapping[str, Value]
    peers: dict[str, Peer] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return str(self.content.get("address", ""))


class BrokerFeed:
    def __init__(self, addresses: Callable[[], Sequence[str]], token: str = "") -> None:
        self.heard: dict[str, Heard] = {}
        self.client: Client | None = None
        self.connection = Connection.NONE
        self.connected_to = ""
        self.why = ""
        self.every_s = 1.0
        self.changes = 0
        self._addresses = addresses
        self._token = token
        self._tasks: list[asyncio.Task[None]] = []
        self._away = asyncio.Event()
        self._own: set[str] = set()
        self._now = asyncio.Event()

    def start(self) -> None:
        self._tasks.append(asyncio.create_task(self._run(), name="watch brokers"))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def pace(self, every_s: float) -> None:
        faster = every_s < self.every_s
        self.every_s = every_s
        if faster:
            self._now.set()

    def is_ours(self, client: str) -> bool:
        """Whether this is a client that only watches."""
        return client in self._own

    def address_of(self, broker: str) -> str:
        heard = self.heard.get(broker)
        return heard.address if heard else ""

    async def control(self, broker: str, address: str, command: str, **fields: str) -> BrokerInfo:
        if command in DIRECTLY and address:
            async with self.visit(address) as client:
                return await client.desk.control(broker, command, b"", fields, ANSWER_TIMEOUT_S)
        if self.client is None:
            raise Away(self.why or "not connected to a broker")
        return await self.client.desk.control(broker, command, b"", fields, ANSWER_TIMEOUT_S)

    @asynccontextmanager
    async def visit(self, address: str, id_: str = "") -> AsyncIterator[Client]:
        if not address:
            raise Away("nobody knows where that broker listens")
        options = ClientOptions(connect_timeout_s=CONNECT_TIMEOUT_S, policy=Policy.DROP_OLDEST)
        client = connect(address, id_, token=self._token, options=options)
        if not id_:
            self._own.add(client.id)
        async with client:
            yield client

    # Inside

    async def _run(self) -> None:
        tried = 0
        while True:
            addresses = self._addresses()
            if not addresses:
                self._tell(Connection.NONE, "")
                await asyncio.sleep(AGAIN_S)
                continue
            address = addresses[tried % len(addresses)]
            tried += 1
            if self.connection is not Connection.LOST:
                self._tell(Connection.CONNECTING, self.why)
            try:
                await self._listen(address)
            except (ClientError, ValueError, OSError) as error:
                self._tell(Connection.LOST, str(error))
            await asyncio.sleep(AGAIN_S if tried % len(addresses) == 0 else 0)

    async def _listen(self, address: str) -> None:
        """As long as this broker answers."""
        options = ClientOptions(
            connect_timeout_s=CONNECT_TIMEOUT_S,
            policy=Policy.DROP_OLDEST,
            broker_queue_length_max=HELD_MAX,
            on_change=self._changed,
        )
        client = connect(address, token=self._token, options=options)
        self._own.add(client.id)
        try:
            async with client:
                self._away.clear()
                self.client = client
                await client.subscribe(f"[class,eq,'{BROKER_INFO}'],[state,isPresent,@STRING]", self._take)
                await client.control(client.broker, "info", timeout_s=CONNECT_TIMEOUT_S)
                self._reached(client)
                await asyncio.gather(self._ask(client), self._until_given_up(client))
        finally:
            self.client = None
            self._own.discard(client.id)

    async def _ask(self, client: Client) -> None:
        while not self._away.is_set() or client is self.client:
            question = {
                "class": "BROKER_CONTROL",
                "broker": "*",
                "command": "links",
                "request": f"{client.source}/all",
            }
            await client.publish(question)
            self._now.clear()
            try:
                async with asyncio.timeout(self.every_s):
                    await self._now.wait()
            except TimeoutError:
                pass

    async def _until_given_up(self, client: Client) -> None:
        """ClientError when the broker has been away for long."""
        while True:
            await self._away.wait()
            await asyncio.sleep(GIVE_UP_S)
            if self._away.is_set():
                raise Away(self.why)

    def _changed(self, change: Change) -> None:
        if isinstance(change, Connected):
            self._away.clear()
            self.connected_to = change.broker
            self._tell(Connection.CONNECTED, "")
        elif isinstance(change, Disconnected):
            self._away.set()
            self._tell(Connection.LOST, change.reason)
        elif isinstance(change, Noticed):
            self.changes += 1

    def _reached(self, client: Client) -> None:
        self.connected_to = client.broker
        self._tell(Connection.CONNECTED, "")

    def _tell(self, connection: Connection, why: str) -> None:
        if (connection, why) != (self.connection, self.why):
            self.connection, self.why = connection, why
            self.changes += 1

    def _take(self, notification: Notification) -> None:
        content = notification.content
        broker = str(content.get("broker", ""))
        now = time.time()
        known = self.heard.get(broker)
        heard = self.heard[broker] = Heard(now, content, known.peers if known else {})
        if notification.payload and content.get("reply") == "links":
            heard.peers = _peers(notification.payload, heard.peers, now)
        self.changes += 1


def _peers(payload: bytes, known: Mapping[str, Peer], now: float) -> dict[str, Peer]:
    try:
        rows: Any = msgspec.json.decode(payload)
        return {str(row["peer"]): _peer(row, known.get(str(row["peer"])), now) for row in rows}
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
        return dict(known)


def _peer(row: Mapping[str, Any], before: Peer | None, now: float) -> Peer:
    records = int(row["records_in"]) + int(row["records_out"])
    size = int(row["bytes_in"]) + int(row["bytes_out"])
    peer = Peer(str(row["role"]), bool(row["up"]), int(row["queue_length"]), records, size, now)
    if before is None or records < before.records:
        return peer
    span_s = now - before.counted_at
    if span_s < RATE_SPAN_S:
        peer.records, peer.bytes, peer.counted_at = before.records, before.bytes, before.counted_at
        peer.rate, peer.bytes_per_s = before.rate, before.bytes_per_s
    else:
        peer.rate = (records - before.records) / span_s
        peer.bytes_per_s = (size - before.bytes) / span_s
    return peer
