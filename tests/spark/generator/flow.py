"""Decides what becomes of every publication of a generated run: who gets it, when, and what the verdict is.

Time is cut into epochs in which nothing changes: no subscription begins, holds or settles, no fault begins or
ends. Within one, a publisher and a content always go the same way, which is worked out once: a `Course`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.spark.generator.world import Client, Fault, Subscription, World

PER_HOP_S: Final = 0.0005
LOST_BEFORE_KILL_S: Final = 0.05  # what a broker has in hand when it is killed


@dataclass(slots=True)
class Recipient:
    """A client that gets the publication, and for which subscriptions."""

    client: int
    to: str  # the list of ids, as JSON
    count: int
    subscriptions: list[Subscription]
    hops: int
    typical_s: float
    held_until: float  # by a cut; 0 when nothing holds it
    not_before: float  # a subscription that is just beginning
    plain: bool  # every subscription holds and has settled: what is planted here shows


@dataclass(slots=True)
class Course:
    """Where a publication goes in an epoch, and what it is owed but does not get."""

    recipients: list[Recipient] = field(default_factory=list)
    undelivered: list[tuple[Subscription, str]] = field(default_factory=list)  # with the verdict
    edges: set[tuple[int, int]] = field(default_factory=set)  # between brokers, from and to
    taken: int = 0  # publications that went this way since the traffic was last counted
    bytes: int = 0


class Epochs:
    """The courses of the epoch that holds now."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.settle_s = world.options.settle_s
        self.bounds = sorted(set(self._bounds()))
        self.next_change = -math.inf
        self.now = 0.0
        self.active: list[Fault] = []
        self.quiet = True
        self.courses: dict[tuple[int, int], Course] = {}
        self.forbidden = self._forbidden()

    def _bounds(self) -> Iterator[float]:
        world, settle_s = self.world, self.settle_s
        for each in world.subscriptions:
            from_, until = world.holds_from(each), world.holds_until(each)
            yield from (from_, from_ + settle_s, each.confirmed + each.lag_s)
            if until < math.inf:
                yield from (until, until - settle_s)
            if each.withdrawn is not None:
                yield each.withdrawn + each.linger_s
        for fault in world.faults:
            yield from (
                fault.at - 1.0,
                fault.at - LOST_BEFORE_KILL_S,
                fault.at,
                fault.healthy,
                fault.healthy + 0.5,
            )

    def _forbidden(self) -> list[tuple[float, float]]:
        """Around thresholds, where the errors of the clocks would decide the verdict."""
        world, margin_s = self.world, self.world.options.margin_s
        centres = set()
        for each in world.subscriptions:
            from_, until = world.holds_from(each), world.holds_until(each)
            centres |= {from_, from_ + self.settle_s, until, until - self.settle_s}
        return sorted((c - margin_s, c + margin_s) for c in centres if c < math.inf)

    def allowed(self, t: float) -> float:
        """The next time at which something may be published."""
        for low, high in self.forbidden:
            if low > t:
                return t
            if t < high:
                t = high
        return t

    def advance(self, t: float) -> bool:
        """Whether another epoch has begun."""
        if t < self.next_change:
            return False
        index = bisect_right(self.bounds, t)
        self.next_change = self.bounds[index] if index < len(self.bounds) else math.inf
        self.now = self.bounds[index - 1] if index else -math.inf
        self.active = [each for each in self.world.faults if each.at - LOST_BEFORE_KILL_S <= t < each.healthy]
        self.quiet = not any(f.at - 1.0 <= t < f.healthy + 0.5 for f in self.world.faults)
        self.courses = {}
        self.forbidden = [each for each in self.forbidden if each[1] > t]
        return True

    def mute(self, publisher: int) -> bool:
        """Whether its broker is away."""
        broker = self.world.clients[publisher].broker
        return any(fault.kind == "restart" and broker in fault.brokers for fault in self.active)

    def course(self, publisher: int, content: int) -> Course:
        key = (publisher, content)
        found = self.courses.get(key)
        if found is None:
            found = self.courses[key] = self._course(publisher, content)
        return found

    def _course(self, publisher: int, content: int) -> Course:
        world = self.world
        first = world.clients[publisher].broker
        publication_known = world.logged(publisher) or world.there(world.brokers[first].host)
        course = Course(bytes=len(world.contents[content].before_serial) + 40)
        groups: dict[int, list[Subscription]] = {}
        for n in world.matching[content]:
            each = world.subscriptions[n]
            if self._reaches(each, first):
                groups.setdefault(each.client, []).append(each)
                if world.logged(each.client):
                    continue
            verdict = self.undelivered(each)
            if verdict and publication_known:
                course.undelivered.append((each, verdict))
        for client, wanted in groups.items():
            recipient = self._recipient(client, wanted, first)
            course.recipients.append(recipient)
            path = world.path(first, world.clients[client].broker)
            course.edges.update(pairwise(path))
        return course

    def _reaches(self, each: Subscription, first: int) -> bool:
        client = self.world.clients[each.client]
        begins = each.confirmed + each.lag_s
        ends = client.ended if each.withdrawn is None else each.withdrawn + each.linger_s
        if not begins <= self.now < ends:
            return False
        path = self.world.path(first, client.broker)
        return not any(f.kind == "restart" and f.brokers[0] in path for f in self.active)

    def undelivered(self, each: Subscription) -> str | None:
        """The verdict if the subscription gets nothing now; None when it is not owed anything."""
        world, now = self.world, self.now
        from_, until = world.holds_from(each), world.holds_until(each)
        if not each.filter.judged or not world.known(each) or not from_ <= now < until:
            return None
        if not world.logged(each.client):
            return "unknown"
        return "lost" if from_ + self.settle_s <= now < until - self.settle_s else "unsettled"

    def _recipient(self, client: int, wanted: list[Subscription], first: int) -> Recipient:
        path = self.world.path(first, self.world.clients[client].broker)
        crossed = set(pairwise(path)) | set(pairwise(path[::-1]))
        held = max(
            (f.healthy for f in self.active if f.kind == "cut" and f.brokers in crossed and f.at <= self.now),
            default=0.0,
        )
        starting = max((each.confirmed for each in wanted if self.now < each.confirmed), default=0.0)
        owed = [self.undelivered(each) for each in wanted if each.filter.judged]
        return Recipient(
            client,
            "[" + ",".join(f'"{each.id}"' for each in wanted) + "]",
            len(wanted),
            wanted,
            len(path),
            0.0003 + PER_HOP_S * len(path),
            held,
            starting + 0.001 if starting else 0.0,
            bool(owed) and all(verdict == "lost" for verdict in owed),
        )


def arrival(client: Client, queued: float) -> float:
    """When a client sees what is queued for it."""
    if client.paused and client.paused[0] <= queued < client.paused[1]:
        return client.paused[1] + 0.0005
    return queued + 0.0002
