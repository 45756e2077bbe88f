"""Decides what is remembered of an execution: the only thing that checkers may look at.

Windows lie between the moments at which the network was quiet: nothing on its way, nothing queued, nothing
awaited. `order` numbers everything remembered, so that before and after need no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker_runtime.client_core import Happening
from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.language.values import Value
from broker_runtime.link.session import Policy
from broker_runtime.routing.forwarding import Covering

ADVERTISE, UNADVERTISE = "advertise", "unadvertise"
SUBSCRIBE, UNSUBSCRIBE = "subscribe", "unsubscribe"
PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class Call:
    """What a client asked for. `with_session`: whether it had a session to ask it in."""

    order: int
    window: int
    client: str
    kind: str
    id: str
    body: object
    with_session: bool = True
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    order: int
    window: int
    client: str
    happening: Happening


@dataclass(frozen=True, slots=True)
class Arrival:
    """A publication that reached a client's process, whether or not the client still wanted it."""

    order: int
    window: int
    client: str
    source: str
    number: int
    urgent: bool
    content: Mapping[str, Value]
    payload: bytes

    @property
    def id(self) -> str:
        return f"{self.source}:{self.number}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An unsubscription was confirmed while these brokers still had the subscription."""

    window: int
    client: str
    id: str
    holders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionState:
    peer: str
    id: str
    up: bool
    role: str
    unsent: int
    in_flight: int
    input: int
    blocked: bool
    dropped: int


@dataclass(frozen=True, slots=True)
class Told:
    """One neighbour's share of a table: what it must be served with, and what it has heard of."""

    wanted: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker's tables at a quiet moment."""

    name: str
    advertisements: dict[tuple[str, str], Advertisement]
    subscriptions: dict[tuple[str, str], Subscription]
    told_advertisements: dict[str, Told]
    told_subscriptions: dict[str, Told]
    other_ways: int
    awaited: int
    unconfirmed: int
    congested: int
    edges: tuple[tuple[str, str], ...]
    sessions: dict[str, SessionState]


@dataclass(slots=True)
class Client:
    """What is fixed for one incarnation of a client; its key is the source of its publications."""

    key: str
    id: str
    broker: str
    policy: Policy


@dataclass(slots=True)
class History:
    tree: tuple[tuple[str, str], ...] = ()
    brokers: tuple[str, ...] = ()
    covering: Covering = Covering.OFF
    monitors: bool = False
    window: int = 0
    clients: dict[str, Client] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    departures: list[tuple[int, str]] = field(default_factory=list)  # window, client
    confirmations: list[Confirmation] = field(default_factory=list)
    links_opened: list[tuple[int, str, str]] = field(default_factory=list)  # window, two brokers
    links_ended: list[tuple[int, str, str]] = field(default_factory=list)
    restarts: list[tuple[int, str]] = field(default_factory=list)  # window, broker
    extra_links: bool = False  # somebody tried to close a cycle
    quiet: list[dict[str, BrokerState]] = field(default_factory=list)  # per window, at its end
    withdrawn: bool = False  # everything was withdrawn before the last quiet moment
    problems: list[str] = field(default_factory=list)  # what the cluster itself could not let pass
    _order: int = 0

    def next_order(self) -> int:
        self._order += 1
        return self._order
