"""Decides when each input reaches each node, in virtual time, and which frames never do.

One heap of (time, sequence) and one seeded source of randomness: the same seed is the same execution. A
connection keeps its order, as TCP does; connections overtake each other. A frame is the unit of fault: it
can be lost or repeated on a connection that lives on, which the numbers in it must repair. Handshake frames
carry no numbers, so there a loss takes the connection with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from broker_runtime.seam import (
    Close,
    Closed,
    Dial,
    DialFailed,
    Effect,
    Input,
    Log,
    Opened,
    Received,
    Send,
    Tick,
    WakeAt,
)
from broker_runtime.sim.options import Options
from broker_runtime.wire.frames import ACK, DATA, Frame, FrameKind, FrameReader

Trace = Callable[[str], None]


class Core(Protocol):
    def handle(self, event: Input, now: float) -> list[Effect]: ...


class Pipe:
    """One direction of a connection, as its sender sees it."""

    __slots__ = ("connection", "cut", "delay_s", "far", "far_connection", "last_at", "node")

    def __init__(self, node: Node, connection: int, far: Node, far_connection: int, delay_s: float) -> None:
        self.node = node
        self.connection = connection
        self.far = far
        self.far_connection = far_connection
        self.delay_s = delay_s
        self.last_at = 0.0
        self.cut = False


@dataclass(slots=True, eq=False)
class Node:
    """A process on the network: what it runs, and what waits for it while it is paused."""

    name: str
    core: Core
    generation: int = 0
    alive: bool = True
    paused: bool = False
    inbox: list[Input] = field(default_factory=list)
    pipes: dict[int, Pipe] = field(default_factory=dict)
    wake: int = 0


class Network:
    """Virtual time, and everything that is on its way."""

    def __init__(self, options: Options, random: Random, trace: Trace | None = None) -> None:
        self.options = options
        self.random = random
        self.now = 0.0
        self.chaos = False
        self.nodes: dict[str, Node] = {}
        self.addresses: dict[str, Node] = {}
        self.events = 0
        self.on_log: Callable[[Node, Log], None] | None = None
        self.after: Callable[[Node], None] | None = None
        self._trace = trace
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0
        self._connections = 0
        self._delays: dict[tuple[str, str], float] = {}
        self._outages: dict[tuple[str, str], float] = {}

    # Time

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (when, self._sequence, action, arguments))

    def run_until(self, when: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= when:
            self.now, _, action, arguments = heapq.heappop(heap)
            self.events += 1
            action(*arguments)
        self.now = when

    def note(self, text: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now:.6f} {text}")

    # Nodes

    def add(self, name: str, core: Core, listens: bool = False) -> Node:
        node = Node(name, core)
        self.nodes[name] = node
        if listens:
            self.addresses[name] = node
        return node

    def remove(self, node: Node, quietly: bool) -> None:
        """The process is gone; its peers hear of it soon, or never when its host went with it."""
        node.alive = False
        node.generation += 1
        node.paused = False
        node.inbox.clear()
        for pipe in list(node.pipes.values()):
            self._hang_up(pipe, "the process ended", quietly)
        node.pipes.clear()

    def revive(self, node: Node, core: Core) -> None:
        node.core = core
        node.alive = True

    def pause(self, node: Node) -> None:
        self.note(f"{node.name} stands still")
        node.paused = True

    def resume(self, node: Node) -> None:
        self.note(f"{node.name} goes on")
        node.paused = False
        inbox, node.inbox = node.inbox, []
        for event in inbox:
            if node.alive:
                self.hand(node, event)

    def hand(self, node: Node, event: Input) -> None:
        """Give the node an input now, or leave it in front of its door."""
        if node.paused:
            node.inbox.append(event)
            return
        if self._trace is not None:
            self.note(f"{node.name} < {event}")
        self.carry_out(node, node.core.handle(event, self.now))

    def _deliver(self, node: Node, generation: int, event: Input) -> None:
        if node.alive and node.generation == generation:
            self.hand(node, event)

    # Effects

    def carry_out(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                pipe = node.pipes.get(effect.connection)
                if pipe is not None:
                    self._send(pipe, effect.data)
            elif isinstance(effect, WakeAt):
                node.wake += 1
                self.at(max(effect.at, self.now), self._tick, node, node.generation, node.wake)
            elif isinstance(effect, Log):
                if self._trace is not None:
                    self.note(f"{node.name} ! {effect.kind} {dict(effect.fields)}")
                if self.on_log is not None:
                    self.on_log(node, effect)
            elif isinstance(effect, Close):
                pipe = node.pipes.pop(effect.connection, None)
                if pipe is not None:
                    self._close(pipe)
            elif isinstance(effect, Dial):
                self._dial(node, effect.address)
        if self.after is not None:
            self.after(node)

    def _tick(self, node: Node, generation: int, wake: int) -> None:
        if node.alive and node.generation == generation and node.wake == wake:
            self.hand(node, Tick())

    # Connections

    def _dial(self, node: Node, address: str) -> None:
        far = self.addresses.get(address)
        delay_s = self._delay(node.name, address)
        unlucky = self.chaos and self.random.random() < self.options.dial_failed
        if far is None or not far.alive or unlucky or self.out(node.name, address):
            self.note(f"{node.name} cannot reach {address}")
            self.at(
                self.now + delay_s, self._deliver, node, node.generation, DialFailed(address, "unreachable")
            )
            return
        self.at(self.now + delay_s, self._connect, node, node.generation, far, far.generation)

    def _connect(self, node: Node, generation: int, far: Node, far_generation: int) -> None:
        if not node.alive or node.generation != generation:
            return
        if not far.alive or far.generation != far_generation:
            self._deliver(node, generation, DialFailed(far.name, "refused"))
            return
        near_id, far_id = self._connections + 1, self._connections + 2
        self._connections += 2
        delay_s = self._delay(node.name, far.name)
        node.pipes[near_id] = Pipe(node, near_id, far, far_id, delay_s)
        far.pipes[far_id] = Pipe(far, far_id, node, near_id, delay_s)
        self.at(self.now + delay_s, self._deliver, node, generation, Opened(near_id, far.name))
        node.pipes[near_id].last_at = far.pipes[far_id].last_at = self.now + delay_s
        self.hand(far, Opened(far_id))

    def _send(self, pipe: Pipe, data: bytes) -> None:
        """Cut what was written into frames and decide the fate of each."""
        frames = FrameReader().feed(data)
        options, random = self.options, self.random
        if not self.chaos or not (options.frame_lost or options.frame_repeated or options.connection_cut):
            if len(frames) > 1 and random.random() >= options.frames_grouped:
                for frame in frames:
                    self._ship(pipe, [frame])
            else:
                self._ship(pipe, frames)
            return
        for frame in frames:
            numbered = frame[0] in (DATA, ACK)
            fate = random.random()
            if fate < options.frame_lost:
                self.note(f"{pipe.node.name} > {pipe.far.name} loses {_short(frame)}")
                if not numbered:
                    self.cut(pipe, silently=random.random() < 0.5)
            elif fate < options.frame_lost + options.connection_cut:
                self.cut(pipe, silently=random.random() < options.cut_silently)
            else:
                self._ship(pipe, [frame])
                if numbered and random.random() < options.frame_repeated:
                    self.note(f"{pipe.node.name} > {pipe.far.name} repeats {_short(frame)}")
                    self._ship(pipe, [frame])

    def _ship(self, pipe: Pipe, frames: list[Frame]) -> None:
        if pipe.cut:
            return
        delay_s = pipe.delay_s
        if self.options.jitter:
            delay_s *= 1.0 + self.options.jitter * self.random.random()
        pipe.last_at = max(pipe.last_at, self.now + delay_s)
        self.at(pipe.last_at, self._arrive, pipe, pipe.far.generation, frames)

    def _arrive(self, pipe: Pipe, generation: int, frames: list[Frame]) -> None:
        far = pipe.far
        if not pipe.cut and far.alive and far.generation == generation and pipe.far_connection in far.pipes:
            self.hand(far, Received(pipe.far_connection, frames))

    def _close(self, pipe: Pipe) -> None:
        """The near side closed: the far side reads what was sent before, then the end."""
        if not pipe.cut:
            at = max(pipe.last_at, self.now + pipe.delay_s)
            self.at(at, self._closed, pipe.far, pipe.far.generation, pipe.far_connection, "closed by peer")

    def _closed(self, node: Node, generation: int, connection: int, reason: str) -> None:
        if node.alive and node.generation == generation and node.pipes.pop(connection, None) is not None:
            self.hand(node, Closed(connection, reason))

    def _hang_up(self, pipe: Pipe, reason: str, silently: bool) -> None:
        """Nothing more passes this connection; its far side learns of it after a while, or by silence."""
        pipe.cut = True
        back = pipe.far.pipes.get(pipe.far_connection)
        if back is not None:
            back.cut = True
            if not silently:
                at = self.now + self.random.random() * 0.5
                self.at(at, self._closed, pipe.far, pipe.far.generation, pipe.far_connection, reason)

    # Faults

    def cut(self, pipe: Pipe, silently: bool) -> None:
        if pipe.cut:
            return
        self.note(f"the connection {pipe.node.name}–{pipe.far.name} breaks{', silently' if silently else ''}")
        self._hang_up(pipe, "broken", silently)
        if not silently:
            node = pipe.node
            at = self.now + self.random.random() * 0.5
            self.at(at, self._closed, node, node.generation, pipe.connection, "broken")

    def take_down(self, a: str, b: str, seconds: float, silently: bool) -> None:
        """No connection between the two for a time."""
        self.note(f"no way between {a} and {b} for {seconds:.2f} s")
        self._outages[_pair(a, b)] = self.now + seconds
        node = self.nodes[a]
        for pipe in list(node.pipes.values()):
            if pipe.far.name == b:
                self.cut(pipe, silently)

    def out(self, a: str, b: str) -> bool:
        return self._outages.get(_pair(a, b), 0.0) > self.now

    def heal(self) -> None:
        """No more faults; those that happened are still to be noticed."""
        self.chaos = False
        self._outages.clear()
        for node in self.nodes.values():
            if node.paused:
                self.resume(node)

    def _delay(self, a: str, b: str) -> float:
        pair = _pair(a, b)
        if pair not in self._delays:
            spread = self.options.delay_spread
            self._delays[pair] = self.options.delay_s * (1.0 + (spread - 1.0) * self.random.random())
        return self._delays[pair]


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _short(frame: Frame) -> str:
    return f"{FrameKind(frame[0]).name} of {len(frame[1])} bytes"
