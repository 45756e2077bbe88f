"""Decides what the console knows of a run at one moment: plain values, never changed, no widget among them.

A `Snapshot` is made several times a second and handed to the screens. Brokers, links and clients are known by
the id that they have on the network (Alice), processes by the id that the topology gave them (BrokerA).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

NOTHING: Mapping[str, str] = MappingProxyType({})


class State(StrEnum):
    """How a broker or a process is, as far as anybody has said."""

    WAITING = "waiting"  # its time has not come
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    SILENT = "silent"  # it should run, and has not been heard of for a while
    ENDED = "ended"  # by itself or as planned
    FAILED = "failed"


LIVING = frozenset((State.STARTING, State.RUNNING, State.PAUSED, State.SILENT))


@dataclass(frozen=True, slots=True)
class Load:
    """What a broker measures of itself."""

    rate_in: float = 0.0  # records per second
    rate_out: float = 0.0
    queue_length: int = 0
    queueing_ms: float = 0.0
    matching_us: float = 0.0
    memory_bytes: int = 0
    subscriptions: int = 0
    advertisements: int = 0
    publications: int = 0
    dropped: int = 0
    uptime_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Broker:
    id: str
    state: State
    load: Load = Load()
    heard_at: float | None = None  # by our clock, when it last told of itself; None if it never did
    address: str = ""
    version: str = ""
    process: str = ""  # of the run that is watched, if it is one of that
    host: str = ""
    clients: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()

    @property
    def living(self) -> bool:
        return self.state in LIVING


@dataclass(frozen=True, slots=True)
class Link:
    """Between two brokers, `a` before `b` in the alphabet."""

    a: str
    b: str
    up_at_a: bool = False
    up_at_b: bool = False
    rate: float = 0.0  # records per second, both ways together
    bytes_per_s: float = 0.0
    queue_length: int = 0  # waiting on it, at both ends
    faults: tuple[str, ...] = ()  # in words: "cut", "delay 0.05"

    @property
    def up(self) -> bool:
        return self.up_at_a and self.up_at_b

    @property
    def key(self) -> tuple[str, str]:
        return (self.a, self.b)


@dataclass(frozen=True, slots=True)
class Client:
    id: str
    broker: str  # where it is connected
    state: State = State.RUNNING
    process: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The network as it is now, sorted by id, so that equal networks are equal values."""

    brokers: tuple[Broker, ...] = ()
    links: tuple[Link, ...] = ()
    clients: tuple[Client, ...] = ()

    def broker(self, id_: str) -> Broker | None:
        return next((each for each in self.brokers if each.id == id_), None)

    @property
    def shape(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """What a layout depends on: while it is equal, nodes need not move."""
        return (
            tuple(each.id for each in self.brokers),
            tuple(each.key for each in self.links),
            tuple((each.id, each.broker) for each in self.clients),
        )


@dataclass(frozen=True, slots=True)
class Process:
    id: str
    host: str
    state: State
    kind: str = ""  # broker, client or command
    speaks: str = ""  # its id on the network
    pid: int = 0
    starts: int = 0
    address: str = ""
    ended: str = ""  # exit code or signal, in words
    last: str = ""  # last lines of what it said
    links: tuple[str, ...] = ()  # peers it is linked with


@dataclass(frozen=True, slots=True)
class HostRow:
    name: str
    where: str = ""
    present: bool = False
    why: str = ""  # not present
    offset_s: float | None = None  # its clock is so much ahead of ours
    error_s: float | None = None
    drift: float = 0.0  # seconds that it gains in a second
    load: float | None = None  # of the last minute, in processors
    cpus: int = 0
    disk_free_bytes: int = 0
    memory_free_bytes: int = 0
    faults: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of one host; times in seconds since phase 2 began, by our clock."""

    number: int
    at_s: float
    action: str
    text: str  # as one would say it
    ends: tuple[str, ...] = ()  # of the link that a fault is on, in alphabetical order
    host: str = ""
    process: str = ""
    for_s: float | None = None
    actual_s: float | None = None
    error: str = ""
    line: int = 0

    @property
    def late_s(self) -> float | None:
        return None if self.actual_s is None else self.actual_s - self.at_s


class Connection(StrEnum):
    """The console's own client."""

    NONE = "no broker yet"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "connection lost"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of it at one moment."""

    at: float = 0.0  # our clock
    run: str = ""  # id; empty when only a broker is watched
    state: str = "nothing is watched"  # as `panda status` says it
    t0: float | None = None
    holder: str = ""  # who steers the run, if somebody does
    hosts: tuple[HostRow, ...] = ()
    processes: tuple[Process, ...] = ()
    steps: tuple[StepRow, ...] = ()
    marks: tuple[tuple[float, str], ...] = ()  # seconds since phase 2 began
    missing: tuple[str, ...] = ()  # what keeps the gate shut
    overlay: Overlay = Overlay()
    connection: Connection = Connection.NONE
    connected_to: str = ""  # the broker that the console is a client of
    why: str = ""  # it is not connected
    notes: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # by host: what is being done there

    @property
    def since_t0_s(self) -> float | None:
        return None if self.t0 is None else self.at - self.t0

    def process(self, id_: str) -> Process | None:
        return next((each for each in self.processes if each.id == id_), None)
