"""Decides who is there and when: brokers in a tree, clients, subscriptions, faults; publishes nothing.

All times are true ones, by the controller's clock. What changes in mid-run, faults too, has a slot of time of
its own, so that no two changes meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.spark.generator.clocks import HostClock
from tests.spark.generator.content import Content, Filter, contents_of, filter_of, unjudged_filter
from tests.spark.generator.options import Options

GO_S: Final = 2.0  # from the beginning to T0
SUBSCRIBERS_S: Final = 1.0  # from T0
SPREAD_S: Final = 0.5  # within which the clients of a kind start
BROKER_PORT: Final = 10_000
UNWRITTEN_S: Final = 0.25  # what a killed process has not written yet
TAKEN_S: Final = 0.001  # from a client to its broker, or back
SLOT_MIN_S: Final = 0.5  # for a change, also when nothing is published any more
EXIT_S: Final = 0.02  # from a client's last line to its end


@dataclass(slots=True)
class Broker:
    id: str
    host: str
    port: int
    neighbours: list[int] = field(default_factory=list)
    dials: int | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(slots=True)
class Client:
    id: str
    host: str
    broker: int
    incarnation: str
    publishes: bool
    started: float
    number: int = 0  # of its last message
    ended: float = math.inf  # its last line, or when it was killed
    killed: bool = False
    paused: tuple[float, float] | None = None
    advertisement: Filter | None = None

    @property
    def source(self) -> str:
        return f"{self.id}:{self.incarnation}"

    @property
    def log_ends(self) -> float:
        return self.ended - UNWRITTEN_S if self.killed else self.ended

    def next_id(self) -> str:
        self.number += 1
        return f"{self.source}:{self.number}"


@dataclass(slots=True)
class Subscription:
    id: str
    client: int
    filter: Filter
    taken: float  # when its broker took it
    confirmed: float  # when the client knew
    withdrawn: float | None = None  # when the client asked for that; its broker took it a moment later
    lag_s: float = 0.0  # from `confirmed` until publications follow it; negative: some came before
    linger_s: float = 0.0  # from `withdrawn` until they do so no longer


@dataclass(slots=True)
class Fault:
    kind: str  # cut, pause, restart
    at: float
    until: float
    brokers: tuple[int, ...] = ()
    client: int | None = None
    healthy: float = 0.0  # from when on everything flows again


class World:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.random = random = Random(options.seed)
        self.t0 = options.began + GO_S
        self.hosts = [f"10.0.{1 + n // 200}.{1 + n % 200}" for n in range(options.hosts)]
        self.missing = set(random.sample(self.hosts, options.missing_hosts))
        self.clocks = {host: HostClock(options, random) for host in self.hosts}
        self.contents: list[Content] = contents_of(options, random)
        self.brokers = self._brokers()
        self.paths = _paths(self.brokers)
        self.clients: list[Client] = []
        self.subscriptions: list[Subscription] = []
        self.faults: list[Fault] = []
        self._clients()
        self.publishers = [n for n, each in enumerate(self.clients) if each.publishes]
        self.subscribers = [n for n, each in enumerate(self.clients) if not each.publishes]
        self._subscribe_all()
        self.publish_from = self.t0 + SUBSCRIBERS_S + SPREAD_S + options.settle_s + 2 * options.margin_s
        self.matching = [
            [n for n, each in enumerate(self.subscriptions) if each.filter.matches(content)]
            for content in self.contents
        ]
        self.publications = self._estimate()
        self.publish_until = self.publish_from + self.publications / options.rate_per_s
        self.changed_until = self.publish_from
        self._change()

    # The beginning

    def _brokers(self) -> list[Broker]:
        brokers: list[Broker] = []
        for n in range(self.options.brokers):
            port = BROKER_PORT + n // len(self.hosts)
            broker = Broker(f"B{n}", self.hosts[n % len(self.hosts)], port)
            if n:
                broker.dials = self.random.randrange(max(0, n - 4), n)
                broker.neighbours.append(broker.dials)
                brokers[broker.dials].neighbours.append(n)
            brokers.append(broker)
        return brokers

    def _clients(self) -> None:
        random, options = self.random, self.options
        for publishes, count in ((False, options.subscribers), (True, options.publishers)):
            for n in range(count):
                broker = random.randrange(len(self.brokers))
                beside = self.brokers[broker].host if random.random() < 0.5 else random.choice(self.hosts)
                started = self.t0 + SUBSCRIBERS_S + 0.9 * SPREAD_S * n / count
                client = Client(
                    f"{'P' if publishes else 'S'}{n}",
                    beside,
                    broker,
                    f"{random.getrandbits(32):08x}",
                    publishes,
                    round(started, 3),
                )
                client.advertisement = filter_of(options, random) if publishes else None
                if publishes:
                    client.next_id()  # of the advertisement
                self.clients.append(client)

    def _subscribe_all(self) -> None:
        random, options = self.random, self.options
        filters: list[Filter] = []
        for client in self.subscribers:
            for _ in range(options.subscriptions_each):
                if filters and random.random() < options.shared_filters:
                    wanted = random.choice(filters)
                else:
                    wanted = filter_of(options, random)
                    filters.append(wanted)
                self._subscribe(client, wanted, self.clients[client].started + 0.02)
        if self.subscriptions:
            for chosen in random.sample(self.subscriptions, min(options.unjudged, len(self.subscriptions))):
                chosen.filter = unjudged_filter(options, random)
        for _ in range(options.starting if self.subscribers else 0):
            self._subscribe(random.choice(self.subscribers), filter_of(options, random), math.inf)

    def _subscribe(self, client: int, wanted: Filter, at: float) -> None:
        id_ = self.clients[client].next_id()
        self.subscriptions.append(Subscription(id_, client, wanted, at - TAKEN_S, at))

    def _estimate(self) -> int:
        """How many publications there are; when lines are asked for, about how many it takes."""
        options = self.options
        if not self.publishers:
            return 0
        if options.log_events is None:
            return options.publications
        fan_outs = [len({self.subscriptions[n].client for n in each}) for each in self.matching]
        lines_each = 2 + 2 * sum(fan_outs) / len(fan_outs)
        return max(1, math.ceil(options.log_events / lines_each * options.log_every))

    # Changes in mid-run

    def _change(self) -> None:
        options, random = self.options, self.random
        kinds = [
            *["start"] * (options.starting if self.subscribers else 0),
            *["withdraw"] * options.ending,
            *["remove"] * options.removed,
            *["kill"] * options.killed,
            *["pause"] * options.pauses,
            *["cut"] * (options.cuts if len(self.brokers) > 1 else 0),
            *["restart"] * (options.broker_restarts if self.brokers else 0),
        ]
        if not kinds:
            return
        random.shuffle(kinds)
        starting = [each for each in self.subscriptions if each.confirmed == math.inf]
        spared = {each.client for each in starting}
        lasting = [n for n in self.subscribers if n not in spared]
        random.shuffle(lasting)
        settled = [each for each in self.subscriptions if each.confirmed != math.inf]
        span_s = max(self.publish_until - self.publish_from, SLOT_MIN_S * len(kinds))
        self.changed_until = self.publish_from + span_s
        slot_s = 0.8 * span_s / len(kinds)
        for n, kind in enumerate(kinds):
            at = round(self.publish_from + 0.1 * span_s + slot_s * (n + 0.2), 3)
            fault_s = min(options.fault_s, 0.5 * slot_s)
            if kind == "start":
                self._start(starting.pop(), at)
            elif kind == "withdraw":
                lasting = self._withdraw(settled, lasting, at)
            elif kind == "cut":
                a = random.randrange(1, len(self.brokers))
                b = self.brokers[a].dials
                assert b is not None
                self.faults.append(Fault("cut", at, at + fault_s, (a, b), healthy=at + 1.2 * fault_s))
            elif kind == "restart":
                broker = (random.randrange(len(self.brokers)),)
                self.faults.append(Fault("restart", at, at + fault_s, broker, healthy=at + 1.4 * fault_s))
            elif lasting:
                self._end_or_pause(kind, lasting.pop(), at, fault_s)

    def _start(self, subscription: Subscription, at: float) -> None:
        subscription.taken, subscription.confirmed = at - TAKEN_S, at
        subscription.lag_s = self.random.uniform(-0.2, 0.4) * self.options.settle_s

    def _withdraw(self, settled: list[Subscription], lasting: list[int], at: float) -> list[int]:
        """Withdraw one; its client is not removed, killed or paused then."""
        fitting = [
            each for each in settled if each.withdrawn is None and self.clients[each.client].ended == math.inf
        ]
        if not fitting:
            return lasting
        chosen = self.random.choice(fitting)
        chosen.withdrawn = at
        chosen.linger_s = self.random.uniform(0.0, 0.4) * self.options.settle_s
        return [n for n in lasting if n != chosen.client]

    def _end_or_pause(self, kind: str, client: int, at: float, fault_s: float) -> None:
        if kind == "pause":
            self.clients[client].paused = (at, at + fault_s)
            self.faults.append(Fault("pause", at, at + fault_s, client=client, healthy=at + fault_s))
            return
        self.clients[client].ended = at
        self.clients[client].killed = kind == "kill"

    # What can be seen of it

    def there(self, host: str) -> bool:
        return host not in self.missing

    def logged(self, client: int) -> bool:
        return self.clients[client].host not in self.missing

    def known(self, subscription: Subscription) -> bool:
        """Whether a log tells of the subscription."""
        client = self.clients[subscription.client]
        return self.there(client.host) or self.there(self.brokers[client.broker].host)

    def holds_from(self, subscription: Subscription) -> float:
        return subscription.confirmed if self.logged(subscription.client) else subscription.taken

    def holds_until(self, subscription: Subscription) -> float:
        """As the logs show it; for those that last, infinite: that is after all publications."""
        client = self.clients[subscription.client]
        logged = self.logged(subscription.client)
        broker_logged = self.there(self.brokers[client.broker].host)
        until = math.inf
        if subscription.withdrawn is not None and logged:
            until = subscription.withdrawn
        elif subscription.withdrawn is not None and broker_logged:
            until = subscription.withdrawn + TAKEN_S
        ended = client.ended if logged and not client.killed else client.ended + EXIT_S
        return min(until, ended)

    def away(self, broker: int, t: float) -> bool:
        """Whether it was killed and not started again yet."""
        return any(f.kind == "restart" and broker in f.brokers and f.at <= t < f.until for f in self.faults)

    def path(self, a: int, b: int) -> tuple[int, ...]:
        """The brokers from one to another, both included."""
        return self.paths[a, b]


def _paths(brokers: list[Broker]) -> dict[tuple[int, int], tuple[int, ...]]:
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for start in range(len(brokers)):
        found[start, start] = (start,)
        open_ = [start]
        while open_:
            at = open_.pop()
            for other in brokers[at].neighbours:
                if (start, other) not in found:
                    found[start, other] = (*found[start, at], other)
                    open_.append(other)
    return found
