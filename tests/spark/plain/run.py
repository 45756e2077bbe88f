"""Decides what one run's files say of its publications, subscriptions and deliveries."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.spark.plain.matching import CannotJudge, Content, Test, class_of, content_of, test_of
from tests.spark.plain.reading import Clock, is_good, json_lines
from tests.spark.plain.rows import Delivery, Publication, Subscription


class Made:
    """A publication, as its lines tell."""

    __slots__ = ("ack_s", "broker", "class_", "content", "error_s", "host", "publisher", "t", "time")

    def __init__(self, line: dict[str, Any]) -> None:
        self.publisher: str = line["client"]
        self.time: float = line["time"]
        self.class_: str | None = line.get("class")
        self.content: Content = content_of(line)
        self.host = ""
        self.broker: str | None = None
        self.ack_s: float | None = None
        self.t = 0.0
        self.error_s: float | None = None


class Asked:
    """A subscription, as its lines tell."""

    __slots__ = ("broker", "class_", "from_", "host", "own", "tests", "text", "until", "why")

    def __init__(self, line: dict[str, Any]) -> None:
        self.text: str = line["text"]
        self.host = ""
        self.broker: str | None = None
        self.own = False
        self.from_ = math.inf
        self.until = math.inf
        self.class_: str | None = class_of(line["filter"])
        self.tests: list[Test] = []
        self.why: str | None = None
        try:
            self.tests = [test_of(part) for part in line["filter"]]
        except CannotJudge as problem:
            self.why = str(problem)

    def matches(self, content: Content) -> bool:
        if self.why is not None:
            return False
        return all(test(content) for test in self.tests)


class Arrival:
    """How a publication arrived for a subscription."""

    __slots__ = ("hops", "host", "in_order", "t", "times")

    def __init__(self, t: float, host: str, hops: int, in_order: bool) -> None:
        self.t = t
        self.host = host
        self.hops = hops
        self.in_order = in_order
        self.times = 1


Key = tuple[str, str | None]  # subscriber and subscription


class Run:
    def __init__(self, folder: Path, late_s: float, settle_s: float) -> None:
        self.folder = folder
        self.late_s = late_s
        self.settle_s = settle_s
        self.made: dict[str, Made] = {}
        self.asked: dict[Key, Asked] = {}
        self.by_client: dict[str, list[tuple[Key, Asked]]] = defaultdict(list)
        self.delivered: list[tuple[str, str, list[str] | None, float, str, int]] = []
        self.withdrawn: dict[Key, float] = {}
        self.connected: dict[str, str] = {}  # client → its first broker
        self.ends: dict[str, list[float]] = defaultdict(list)  # client → when it closed or its process ended
        self.heard: set[str] = set()  # who wrote a good line
        self.first, self.last = math.inf, -math.inf
        self.t0: float | None = None
        self._records()

    def _records(self) -> None:
        """What the controller kept: plan, clocks, journal."""
        plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        self.name: str = plan["run"]
        self.host_of = {each["speaks"]: each["host"] for each in plan["processes"] if each["speaks"]}
        speaks = {each["id"]: each["speaks"] for each in plan["processes"]}
        measured = defaultdict(list)
        for entry in json_lines(self.folder / "clocks.jsonl"):
            point = (entry["at"] + entry["offset_s"], entry["offset_s"], entry["error_s"])
            measured[entry["host"]].append(point)
        self.clocks: dict[str, Clock] = defaultdict(lambda: Clock([]))
        self.clocks.update((host, Clock(points)) for host, points in measured.items())
        for entry in json_lines(self.folder / "journal.jsonl"):
            if entry.get("kind") == "go":
                self.t0 = entry["t0"]
            elif entry.get("kind") == "agent" and entry["event"]["kind"] == "exited":
                at = self.clocks[entry["host"]].corrected(entry["event"]["t"])
                self.ends[speaks.get(entry["event"]["process"], "")].append(at)

    def read(self) -> None:
        for path in sorted(self.folder.glob("hosts/*/processes/*/log.jsonl*")):
            if path.name in ("log.jsonl", "log.jsonl.gz"):
                for line in json_lines(path):
                    if is_good(line):
                        self._line(line)
        if self.t0 is None:
            self.t0 = self.first if self.first < math.inf else 0.0
        self._settle_publications()
        self._settle_subscriptions()

    def _line(self, line: dict[str, Any]) -> None:
        host, kind = line["host"], line["kind"]
        t = self.clocks[host].corrected(line["t"])
        self.first, self.last = min(self.first, t), max(self.last, t)
        self.heard.add(line["proc"])
        if kind == "deliver":
            if "latency_s" in line:
                to = line.get("to")
                self.delivered.append((line["id"], line["client"], to, line["t"], host, line["hops"]))
        elif kind == "publish":
            self._publish(line)
        elif kind == "subscribe":
            self._subscribe(line, t)
        elif kind == "unsubscribe":
            key = (line["client"], line["id"])
            self.withdrawn[key] = min(t, self.withdrawn.get(key, t))
        elif kind == "connected":
            self.connected.setdefault(line["proc"], line["broker"])
        elif kind == "disconnected" and line["reason"] == "closed":
            self.ends[line["proc"]].append(t)

    def _publish(self, line: dict[str, Any]) -> None:
        made = self.made.get(line["id"])
        if made is None:
            made = self.made[line["id"]] = Made(line)
        if "ack_s" in line:
            made.ack_s = line["ack_s"]
            made.host = line["host"]
        else:
            made.broker = made.broker or line["proc"]
            made.host = made.host or line["host"]

    def _subscribe(self, line: dict[str, Any], t: float) -> None:
        key = (line["client"], line["id"])
        asked = self.asked.get(key)
        if asked is None:
            asked = self.asked[key] = Asked(line)
            self.by_client[line["client"]].append((key, asked))
        own = line["proc"] == line["client"]
        if not own and asked.broker is None:
            asked.broker = line["proc"]
        if (own, -t) > (asked.own, -asked.from_):
            asked.own, asked.from_, asked.host = own, t, line["host"]

    def _settle_publications(self) -> None:
        for made in self.made.values():
            made.host = self.host_of.get(made.publisher, made.host)
            offset_s, made.error_s = self.clocks[made.host].at(made.time)
            made.t = made.time - offset_s
            made.broker = made.broker or self.connected.get(made.publisher)

    def _settle_subscriptions(self) -> None:
        for key, asked in self.asked.items():
            client = key[0]
            asked.host = self.host_of.get(client, asked.host)
            asked.broker = asked.broker or self.connected.get(client)
            ends = list(self.ends.get(client, ()))
            if key in self.withdrawn:
                ends.append(self.withdrawn[key])
            asked.until = min([each for each in ends if each >= asked.from_], default=self.last)
            asked.until = min(asked.until, self.last)

    # Pairs

    def deliveries(self) -> Iterator[Delivery]:
        arrived = self._arrivals()
        by_class: dict[str | None, list[tuple[Key, Asked]]] = defaultdict(list)
        for key, asked in self.asked.items():
            if asked.why is None:
                by_class[asked.class_].append((key, asked))
        for id_, made in self.made.items():
            mine = arrived.pop(id_, {})
            candidates = by_class.get(made.class_, [])
            if None in by_class and made.class_ is not None:
                candidates = candidates + by_class[None]
            for key, asked in candidates:
                if asked.matches(made.content):
                    arrival = mine.pop(key, None)
                    if arrival is not None or asked.from_ <= made.t <= asked.until:
                        yield self._row(id_, made, key, asked, arrival, fits=True)
            for key, arrival in mine.items():
                found = self.asked.get(key)
                fits = found.why is not None if found is not None else key[1] is not None
                yield self._row(id_, made, key, found, arrival, fits=fits)
        for id_, mine in arrived.items():
            for key, arrival in mine.items():
                yield self._row(id_, None, key, self.asked.get(key), arrival, fits=False)

    def _arrivals(self) -> dict[str, dict[Key, Arrival]]:
        arrived: dict[str, dict[Key, Arrival]] = {}
        highest: dict[tuple[str, str | None, str], int] = {}
        for id_, client, to, t, host, hops in self.delivered:
            source, _, digits = id_.rpartition(":")
            number = number_of(digits)
            mine = arrived.setdefault(id_, {})
            for subscription in self._meant(id_, client) if to is None else to:
                key = (client, subscription)
                before = mine.get(key)
                if before is not None:
                    before.times += 1
                    continue
                seen = highest.get((client, subscription, source), -1)
                mine[key] = Arrival(t, host, hops, number >= seen)
                if number > seen:
                    highest[client, subscription, source] = number
        self.delivered.clear()
        return arrived

    def _meant(self, id_: str, client: str) -> list[str | None]:
        """For which subscriptions a delivery was that does not say."""
        made = self.made.get(id_)
        found = [
            key[1] for key, asked in self.by_client.get(client, ()) if made and asked.matches(made.content)
        ]
        return found or [None]

    def _row(
        self,
        id_: str,
        made: Made | None,
        key: Key,
        asked: Asked | None,
        arrival: Arrival | None,
        *,
        fits: bool,
    ) -> Delivery:
        assert self.t0 is not None
        published_s = made.t - self.t0 if made else None
        delivered_s = latency_s = error_s = None
        if arrival is not None:
            offset_s, arrival_error_s = self.clocks[arrival.host].at(arrival.t)
            delivered_s = arrival.t - offset_s - self.t0
            if made and made.host == arrival.host:
                latency_s, error_s = round(arrival.t - made.time, 6), 0.0
            elif made:
                latency_s = round(arrival.t - offset_s - made.t, 6)
                if arrival_error_s is not None and made.error_s is not None:
                    error_s = arrival_error_s + made.error_s
        late = latency_s is not None and latency_s > self.late_s
        return Delivery(
            self.name,
            id_,
            key[1],
            key[0],
            made.publisher if made else id_.partition(":")[0],
            made.class_ if made else None,
            asked.broker if asked else None,
            published_s,
            delivered_s,
            latency_s,
            error_s,
            arrival.hops if arrival else None,
            arrival.times if arrival else 0,
            late,
            arrival.in_order if arrival else True,
            self._verdict(id_, made, key, asked, arrival, fits=fits, late=late),
        )

    def _verdict(
        self,
        id_: str,
        made: Made | None,
        key: Key,
        asked: Asked | None,
        arrival: Arrival | None,
        *,
        fits: bool,
        late: bool,
    ) -> str:
        settle_s = self.settle_s
        if arrival is None:
            assert made is not None
            assert asked is not None
            if key[0] not in self.heard:
                return "unknown"
            settled = asked.from_ + settle_s <= made.t <= asked.until - settle_s
            return "lost" if settled else "unsettled"
        if made is None:
            return "unexpected" if id_.partition(":")[0] in self.heard else "unknown"
        if not fits:
            return "unexpected"
        if (
            asked is not None
            and asked.why is None
            and not asked.from_ - settle_s <= made.t <= asked.until + settle_s
        ):
            return "unexpected"
        if arrival.times > 1:
            return "twice"
        if not arrival.in_order:
            return "out of order"
        return "late" if late else "delivered"

    # Rows

    def publications(self) -> Iterator[Publication]:
        assert self.t0 is not None
        for id_, made in self.made.items():
            source, _, digits = id_.rpartition(":")
            yield Publication(
                self.name,
                id_,
                made.publisher,
                source,
                number_of(digits),
                made.class_,
                made.broker,
                made.host,
                made.t,
                made.t - self.t0,
                made.error_s,
                made.ack_s,
            )

    def subscriptions(self) -> Iterator[Subscription]:
        assert self.t0 is not None
        for (client, id_), asked in self.asked.items():
            assert id_ is not None
            yield Subscription(
                self.name,
                id_,
                client,
                asked.broker,
                asked.host,
                asked.class_,
                asked.text,
                asked.from_ - self.t0,
                asked.until - self.t0,
                asked.why is None,
                asked.why,
            )


def number_of(digits: str) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() else -1
