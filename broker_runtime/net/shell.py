"""Decides how a core lives on asyncio: bytes become inputs, effects become writes, dials and timers.

One `data_received` is one `handle`, and one `handle` is at most one write per destination: that coalescing
is where the speed comes from, so nothing here awaits per message. What a connection may have in flight is
bounded by the protocol's windows; a peer that lets our buffer grow beyond them is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from broker_runtime.addresses import parse_address
from broker_runtime.net.clock import now
from broker_runtime.net.logs import LogWriter
from broker_runtime.seam import (
    Close,
    Closed,
    Dial,
    DialFailed,
    Effect,
    Exit,
    Input,
    Log,
    Malformed,
    Opened,
    Received,
    Send,
    Tick,
    WakeAt,
)
from broker_runtime.wire.frames import Frame, FrameReader, WireError

WRITE_BUFFER_BYTES_MAX: Final = 16 << 20
CONNECTIONS_MAX: Final = 10_000
DIAL_TIMEOUT_S: Final = 5.0
LOG_FLUSH_S: Final = 0.2
GOODBYE_S: Final = 2.0


class Core(Protocol):
    def handle(self, event: Input, now: float) -> list[Effect]: ...


class Way(Protocol):
    """Where a connection's bytes go: its transport, or a detour that takes its place."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Guard(Protocol):
    """Stands at the door while faults are in force."""

    def lets_in(self, wire: Wire, frames: list[Frame]) -> bool:
        """Whether the core may hear these frames; if not, the guard has dealt with the connection."""

    def forbids(self, address: str) -> bool:
        """Whether the address must not be dialled."""


class Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, shell: Shell, address: str = "") -> None:
        self._shell = shell
        self._address = address
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = FrameReader()
        self.id = 0
        self.peer = ""  # for the guard, which fills it in
        self.transport: Way

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        self.id = self._shell.adopt(self)
        if self.id:
            self._shell.feed(Opened(self.id, self._address))

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self._shell.feed(Malformed(self.id, error.code, error.message))
            return
        guard = self._shell.guard
        if frames and (guard is None or guard.lets_in(self, frames)):
            self._shell.feed(Received(self.id, frames))

    def pause_writing(self) -> None:
        """The peer takes nothing of what the protocol let us send: it is not one of ours."""
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.abort()  # a detour lets go of what it holds
        if not self.gone.done():
            self.gone.set_result(None)
        if self.id:
            self._shell.forget(self, str(exc) if exc else "closed by the peer")


class Shell:
    """Carries out the effects of one core."""

    def __init__(self, log: LogWriter, after: Callable[[], None] | None = None) -> None:
        self.core: Core
        self.guard: Guard | None = None
        self.exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._log = log
        self._after = after
        self._wires: dict[int, Wire] = {}
        self._next_id = 0
        self._leaving: dict[int, Wire] = {}  # closed, with something still to send
        self._timer: asyncio.TimerHandle | None = None
        self._dials: set[asyncio.Task[None]] = set()
        self._flush_timer: asyncio.TimerHandle | None = None

    def start(self, core: Core) -> None:
        self.core = core
        self._flush_log()

    def adopt(self, wire: Wire) -> int:
        if len(self._wires) >= CONNECTIONS_MAX or self.exited.done():
            wire.transport.abort()
            return 0
        self._next_id += 1
        self._wires[self._next_id] = wire
        return self._next_id

    def forget(self, wire: Wire, reason: str) -> None:
        if self._wires.pop(wire.id, None) is not None and not self.exited.done():
            self.feed(Closed(wire.id, reason))

    @property
    def wires(self) -> list[Wire]:
        return list(self._wires.values())

    def cut(self, wire: Wire, reason: str) -> None:
        """Break a connection at once, as a failing network does."""
        if self._wires.pop(wire.id, None) is not None:
            wire.transport.abort()
            if not self.exited.done():
                self.feed(Closed(wire.id, reason))

    def feed(self, event: Input) -> None:
        self.carry_out(self.core.handle(event, now()))
        if self._after is not None:
            self._after()

    def carry_out(self, effects: list[Effect]) -> None:
        wires = self._wires
        for effect in effects:
            if effect.__class__ is Send:
                wire = wires.get(effect.connection)
                if wire is not None:
                    wire.transport.write(effect.data)
            else:
                self._carry_out_rare(effect)

    def _carry_out_rare(self, effect: Effect) -> None:
        if isinstance(effect, WakeAt):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(max(0.0, effect.at - now()), self._tick)
        elif isinstance(effect, Log):
            self._log.write(effect.kind, effect.fields)
        elif isinstance(effect, Close):
            wire = self._wires.pop(effect.connection, None)
            if wire is not None:
                self._hang_up(wire)
        elif isinstance(effect, Dial):
            task = self._loop.create_task(self._dial(effect.address))
            self._dials.add(task)
            task.add_done_callback(self._dials.discard)
        elif isinstance(effect, Exit) and not self.exited.done():
            self.exited.set_result(effect.reason)

    async def _dial(self, text: str) -> None:
        try:
            address = parse_address(text)
            if self.guard is not None and self.guard.forbids(text):
                raise ConnectionRefusedError("cut by a fault")
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await self._loop.create_connection(lambda: Wire(self, text), address.host, address.port)
        except (OSError, ValueError, TimeoutError) as error:
            if not self.exited.done():
                self.feed(DialFailed(text, str(error) or type(error).__name__))

    def _tick(self) -> None:
        self._timer = None
        if not self.exited.done():
            self.feed(Tick())

    def _flush_log(self) -> None:
        self._log.flush()
        self._flush_timer = self._loop.call_later(LOG_FLUSH_S, self._flush_log)

    async def close(self) -> None:
        """Let go of everything; what was written before still leaves."""
        if not self.exited.done():
            self.exited.set_result("closed")
        for timer in (self._timer, self._flush_timer):
            if timer is not None:
                timer.cancel()
        for task in list(self._dials):
            task.cancel()
        for wire in self._wires.values():
            self._hang_up(wire)
        self._wires.clear()
        await asyncio.gather(*self._dials, return_exceptions=True)
        if self._leaving:
            await asyncio.wait([wire.gone for wire in self._leaving.values()], timeout=GOODBYE_S)
        for wire in list(self._leaving.values()):
            wire.transport.abort()
        self._log.close()

    def _hang_up(self, wire: Wire) -> None:
        """Close once everything written has left; `close` waits for that."""
        self._leaving[wire.id] = wire
        wire.gone.add_done_callback(lambda _: self._leaving.pop(wire.id, None))
        wire.transport.close()
