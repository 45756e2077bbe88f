"""Decides how a controller's connection is read and written: in order, bounded, closed when it misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from broker_runtime.agent.exchange import peer_of
from broker_runtime.agent.journal import Journal
from broker_runtime.agent.protocol import BadFrame, Code, FrameReader, RequestRefused, encode, event, refusal

REQUESTS_WAITING_MAX: Final = 16
READ_BYTES: Final = 256 << 10
HELLO_WITHIN_S: Final = 30.0
SLOW_S: Final = 60.0

Handler = Callable[["Connection", Mapping[str, Any]], Awaitable[None]]


class Connection:
    """Requests go in one after the other; answers and events come out."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.greeted = False
        self._reader = reader
        self._writer = writer
        self._answered: asyncio.Future[None] | None = None
        self._events: asyncio.Task[None] | None = None
        self._since = 0
        self._draining = asyncio.Lock()

    async def serve(self, handle: Handler, hung_up: Callable[[], None]) -> None:
        """Until the other end closes or misbehaves; a request is taken when the one before is answered.

        `hung_up` is called at once when nothing more is to come, for the last answer may take its time.
        """
        waiting: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(REQUESTS_WAITING_MAX)
        reading = asyncio.create_task(self._read(waiting, hung_up))
        impatient = asyncio.get_running_loop().call_later(HELLO_WITHIN_S, self._give_up_unless_greeted)
        try:
            while (message := await waiting.get()) is not None:
                await handle(self, message)
                await self._drain()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
        finally:
            impatient.cancel()
            reading.cancel()
            await self.close()

    async def _read(self, waiting: asyncio.Queue[dict[str, Any] | None], hung_up: Callable[[], None]) -> None:
        frames = FrameReader()
        try:
            while data := await self._reader.read(READ_BYTES):
                for message in frames.feed(data):
                    await waiting.put(message)
            if waiting.empty():
                hung_up()
        except BadFrame as bad:
            self.send(refusal(None, Code.BAD_REQUEST, str(bad)))
        except OSError:
            self._writer.transport.abort()
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await waiting.put(None)

    def _give_up_unless_greeted(self) -> None:
        if not self.greeted:
            self._writer.transport.abort()

    def send(self, message: Mapping[str, Any]) -> None:
        try:
            data = encode(message)
        except RequestRefused as refused:
            number = message.get("id")
            data = encode(refusal(number if isinstance(number, int) else None, refused.code, refused.message))
        if not self._writer.is_closing():
            self._writer.write(data)

    def answer(self, message: Mapping[str, Any]) -> None:
        self.send(message)
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def expect_answer(self) -> asyncio.Future[None]:
        """To be had before the request is handed on, since the answer may come at once."""
        self._answered = asyncio.get_running_loop().create_future()
        return self._answered

    def follow(self, journal: Journal, changed: Callable[[], asyncio.Future[None]], since: int) -> None:
        """Send journal entries from here on; a controller that does not read them is disconnected."""
        if self._events is not None:
            self._events.cancel()
        self._since = since
        self._events = asyncio.create_task(self._follow(journal, changed))

    async def _follow(self, journal: Journal, changed: Callable[[], asyncio.Future[None]]) -> None:
        try:
            while True:
                if self._send_some(journal):
                    await self._drain()
                else:
                    await changed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    def _send_some(self, journal: Journal) -> bool:
        entries = journal.read(self._since)
        for entry in entries:
            self.send(event(entry))
            self._since = entry["seq"]
        return bool(entries)

    def send_rest(self, journal: Journal) -> None:
        """Whoever follows learns the end of the story."""
        while self._events is not None and self._send_some(journal):
            pass

    async def _drain(self) -> None:
        async with self._draining, asyncio.timeout(SLOW_S):
            await self._writer.drain()

    async def close(self) -> None:
        if self._events is not None:
            self._events.cancel()
        with contextlib.suppress(OSError, TimeoutError):
            if not self._writer.transport.is_closing():
                await self._drain()
            self._writer.close()
            await self._writer.wait_closed()


def is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the other end of a unix socket is the same user."""
    _, uid = peer_of(writer.get_extra_info("socket"))
    return uid == os.geteuid()
