"""Decides when bytes leave for a peer whose link is faulty: frames are lost, held or paced, always in order.

A detour takes the place of a connection's transport, so a connection without faults pays nothing for them. It
drops whole frames, so that the stream stays readable and the session finds the gap; the frames of a handshake
carry no numbers, so there a loss takes the connection with it. What is held has the bound of a transport's
buffer; beyond it the connection is broken, as the transport would be. A detour never decides which faults
there are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from broker_runtime.net.shell import WRITE_BUFFER_BYTES_MAX, Way, Wire
from broker_runtime.seam import RandomSource
from broker_runtime.wire.frames import ACK, DATA, LENGTH

HELD_BYTES_MAX: Final = WRITE_BUFFER_BYTES_MAX
FRAME_OVERHEAD_BYTES: Final = 128  # of memory, for each frame held
BURST_S: Final = 0.05  # a paced link may catch up with so much of its time at once
HELD_REASON: Final = f"a fault holds more than {HELD_BYTES_MAX >> 20} MiB"
LOST_REASON: Final = "a fault lost a frame of the handshake"
LINGER_S: Final = 5.0  # how long a closed connection may take, beyond its delay, to send what it holds


@dataclass(slots=True, eq=False)
class Conditions:
    """What holds for everything that is sent to one peer."""

    cut: bool = False
    delay_s: float = 0.0
    loss: float = 0.0  # share of frames
    rate: float = 0.0  # bytes per second; 0: unlimited
    free_at: float = 0.0  # when the next frame may leave at this rate, by the loop's clock
    detours: set[Detour] = field(default_factory=set)

    @property
    def impaired(self) -> bool:
        return bool(self.delay_s or self.loss or self.rate)


class Detour:
    """The way of one connection's bytes while its peer's conditions are bad."""

    def __init__(
        self, wire: Wire, conditions: Conditions, source: RandomSource, cut: Callable[[Wire, str], None]
    ) -> None:
        self._wire = wire
        self._way: Way = wire.transport
        self._conditions = conditions
        self._source = source
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[float, bytes]] = deque()  # since when, and the frame
        self._held_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._broken = False
        self._closing = False
        wire.transport = self
        conditions.detours.add(self)

    # What a transport does

    def write(self, data: bytes) -> None:
        loss, now = self._conditions.loss, self._loop.time()
        for frame in frames_of(data):
            if self._broken:
                return
            if loss and self._source.random() < loss:
                if frame[LENGTH.size] not in (DATA, ACK):
                    self._break(LOST_REASON)
                continue
            self._held.append((now, frame))
            self._held_bytes += len(frame) + FRAME_OVERHEAD_BYTES
        self.pump()
        if self._held_bytes > HELD_BYTES_MAX:
            self._break(HELD_REASON)

    def close(self) -> None:
        """Close once what is held has left."""
        if self._closing:
            return
        self._closing = True
        if self._held:
            self._linger = self._loop.call_later(self._conditions.delay_s + LINGER_S, self.abort)
        else:
            self._leave()

    def abort(self) -> None:
        self._drop()
        self._step_aside()
        self._way.abort()

    # What the faults ask for

    def pump(self) -> None:
        """Let everything leave whose time has come, and plan the next."""
        conditions, now = self._conditions, self._loop.time()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._held:
            since, frame = self._held[0]
            due = since + conditions.delay_s
            if conditions.rate:
                due = max(due, conditions.free_at)
                if due <= now:
                    free_at = max(conditions.free_at, now - BURST_S)
                    conditions.free_at = free_at + len(frame) / conditions.rate
            if due > now:
                self._timer = self._loop.call_at(due, self.pump)
                return
            self._held.popleft()
            self._held_bytes -= len(frame) + FRAME_OVERHEAD_BYTES
            self._way.write(frame)
        if self._closing:
            self._leave()

    def end(self) -> None:
        """The faults are over: send what is held, and let the connection have its transport back."""
        for _, frame in self._held:
            self._way.write(frame)
        self._drop()
        if self._closing:
            self._leave()
        else:
            self._step_aside()

    def _break(self, reason: str) -> None:
        """Send nothing more. The core must not be entered from here: its effects are being carried out."""
        self._broken = True
        self._drop()
        self._loop.call_soon(self._cut, self._wire, reason)

    def _leave(self) -> None:
        self._step_aside()
        self._way.close()

    def _drop(self) -> None:
        self._held.clear()
        self._held_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _step_aside(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._conditions.detours.discard(self)
        if self._wire.transport is self:
            self._wire.transport = self._way


def frames_of(data: bytes) -> Iterator[bytes]:
    """The frames of one write, each with its length before it."""
    position = 0
    while position < len(data):
        (length,) = LENGTH.unpack_from(data, position)
        stop = position + LENGTH.size + length
        assert stop <= len(data)
        yield data[position:stop]
        position = stop
