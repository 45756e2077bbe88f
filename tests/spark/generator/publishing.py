"""Decides the lines of every publication and delivery and the verdicts on them: the hot loop.

Deliveries of one source to one client keep their order unless a reordering is planted, as brokers keep it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from random import Random
from typing import Final

from tests.spark.generator.files import LogFile
from tests.spark.generator.flow import Course, Epochs, Recipient, arrival
from tests.spark.generator.traffic import EVERY_S, Traffic
from tests.spark.generator.truth import Pair, Truth
from tests.spark.generator.world import Client, Subscription, World

ONE_BY_ONE: Final = ("losses", "duplicates", "reorderings", "unexpected", "strangers", "detections")
WRITTEN_EVERY: Final = 2000  # publications
TWICE_AFTER_S: Final = 0.3
STRANGE: Final = "00000000"  # an incarnation that nobody has


@dataclass(slots=True)
class Waiting:
    """A delivery that waits to be overtaken by the next one of its source."""

    recipient: Recipient
    id: str
    made: float
    at: float
    shown: float
    class_: str | None


class Publishing:
    def __init__(self, world: World, logs: dict[str, LogFile], traffic: Traffic, truth: Truth) -> None:
        self.world = world
        self.options = world.options
        self.random = Random(world.options.seed + 1)
        self.logs = logs
        self.traffic = traffic
        self.truth = truth
        self.epochs = Epochs(world)
        self.in_use: list[tuple[int, Course]] = []
        self.lines = 0  # of publications and deliveries
        self._arrived: dict[tuple[int, int], float] = {}  # client, publisher → its last arrival
        self._waiting: dict[tuple[int, int], Waiting] = {}  # client, publisher → what is to be overtaken
        self._due = self._chosen()
        self._open: list[str] = []  # of what is due, what has found no place yet
        self._next_tick = world.t0 + EVERY_S
        self._strangers = 0
        self._others = sum(log.others for log in logs.values())

    def _chosen(self) -> dict[int, list[str]]:
        """What is to be planted at which of the logged publications."""
        expected = max(1, int(self.world.publications / self.options.log_every * 0.9))
        due: dict[int, list[str]] = {}
        for kind in ONE_BY_ONE:
            self.truth.planted[kind] = []
            for _ in range(getattr(self.options, kind)):
                due.setdefault(self.random.randrange(expected), []).append(kind)
        return due

    def run(self, happenings: list[tuple[float, Callable[[], None]]]) -> float:
        """Publish everything, with what happens meanwhile; returns when the last thing has arrived."""
        happenings = sorted(happenings, key=itemgetter(0), reverse=True)
        world, options, random, epochs = self.world, self.options, self.random, self.epochs
        publishers, contents = world.publishers, len(world.contents)
        step_s = 1 / options.rate_per_s
        t = world.publish_from
        made = logged = 0
        target = None if options.log_events is None else options.log_events - self._closing_lines()
        while publishers and (
            made < world.publications if target is None else self.lines + self._others < target
        ):
            t = epochs.allowed(t + step_s * (0.5 + random.random()))
            if t >= epochs.next_change:
                self._count_traffic()
                epochs.advance(t)
            while happenings and happenings[-1][0] <= t:
                self._tick(happenings[-1][0])
                self._count_traffic()
                happenings.pop()[1]()
            if t >= self._next_tick:
                self._tick(t)
            publisher = publishers[int(random.random() * len(publishers))]
            if epochs.active and epochs.mute(publisher):
                if not any(not epochs.mute(each) for each in publishers):
                    t = max(each.healthy for each in epochs.active)
                continue
            content = int(random.random() * contents)
            course = epochs.course(publisher, content)
            if not course.taken:
                self.in_use.append((publisher, course))
            course.taken += 1
            made += 1
            client = world.clients[publisher]
            client.number += 1
            if client.number % options.log_every:
                continue
            if logged in self._due:
                self._open += self._due[logged]
            self._publication(t, publisher, client, content, course)
            logged += 1
            if not logged % WRITTEN_EVERY:
                self._write(t)
        self._count_traffic()
        self._release_all()
        for _, happen in reversed(happenings):
            happen()
        return max([t, *self._arrived.values()])

    def _closing_lines(self) -> int:
        """How many lines are still to come when everything is stopped: of clients, brokers and links."""
        brokers = len(self.world.brokers)
        return 3 * len(self.world.clients) + 2 * brokers + 4 * (brokers - 1)

    # One publication

    def _publication(self, t: float, publisher: int, client: Client, number: int, course: Course) -> None:
        content = self.world.contents[number]
        id_ = f"{client.source}:{client.number}"
        shown = self.logs_time(client.host, t)
        ack_s = 0.0004 + 0.0008 * self.random.random()
        said = f"{content.before_serial}{client.number}{content.after_serial}"
        known = False
        log = self.logs.get(client.id)
        if log is not None:
            log.lines.append(
                (
                    t + ack_s,
                    f'{log.begin(t + ack_s)}publish","id":"{id_}","client":"{client.id}",'
                    f'"time":{shown:.6f},"ack_s":{ack_s:.6f},{said}}}',
                )
            )
            self.lines += 1
            known = True
        log = self.logs.get(self.world.brokers[client.broker].id)
        if log is not None:
            log.lines.append(
                (
                    t + 0.0002,
                    f'{log.begin(t + 0.0002)}publish","id":"{id_}","client":"{client.id}",'
                    f'"time":{shown:.6f},{said}}}',
                )
            )
            self.lines += 1
            known = True
        self.truth.publications += known
        class_ = content.class_ if known else None
        for subscription, verdict in course.undelivered:
            self._never(id_, subscription, class_, verdict)
        planted = self._planted(t, course) if self._open and known else None
        for recipient in course.recipients:
            if planted and planted[1] is recipient:
                self._with_plant(planted[0], recipient, publisher, id_, t, shown, class_)
            else:
                self._deliver(recipient, publisher, id_, t, shown, class_)
        if planted and planted[1] is None:
            self._alone(planted[0], publisher, id_, number, t, shown, course, class_)

    def logs_time(self, host: str, t: float) -> float:
        return self.world.clocks[host].shows(t)

    def _arrival(
        self, recipient: Recipient, publisher: int, t: float, *, waits: bool = False
    ) -> tuple[float, float]:
        """When it is queued for the client, and when it arrives."""
        queued = t + recipient.typical_s * (0.5 - 0.5 * math.log(1.0 - self.random.random()))
        queued = max(queued, recipient.held_until, recipient.not_before)
        key = (recipient.client, publisher)
        at = arrival(self.world.clients[recipient.client], queued)
        at = max(at, self._arrived.get(key, 0.0) + 0.00001)
        margin_s, late_s = self.options.margin_s, self.options.late_s
        if -margin_s < at - t - late_s < margin_s:
            at = t + late_s + margin_s
        self._arrived[key] = at
        if key in self._waiting:
            self._overtake(key, recipient, at, waits)
        return queued, at

    def _deliver(
        self,
        recipient: Recipient,
        publisher: int,
        id_: str,
        t: float,
        shown: float,
        class_: str | None,
        times: int = 1,
    ) -> None:
        queued, at = self._arrival(recipient, publisher, t)
        client = self.world.clients[recipient.client]
        self._queued_line(recipient.client, id_, recipient.hops, queued)
        if client.id not in self.logs:
            return
        if at >= client.log_ends:
            for each in recipient.subscriptions:
                verdict = self.epochs.undelivered(each)
                if verdict and class_ is not None:
                    self._never(id_, each, class_, verdict)
            return
        self._arrived_line(recipient, id_, at, shown)
        for n in range(1, times):
            self._queued_line(recipient.client, id_, recipient.hops, queued + TWICE_AFTER_S * n)
            self._arrived_line(recipient, id_, at + TWICE_AFTER_S * n, shown)
        self._judge(recipient, id_, t, at, class_, times)

    def _queued_line(self, to: int, id_: str, hops: int, t: float) -> None:
        client = self.world.clients[to]
        log = self.logs.get(self.world.brokers[client.broker].id)
        if log is not None:
            log.lines.append(
                (t, f'{log.begin(t)}deliver","id":"{id_}","client":"{client.id}","hops":{hops}}}')
            )
            self.lines += 1

    def _arrived_line(self, recipient: Recipient, id_: str, at: float, shown: float) -> None:
        client = self.world.clients[recipient.client]
        log = self.logs[client.id]
        to = f',"to":{recipient.to}' if self.options.names_subscriptions else ""
        latency_s = log.clock.shows(at) - shown
        log.lines.append(
            (
                at,
                f'{log.begin(at)}deliver","id":"{id_}","client":"{client.id}","hops":{recipient.hops},'
                f'"time":{shown:.6f},"latency_s":{latency_s:.6f},"subscriptions":{recipient.count}{to}}}',
            )
        )
        self.lines += 1

    # Verdicts

    def _judge(
        self,
        recipient: Recipient,
        id_: str,
        t: float,
        at: float,
        class_: str | None,
        times: int,
        in_order: bool = True,
        verdict: str = "",
    ) -> None:
        """The verdict on what arrived; without a class, no log knows of the publication."""
        truth = self.truth
        subscriber = self.world.clients[recipient.client].id
        latency_s = at - t if class_ is not None else None
        late = latency_s is not None and latency_s > self.options.late_s
        if not verdict:
            verdict = "delivered"
            if class_ is None:
                verdict = "unknown"
            elif times > 1:
                verdict = "twice"
            elif not in_order:
                verdict = "out of order"
            elif late:
                verdict = "late"
        count = recipient.count
        truth.verdicts[subscriber, class_, verdict] += count
        truth.hops[subscriber, recipient.hops] += count
        if latency_s is not None:
            truth.latencies += count
            truth.latency_sum_s += count * latency_s
            truth.latency_max_s = max(truth.latency_max_s, latency_s)
        if not self.options.keeps_rows:
            return
        for each in recipient.subscriptions:
            named = self.options.names_subscriptions or verdict not in ("unexpected", "unknown")
            truth.pairs.append(
                Pair(
                    id_,
                    each.id if named else None,
                    subscriber,
                    id_.partition(":")[0],
                    class_,
                    verdict,
                    times,
                    latency_s,
                    recipient.hops,
                    in_order,
                    late,
                )
            )

    def _never(self, id_: str, each: Subscription, class_: str | None, verdict: str) -> None:
        subscriber = self.world.clients[each.client].id
        self.truth.verdicts[subscriber, class_, verdict] += 1
        if self.options.keeps_rows:
            publisher = id_.partition(":")[0]
            self.truth.pairs.append(Pair(id_, each.id, subscriber, publisher, class_, verdict, 0))

    # What is planted

    def _planted(self, t: float, course: Course) -> tuple[str, Recipient | None] | None:
        """What can be planted here of what is due, and at which recipient."""
        if not self.epochs.quiet:
            return None
        kind = self._open[0]
        if kind in ("unexpected", "strangers", "detections"):
            self._open.pop(0)
            return kind, None
        plain = [each for each in course.recipients if each.plain and self._undisturbed(each.client, t)]
        if not plain:
            self._open.append(self._open.pop(0))
            return None
        self._open.pop(0)
        return kind, self.random.choice(plain)

    def _undisturbed(self, client: int, t: float) -> bool:
        return t + 2.0 < self.world.clients[client].log_ends

    def _with_plant(
        self,
        kind: str,
        recipient: Recipient,
        publisher: int,
        id_: str,
        t: float,
        shown: float,
        class_: str | None,
    ) -> None:
        subscriber = self.world.clients[recipient.client].id
        if kind == "losses":
            self.truth.planted[kind].append((id_, subscriber))
            self.traffic.deliver(recipient.client, -1, 0)
            if class_ is not None:
                for each in recipient.subscriptions:
                    if each.filter.judged:
                        self._never(id_, each, class_, "lost")
        elif kind == "duplicates":
            self.truth.planted[kind].append((id_, subscriber))
            self.traffic.deliver(recipient.client, 1, 0)
            self._deliver(recipient, publisher, id_, t, shown, class_, times=2)
        else:
            _, at = self._arrival(recipient, publisher, t, waits=True)
            self._waiting[recipient.client, publisher] = Waiting(recipient, id_, t, at, shown, class_)

    def _overtake(self, key: tuple[int, int], other: Recipient, at: float, waits: bool) -> None:
        """What waits is overtaken by the next delivery for the same subscriptions, if that is soon enough."""
        waiting = self._waiting[key]
        soon = at - waiting.made < self.options.late_s - 2 * self.options.margin_s
        if other.to != waiting.recipient.to or waits or not soon:
            self._release(key)
            return
        del self._waiting[key]
        self._arrived[key] = at + 0.00002
        self.truth.planted["reorderings"].append((waiting.id, self.world.clients[key[0]].id))
        self._late_line(waiting, at + 0.00002, in_order=False)

    def _release(self, key: tuple[int, int]) -> None:
        """What waits is not overtaken, and goes first."""
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            self._open.append("reorderings")
            self._late_line(waiting, waiting.at, in_order=True)

    def _late_line(self, waiting: Waiting, at: float, in_order: bool) -> None:
        recipient = waiting.recipient
        self._queued_line(recipient.client, waiting.id, recipient.hops, at - 0.00001)
        self._arrived_line(recipient, waiting.id, at, waiting.shown)
        self._judge(recipient, waiting.id, waiting.made, at, waiting.class_, 1, in_order)

    def _alone(
        self,
        kind: str,
        publisher: int,
        id_: str,
        content: int,
        t: float,
        shown: float,
        course: Course,
        class_: str | None,
    ) -> None:
        """Something for a client that does not get this publication."""
        found = self._outsider(content, t, course)
        if found is None:
            self._open.append(kind)
            return
        each, client = found
        hops = len(self.world.path(self.world.clients[publisher].broker, client.broker))
        key = (each.client, publisher)
        self._release(key)
        at = max(t + 0.004, self._arrived.get(key, 0.0) + 0.00001)
        if kind == "detections":
            self._detection(each, client, id_, at, shown)
            return
        if kind == "strangers":
            self._strangers += 1
            id_ = f"{self.world.clients[publisher].id}:{STRANGE}:{self._strangers * self.options.log_every}"
            class_ = None
        else:
            self._arrived[key] = at
        recipient = Recipient(each.client, f'["{each.id}"]', 1, [each], hops, 0.0, 0.0, 0.0, True)
        self._arrived_line(recipient, id_, at, shown)
        self.traffic.deliver(each.client, 1, 0)
        self.truth.planted[kind].append((id_, client.id))
        sure = kind == "unexpected" or self.world.logged(publisher)
        self._judge(recipient, id_, t, at, class_, 1, verdict="unexpected" if sure else "unknown")

    def _outsider(self, content: int, t: float, course: Course) -> tuple[Subscription, Client] | None:
        """A subscription that holds and does not match, of a client for which nothing matches."""
        world = self.world
        matched = {world.subscriptions[n].client for n in world.matching[content]}
        fitting = [
            each
            for each in world.subscriptions
            if each.client not in matched
            and each.filter.judged
            and world.logged(each.client)
            and self.epochs.undelivered(each) == "lost"
            and self._undisturbed(each.client, t)
        ]
        if not fitting:
            return None
        each = self.random.choice(fitting)
        return each, world.clients[each.client]

    def _detection(self, each: Subscription, client: Client, id_: str, at: float, shown: float) -> None:
        log = self.logs[client.id]
        number = len(self.truth.detections) + 1
        fields = {
            "id": f"{client.source}:d{number}",
            "client": client.id,
            "subscription": f"{client.source}:c1",
            "events": [id_],
            "time": round(shown, 6),
            "latency_s": round(log.clock.shows(at) - shown, 6),
        }
        log.add(at, "detect", **fields)
        self.truth.detections.append({**fields, "t": at})
        self.truth.planted["detections"].append((id_, client.id))

    # Batches

    def _tick(self, t: float) -> None:
        self._count_traffic()
        while self._next_tick <= t:
            for broker in range(len(self.world.brokers)):
                if not self.world.away(broker, self._next_tick):
                    self.traffic.say(broker, self._next_tick)
            self._next_tick += EVERY_S
        self._others = sum(log.others for log in self.logs.values())

    def _count_traffic(self) -> None:
        for publisher, course in self.in_use:
            self.traffic.add(publisher, course)
        self.in_use.clear()

    def _release_all(self) -> None:
        for key in list(self._waiting):
            self._release(key)

    def _write(self, t: float) -> None:
        self._release_all()
        for log in self.logs.values():
            log.write_until(t)
