"""Decides what a topology is, whichever form it was written in; never reads a text or a file.

Two topologies mean the same when their steps and processes are equal: places are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from broker_runtime.addresses import Address

BROKER: Final = "broker"
CLIENT: Final = "client"
COMMAND: Final = "command"


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column count from 1; line 0 is the whole of it."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


class Action(StrEnum):
    ADD = "ADD"
    REMOVE = "REMOVE"
    KILL = "KILL"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    RESTART = "RESTART"
    CUT = "CUT"
    PARTITION = "PARTITION"
    DELAY = "DELAY"
    LOSS = "LOSS"
    RATE = "RATE"
    HEAL = "HEAL"
    MARK = "MARK"


PROCESS_ACTIONS: Final = frozenset((Action.REMOVE, Action.KILL, Action.PAUSE, Action.RESUME, Action.RESTART))
"""They name one process, and perhaps its host."""
VALUED_ACTIONS: Final = frozenset((Action.DELAY, Action.LOSS, Action.RATE))
LINK_ACTIONS: Final = frozenset((Action.CUT, Action.PARTITION, *VALUED_ACTIONS))
"""They break or worsen links."""
LEASED_ACTIONS: Final = frozenset((Action.REMOVE, Action.KILL, Action.PAUSE, *LINK_ACTIONS))
"""They may say for how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens at one time. Steps are numbered from 1 in order of time.

    The time of an ADD at 0 is phase 1; every other time counts from the moment at which phase 2 begins.
    """

    number: int
    at_s: float
    action: Action
    place: Place = field(compare=False)
    process: str = ""
    host: str = ""
    command: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """Process ids; meant are the links between groups. HEAL may name one (all its links) or none (all)."""
    value: float | None = None
    """DELAY in seconds, LOSS as a share from 0 to 1, RATE in bytes per second."""
    for_s: float | None = None
    text: str = ""
    spots: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)
    """Where its parts stand: `time`, `process`, `host`, `argument 0` …, and the members of groups by name."""

    def where(self, part: str) -> Place:
        return self.spots.get(part, self.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What an ADD line starts. Options that could not be read leave `speaks`, `listen` and `broker` empty."""

    id: str
    host: str
    command: tuple[str, ...]
    kind: str
    """`broker` or `client` of the runtime, or any other `command`."""
    word: str = ""
    """The runtime's word for it, such as `broker` or `sqpublisher`."""
    arguments: tuple[str, ...] = ()
    """After the word; of a plain command all of it."""
    speaks: str = ""
    """The id under which it is known in the overlay: Alice of `-i Alice`."""
    listen: Address | None = None
    neighbours: tuple[Address, ...] = ()
    broker: Address | None = None
    phase: int
    at_s: float
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class Link:
    """Two brokers, by process id; `a` is the one that dials."""

    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.a} – {self.b}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    name: str = field(compare=False)
    source: str = field(compare=False, repr=False)
    """The text as read, before a template was filled in."""
    steps: tuple[Step, ...] = ()
    processes: tuple[Process, ...] = ()
    hosts: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    unread: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Ids on lines that could not be read, so that they are not called unknown as well."""

    def process(self, id_: str) -> Process | None:
        return next((each for each in self.processes if each.id == id_), None)

    @property
    def brokers(self) -> tuple[Process, ...]:
        return tuple(each for each in self.processes if each.kind == BROKER)

    @property
    def clients(self) -> tuple[Process, ...]:
        return tuple(each for each in self.processes if each.kind == CLIENT)

    @property
    def end_s(self) -> float:
        """When the last thing happens that was written down, leases included."""
        return max((step.at_s + (step.for_s or 0.0) for step in self.steps), default=0.0)

    def summary(self) -> str:
        """`3 brokers, 2 clients on 3 hosts, 2 links; 5 steps over 12.5 s`."""
        others = len(self.processes) - len(self.brokers) - len(self.clients)
        started = [counted(len(self.brokers), "broker"), counted(len(self.clients), "client")]
        started += [counted(others, "command")] if others else []
        where = f"on {counted(len(self.hosts), 'host')}, {counted(len(self.links), 'link')}"
        return f"{', '.join(started)} {where}; {counted(len(self.steps), 'step')} over {self.end_s:g} s"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
