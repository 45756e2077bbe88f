"""Brokers in the test's own event loop, on free loopback ports."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer


class KeptLog(LogWriter):
    """A log for the test to read: kinds and fields."""

    def __init__(self, process: str) -> None:
        super().__init__(None, process)
        self.lines: list[tuple[str, Mapping[str, object]]] = []

    def write(self, kind: str, fields: Mapping[str, object]) -> None:
        self.lines.append((kind, fields))

    def of(self, kind: str) -> list[Mapping[str, object]]:
        return [fields for each, fields in self.lines if each == kind]


class LocalBrokers:
    def __init__(self) -> None:
        self.logs: dict[str, KeptLog] = {}
        self.servers: dict[str, BrokerServer] = {}
        self.addresses: dict[str, str] = {}

    async def start(self, id_: str, *neighbours: str, port: int = 0, **settings: Any) -> str:
        named = tuple(self.addresses[name] for name in neighbours)
        chosen = {"status_every_s": 5.0, **settings}
        log = self.logs[id_] = KeptLog(id_)
        server = BrokerServer(BrokerSettings(id=id_, neighbours=named, **chosen), log)
        await server.start(Address("127.0.0.1", port))
        self.servers[id_] = server
        self.addresses[id_] = str(server.address)
        return self.addresses[id_]

    async def stop(self, id_: str) -> None:
        await self.servers.pop(id_).close()

    async def restart(self, id_: str, *neighbours: str, **settings: Any) -> str:
        port = self.servers[id_].address.port
        await self.stop(id_)
        return await self.start(id_, *neighbours, port=port, **settings)


@pytest.fixture
async def brokers() -> AsyncIterator[LocalBrokers]:
    started = LocalBrokers()
    try:
        yield started
    finally:
        for id_ in list(started.servers):
            await started.stop(id_)
