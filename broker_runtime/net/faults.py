"""Decides which links of this process are faulty, from when to when: the orders of an agent, peer by peer.

- `cut`: the connection to the peer is closed, and none is dialled or accepted until the end. The session
  outlives it for `session_expiry_s`; then what is not acknowledged is lost, as with any broken link.
- `delay`: everything sent to the peer leaves so much later. A delay beyond `handshake_timeout_s` keeps a
  lost connection from coming back.
- `loss`: each frame sent to the peer is dropped with this probability; the session finds the gap, breaks the
  connection and resumes. A peer that hears nothing for `dead_after_s` breaks it as well. In a handshake a
  loss takes the connection with it, as in the simulator.
- `rate`: so many bytes per second are sent to the peer.

Faults on a peer combine; a new one replaces the one of its kind. The peer need not be there yet. A fault ends
after `for_s` by the loop's own timers, with or without an agent. The core never learns of any of this: it
sees a bad network, and at the end of a cut that the peer can be reached again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from broker_runtime.language.identifiers import check_id
from broker_runtime.language.problems import LanguageError
from broker_runtime.link.endpoint import Endpoint
from broker_runtime.net.detour import HELD_REASON, Conditions, Detour
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.shell import Shell, Wire
from broker_runtime.seam import RandomSource, Reachable
from broker_runtime.wire.frames import Frame, FrameKind, Greeting, Hello, WireError, decode_handshake

FAULTS_MAX: Final = 1000
FOR_S_MAX: Final = 1e7
EVERYBODY: Final = "*"
CUT_REASON: Final = "cut by a fault"
KINDS: Final[Mapping[str, tuple[str, float, float] | None]] = {  # what a value counts, above what, up to what
    "cut": None,
    "delay": ("seconds", 0.0, 60.0),
    "loss": ("of all frames", 0.0, 1.0),
    "rate": ("bytes per second", 0.0, 1e12),
}
_INTRODUCTIONS: Final = (FrameKind.GREETING, FrameKind.HELLO)


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    peer: str
    value: float = 0.0
    for_s: float | None = None
    number: int = 0  # of the order


@dataclass(slots=True)
class Running:
    fault: Fault
    began: float
    timer: asyncio.TimerHandle | None


def _silent(_: int, __: str) -> None:
    pass


class Faults:
    """The faults of one process, and the guard of its shell while there are any."""

    def __init__(self, shell: Shell, endpoint: Endpoint, source: RandomSource, log: LogWriter) -> None:
        self._shell = shell
        self._endpoint = endpoint
        self._source = source
        self._log = log
        self.complain: Callable[[int, str], None] = _silent
        self._loop = asyncio.get_running_loop()
        self._running: dict[tuple[str, str], Running] = {}  # by peer and kind
        self._conditions: dict[str, Conditions] = {}  # by peer

    def obey(self, order: Mapping[str, object]) -> None:
        """Carry out an order; ValueError says what is wrong with it."""
        if ("fault" in order) == ("heal" in order):
            raise ValueError("an order has either a fault or a heal")
        if "fault" in order:
            self.begin(read_fault(order))
        else:
            self.heal(_peer(order["heal"]) if order["heal"] != EVERYBODY else EVERYBODY)

    def begin(self, fault: Fault) -> None:
        key = (fault.peer, fault.kind)
        old = self._running.get(key)
        if old is None and len(self._running) >= FAULTS_MAX:
            raise ValueError(f"a process has at most {FAULTS_MAX} faults at once")
        if old is not None and old.timer is not None:
            old.timer.cancel()
        timer = self._loop.call_later(fault.for_s, self._end, key) if fault.for_s is not None else None
        self._running[key] = Running(fault, self._loop.time(), timer)
        fields = {"value": fault.value if fault.kind != "cut" else None, "for_s": fault.for_s}
        known = {name: value for name, value in fields.items() if value is not None}
        self._log.write("fault", {"fault": fault.kind, "peer": fault.peer, **known})
        self._apply(fault.peer)

    def heal(self, peer: str) -> None:
        for key in [key for key in self._running if peer in (key[0], EVERYBODY)]:
            self._end(key)

    def close(self) -> None:
        for running in self._running.values():
            if running.timer is not None:
                running.timer.cancel()
        self._running.clear()

    # The guard of the shell

    def lets_in(self, wire: Wire, frames: list[Frame]) -> bool:
        """Find out who is at the other end, before the core does: a cut peer is not heard."""
        if not wire.peer:
            wire.peer = self._endpoint.peer_of(wire.id) or _introduced(frames)
            conditions = self._conditions.get(wire.peer)
            if conditions is not None and conditions.cut:
                self._shell.cut(wire, CUT_REASON)
                return False
            if conditions is not None:
                self._divert(wire, conditions)
        return True

    def forbids(self, address: str) -> bool:
        target = self._endpoint.targets.get(address)
        conditions = self._conditions.get(target.peer) if target is not None else None
        return conditions is not None and conditions.cut

    # Inside

    def _end(self, key: tuple[str, str]) -> None:
        running = self._running.pop(key)
        if running.timer is not None:
            running.timer.cancel()
        peer, kind = key
        lasted_s = round(self._loop.time() - running.began, 6)
        self._log.write("heal", {"fault": kind, "peer": peer, "lasted_s": lasted_s})
        self._apply(peer)
        if kind == "cut":
            self._shell.feed(Reachable(peer))

    def _apply(self, peer: str) -> None:
        """Have the peer's connections meet the faults that there are now."""
        conditions = self._conditions.setdefault(peer, Conditions())
        conditions.cut = (peer, "cut") in self._running
        conditions.delay_s = self._value(peer, "delay")
        conditions.loss = self._value(peer, "loss")
        rate = self._value(peer, "rate")
        if rate and rate != conditions.rate:
            conditions.free_at = self._loop.time()
        conditions.rate = rate
        if not (conditions.cut or conditions.impaired):
            del self._conditions[peer]
        self._shell.guard = self if self._conditions else None
        for detour in list(conditions.detours):
            if conditions.impaired:
                detour.pump()
            else:
                detour.end()
        for wire in self._shell.wires:
            if (wire.peer or self._endpoint.peer_of(wire.id)) == peer:
                wire.peer = peer
                if conditions.cut:
                    self._shell.cut(wire, CUT_REASON)
                else:
                    self._divert(wire, conditions)

    def _divert(self, wire: Wire, conditions: Conditions) -> None:
        if conditions.impaired and not isinstance(wire.transport, Detour):
            Detour(wire, conditions, self._source, self._cut)

    def _cut(self, wire: Wire, reason: str) -> None:
        for (peer, kind), running in self._running.items():
            if reason == HELD_REASON and peer == wire.peer and kind in ("delay", "rate"):
                self.complain(running.fault.number, f"{HELD_REASON} for {peer}: its connection was closed")
        self._shell.cut(wire, reason)

    def _value(self, peer: str, kind: str) -> float:
        running = self._running.get((peer, kind))
        return running.fault.value if running is not None else 0.0


def read_fault(order: Mapping[str, object]) -> Fault:
    """The fault that an order describes; ValueError when it describes none."""
    kind = order.get("fault")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{kind!r} is no fault: {', '.join(KINDS)}")
    unit = KINDS[kind]
    value = _between(f"the value of {kind}", order.get("value"), *unit) if unit is not None else 0.0
    for_s = order.get("for_s")
    lease_s = None if for_s is None else _between("for_s", for_s, "seconds", 0.0, FOR_S_MAX)
    number = order.get("number", 0)
    return Fault(kind, _peer(order.get("peer")), value, lease_s, number if isinstance(number, int) else 0)


def _between(name: str, given: object, unit: str, above: float, most: float) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool) and above < given <= most:
        return float(given)
    raise ValueError(f"{name} is more than {above:g} and at most {most:g} {unit}, not {given!r}")


def _peer(given: object) -> str:
    try:
        return check_id(given if isinstance(given, str) else "")
    except LanguageError:
        raise ValueError(f"{given!r} is not the id of a peer") from None


def _introduced(frames: list[Frame]) -> str:
    """Whom the frames of a handshake come from; empty when they are something else."""
    for kind, body in frames:
        try:
            message = decode_handshake(kind, body) if kind in _INTRODUCTIONS else None
        except WireError:  # the core says why
            return ""
        if isinstance(message, Greeting):
            return message.broker
        if isinstance(message, Hello):
            return message.id
    return ""
