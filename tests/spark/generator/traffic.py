"""Decides what brokers count: records and bytes of each session, publications taken in; logs it every 5 s.

Totals of the truth are those that a reader of the logs can know: a broker that is killed takes along what it
counted after its last line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tests.spark.generator.files import LogFile
from tests.spark.generator.flow import Course
from tests.spark.generator.truth import Truth
from tests.spark.generator.world import World

EVERY_S: Final = 5.0
COUNTED: Final = ("records_in", "records_out", "bytes_in", "bytes_out")
CONTROL_BYTES: Final = 80  # of a subscription or advertisement
MATCHING_S: Final = 40e-6


class Traffic:
    def __init__(self, world: World, logs: dict[str, LogFile], truth: Truth) -> None:
        self.world = world
        self.logs = logs
        self.truth = truth
        self.sessions: list[dict[str, list[int]]] = [{} for _ in world.brokers]  # peer → as COUNTED
        self.publications = [0] * len(world.brokers)
        self.unwanted = [0] * len(world.brokers)
        self.subscriptions = [0] * len(world.brokers)
        self.began = [world.options.began + 0.6] * len(world.brokers)
        self._said_load: list[tuple[int, int]] = [(0, 0)] * len(world.brokers)
        self._said_counts: list[dict[str, list[int]]] = [{} for _ in world.brokers]

    # Counting

    def open(self, broker: int, peer: str) -> None:
        self.sessions[broker][peer] = [0, 0, 0, 0]

    def receive(self, broker: int, peer: str, records: int, bytes_: int) -> None:
        session = self.sessions[broker].get(peer)
        if session:
            session[0] += records
            session[2] += bytes_

    def send(self, broker: int, peer: str, records: int, bytes_: int) -> None:
        session = self.sessions[broker].get(peer)
        if session:
            session[1] += records
            session[3] += bytes_

    def cross(self, a: int, b: int, records: int, bytes_: int) -> None:
        """From one broker to its neighbour."""
        self.send(a, self.world.brokers[b].id, records, bytes_)
        self.receive(b, self.world.brokers[a].id, records, bytes_)

    def spread(self, client: int, brokers: set[int]) -> None:
        """A subscription or advertisement of a client goes to these brokers."""
        first = self.world.clients[client].broker
        self.receive(first, self.world.clients[client].id, 1, CONTROL_BYTES)
        edges = set()
        for broker in brokers:
            path = self.world.path(first, broker)
            edges |= set(pairwise(path))
        for a, b in sorted(edges):
            self.cross(a, b, 1, CONTROL_BYTES)

    def add(self, publisher: int, course: Course) -> None:
        """All that went this way since it was last added."""
        count, bytes_ = course.taken, course.taken * course.bytes
        course.taken = 0
        client = self.world.clients[publisher]
        self.receive(client.broker, client.id, count, bytes_)
        self.publications[client.broker] += count
        if not course.recipients:
            self.unwanted[client.broker] += count
        for a, b in course.edges:
            self.cross(a, b, count, bytes_)
            self.publications[b] += count
        for recipient in course.recipients:
            self.deliver(recipient.client, count, bytes_)

    def deliver(self, client: int, records: int, bytes_: int) -> None:
        to = self.world.clients[client]
        self.send(to.broker, to.id, records, bytes_)

    # Saying

    def say(self, broker: int, t: float) -> None:
        """The lines of every 5 s."""
        for peer in list(self.sessions[broker]):
            self._say_counts(broker, peer, t)
        self.say_load(broker, t)

    def say_load(self, broker: int, t: float) -> None:
        taken = self.publications[broker]
        self._said_load[broker] = (taken, self.unwanted[broker])
        log = self.logs.get(self.world.brokers[broker].id)
        if log is None:
            return
        log.add(
            t,
            "load",
            publications=taken,
            unwanted=self.unwanted[broker],
            subscriptions=self.subscriptions[broker],
            advertisements=len(self.world.publishers),
            queue_length=0,
            matchings=taken,
            memory_bytes=40_000_000 + 200 * taken % 10_000_000,
            queueing_s=round(taken * 2e-5, 6),
            matching_s=round(taken * MATCHING_S, 6),
            cpu_s=round(0.2 + 0.01 * (t - self.began[broker]) + taken * 1e-4, 6),
        )

    def _say_counts(self, broker: int, peer: str, t: float) -> None:
        session = self.sessions[broker][peer]
        self._said_counts[broker][peer] = list(session)
        log = self.logs.get(self.world.brokers[broker].id)
        if log is not None:
            role = "broker" if peer.startswith("B") else "client"
            figures = dict(zip(COUNTED, session, strict=True))
            log.add(t, "counts", peer=peer, role=role, **figures, queue_length=0, dropped=0)

    # Ends

    def end(self, broker: int, peer: str, t: float) -> None:
        """A session is over, and its broker says so."""
        if peer in self.sessions[broker]:
            self._say_counts(broker, peer, t)
            self._conclude(broker, peer)

    def stop(self, broker: int, t: float) -> None:
        for peer in list(self.sessions[broker]):
            self.end(broker, peer, t)
        self.say_load(broker, t)
        self._conclude_load(broker)

    def kill(self, broker: int) -> None:
        """Nothing is said any more."""
        for peer in list(self.sessions[broker]):
            self._conclude(broker, peer)
        self._conclude_load(broker)

    def _conclude(self, broker: int, peer: str) -> None:
        self.sessions[broker].pop(peer, None)
        said = self._said_counts[broker].pop(peer, None)
        id_ = self.world.brokers[broker].id
        if said is None or id_ not in self.logs:
            return
        totals = self.truth.traffic.setdefault(f"{id_} {peer}", {**dict.fromkeys(COUNTED, 0), "sessions": 0})
        totals["sessions"] += 1
        for name, figure in zip(COUNTED, said, strict=True):
            totals[name] += figure

    def _conclude_load(self, broker: int) -> None:
        id_ = self.world.brokers[broker].id
        if id_ in self.logs:
            totals = self.truth.load.setdefault(id_, {"publications": 0, "unwanted": 0})
            totals["publications"] += self._said_load[broker][0]
            totals["unwanted"] += self._said_load[broker][1]
        self._said_load[broker] = (0, 0)
        self.publications[broker] = self.unwanted[broker] = 0
