"""The two baselines: a relay that only frames and coalesces, and one that also decodes each message.

One publisher connection in, any number of subscriber connections out. A connection says which it is with
its first byte. No numbers, no acknowledgements, no matching: what asyncio and msgspec cost by themselves.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import ClassVar

from broker_runtime.wire.records import PREFIX_BYTES, decode_head

_LENGTH = Struct(">I")


class RelayConnection(asyncio.Protocol):
    subscribers: ClassVar[list[asyncio.Transport]] = []
    publisher: ClassVar[asyncio.Transport | None] = None
    decoding = False

    def __init__(self) -> None:
        self._buffer = b""
        self._role = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._role:
            self._role, data = data[:1], data[1:]
            if self._role == b"S":
                self.subscribers.append(self.transport)
                self.transport.write(b"+")
            else:
                type(self).publisher = self.transport
        if not data:
            return
        buffer = self._buffer + data if self._buffer else data
        position, end, unpack = 0, len(buffer), _LENGTH.unpack_from
        decoding = self.decoding
        while end - position >= PREFIX_BYTES:
            stop = position + 4 + unpack(buffer, position)[0]
            if stop > end:
                break
            if decoding:
                decode_head(buffer[position + PREFIX_BYTES : stop])
            position = stop
        self._buffer = buffer[position:]
        if position:
            out = buffer[:position]
            for subscriber in self.subscribers:
                subscriber.write(out)

    def pause_writing(self) -> None:
        if self.publisher is not None:
            self.publisher.pause_reading()

    def resume_writing(self) -> None:
        if self.publisher is not None:
            self.publisher.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport in self.subscribers:
            self.subscribers.remove(self.transport)


async def serve(port: int, decoding: bool) -> None:
    RelayConnection.decoding = decoding
    server = await asyncio.get_running_loop().create_server(RelayConnection, "127.0.0.1", port)
    async with server:
        await server.serve_forever()
