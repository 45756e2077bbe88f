"""The seam between what the agent decides and what is done about it: moments, effects, the ledger of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from broker_runtime.agent.spec import Process


class Moment(NamedTuple):
    """Now, by the clock that keeps time and by the one that tells it."""

    mono: float
    wall: float


@dataclass(frozen=True, slots=True)
class Append:
    """A line of the journal."""

    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sync:
    """Bring the journal to disk, then say how far it is."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Store the spec, on disk before anything that follows."""

    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    session: int
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a process; `life` tells this start of it from every other one."""

    process: Process
    life: int
    marker: str


@dataclass(frozen=True, slots=True)
class End:
    """End a process and what descends from it: SIGTERM, then after the grace SIGKILL until none is left."""

    process: str
    grace_s: float
    kill: bool = False


@dataclass(frozen=True, slots=True)
class Freeze:
    process: str
    frozen: bool


@dataclass(frozen=True, slots=True)
class Say:
    """A line to a process."""

    process: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """End whatever is left of any process of this run."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Answer and end the supervisor; with `clean`, after removing the run's folder."""

    session: int
    number: int
    clean: bool


Effect = Append | Sync | Keep | Answer | Spawn | End | Freeze | Say | Sweep | Leave


class Ledger:
    """Numbers journal entries, collects effects in order, and holds back what must wait for the disk."""

    def __init__(self) -> None:
        self.seq = 0
        self.durable = 0
        self._effects: list[Effect] = []
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    def write(self, now: Moment, kind: str, **fields: object) -> int:
        self.seq += 1
        entry = {"seq": self.seq, "t": round(now.wall, 6), "kind": kind, **fields}
        self._effects.append(Append(entry))
        return self.seq

    def add(self, effect: Effect) -> None:
        self._effects.append(effect)

    def when_durable(self, act: Callable[[], None]) -> None:
        """Act when everything written so far is on disk."""
        self._waiting.append((self.seq, act))
        self._effects.append(Sync())

    def synced(self, seq: int) -> None:
        self.durable = max(self.durable, seq)
        due = [act for at, act in self._waiting if at <= self.durable]
        self._waiting = [(at, act) for at, act in self._waiting if at > self.durable]
        for act in due:
            act()

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
