"""Decides how a process speaks with the agent that started it: reports go out, orders for faults come in.

The line is the unix socket that PANDA_LINE names; docs/agent-protocol.md says what is written on it. It never
holds the process up: what the agent does not read is dropped beyond a bound. An agent that is gone is missed
by nobody; but another may take its place, so PANDA_LINE_AGAIN is dialled until somebody answers, who is then
told how things stand.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping, MutableMapping
from typing import Final, Protocol

import msgspec

LINE_VARIABLE: Final = "PANDA_LINE"
AGAIN_VARIABLE: Final = "PANDA_LINE_AGAIN"
LINE_BYTES_MAX: Final = 64 << 10  # of one order
UNREAD_BYTES_MAX: Final = 256 << 10  # of reports that the agent has not read
GOODBYE_S: Final = 0.5
DIAL_AFTER_S: Final = 0.05
DIAL_AFTER_MAX_S: Final = 1.0

Note = Callable[[str], None]


class Servant(Protocol):
    """Who carries out orders."""

    complain: Callable[[int, str], None]
    """Told the number of an order that was carried out, and what has gone wrong with it since."""

    def obey(self, order: Mapping[str, object]) -> None:
        """ValueError says why not."""


class LineError(ValueError):
    """PANDA_LINE names no line."""


def _unheard(_: str) -> None:
    pass


class Line(asyncio.Protocol):
    """The process's end of the line."""

    def __init__(self, sock: socket.socket, note: Note = _unheard, again: str = "") -> None:
        self._sock = sock
        self._note = note
        self._again = again
        self._servant: Servant
        self._transport: asyncio.Transport | None = None
        self._gone: asyncio.Future[None]
        self._dialling: asyncio.Task[None] | None = None
        self._closed = False
        self._since = 0.0  # when the line was last taken up
        self._orders = Orders()
        self._ready: Mapping[str, object] | None = None
        self._links: dict[str, Mapping[str, object]] = {}  # by peer, what was last said of it
        self._dropping = False
        self._encode = msgspec.json.Encoder().encode

    async def open(self, servant: Servant) -> None:
        """Have orders carried out from now on, and let reports leave."""
        self._servant = servant
        servant.complain = self.answer
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=self._sock)

    async def close(self) -> None:
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._transport is None:
            self._sock.close()
            return
        self._transport.close()
        await asyncio.wait([self._gone], timeout=GOODBYE_S)
        if not self._gone.done():
            self._transport.abort()
            await self._gone

    # Reports

    def ready(self, id_: str, address: str = "") -> None:
        self._ready = {"say": "ready", "id": id_, **({"address": address} if address else {})}
        self._say(self._ready)

    def link(self, peer: str, *, up: bool, reason: str = "") -> None:
        """Tell of a link when it changes; that a lost link's session has ended too is no news."""
        before = self._links.get(peer)
        if up == (before is not None and before["up"]):
            return
        self._links[peer] = {"say": "link", "peer": peer, "up": up, **({} if up else {"reason": reason})}
        self._say(self._links[peer])

    def answer(self, number: object, error: str = "") -> None:
        """Say what became of an order: done, or what is wrong with it."""
        self._say({"say": "fault", "number": number, **({"error": error} if error else {"ok": True})})

    def _say(self, report: Mapping[str, object]) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            if not self._dropping:
                self._dropping = True
                self._note("the agent does not read what is reported to it: reports are dropped")
            return
        self._dropping = False
        transport.write(self._encode(report) + b"\n")

    # The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        self._gone, self._since = loop.create_future(), loop.time()
        self._orders = Orders()
        for report in (self._ready, *self._links.values()):
            if report is not None:
                self._say(report)

    def data_received(self, data: bytes) -> None:
        for order in self._orders.feed(data):
            number = order.get("number") if isinstance(order, Mapping) else None
            try:
                self._servant.obey(_checked(order))
            except ValueError as error:
                self.answer(number if _is_number(number) else None, str(error))
            else:
                self.answer(number)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        if self._again and not self._closed:
            self._dialling = asyncio.create_task(self._dial())

    async def _dial(self) -> None:
        """Until there is somebody: the agent that follows comes when a controller does, or never."""
        loop = asyncio.get_running_loop()
        briefly = loop.time() - self._since < DIAL_AFTER_MAX_S  # whoever hung up at once is not pressed
        after_s = DIAL_AFTER_MAX_S if briefly else DIAL_AFTER_S
        while True:
            await asyncio.sleep(after_s)
            try:
                await loop.create_unix_connection(lambda: self, self._again)
            except OSError:
                after_s = min(2 * after_s, DIAL_AFTER_MAX_S)
            else:
                return


class Orders:
    """Cuts a stream of bytes, however chunked, into orders; what is none comes out as the reason."""

    def __init__(self) -> None:
        self._buffer = b""
        self._skipping = False  # the rest of a line that was too long

    def feed(self, data: bytes) -> list[Mapping[str, object] | ValueError]:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        orders: list[Mapping[str, object] | ValueError] = []
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif len(line) > LINE_BYTES_MAX:
                orders.append(_too_long())
            elif line.strip():
                orders.append(_decoded(line))
        if len(self._buffer) > LINE_BYTES_MAX:
            self._buffer = b""
            if not self._skipping:
                self._skipping = True
                orders.append(_too_long())
        return orders


def open_line(environment: MutableMapping[str, str], note: Note = _unheard) -> Line | None:
    """The line that the environment names, taken out of it so that nobody else speaks on it.

    None when there is none; LineError when the variable names something else.
    """
    text, again = environment.pop(LINE_VARIABLE, ""), environment.pop(AGAIN_VARIABLE, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise LineError(f"{LINE_VARIABLE}={text!r} is not the number of a descriptor")
    try:
        sock = socket.socket(fileno=int(text))
    except OSError as error:
        raise LineError(f"{LINE_VARIABLE}={text} is not an open socket: {error.strerror}") from None
    if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_STREAM):
        sock.detach()
        raise LineError(f"{LINE_VARIABLE}={text} is not a unix stream socket")
    sock.set_inheritable(False)
    sock.setblocking(False)
    return Line(sock, note, again)


def _decoded(line: bytes) -> Mapping[str, object] | ValueError:
    try:
        order = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return ValueError(f"an order is a line of JSON: {error}")
    return order if isinstance(order, dict) else ValueError("an order is a JSON object")


def _checked(order: Mapping[str, object] | ValueError) -> Mapping[str, object]:
    if isinstance(order, ValueError):
        raise order
    if not _is_number(order.get("number")):
        raise ValueError("an order has a number: an integer")
    return order


def _is_number(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _too_long() -> ValueError:
    return ValueError(f"an order has at most {LINE_BYTES_MAX} bytes")
