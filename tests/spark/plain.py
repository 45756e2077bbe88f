"""Decides delivery and latency of runs in plain Python: the yardstick that the Spark analysis is held to.

    python -m tests.spark.plain RUNFOLDER… --out FILE      a JSON line for every row, with its `table`

It computes `publications`, `subscriptions`, `deliveries`, `verdicts` and `latency` of docs/tables.md. Exactly:

Lines. All `hosts/*/processes/*/log.jsonl` and `.gz`, in the order of their paths. A line is passed over when it has
more than LINE_MAX_BYTES, is no UTF-8 or no JSON object, has another version than 1, lacks a field that every line or
its kind must have, or has one of another type. Fields and kinds that are not known do not matter.

Clocks. A host's measurements in clocks.jsonl are points: at `at` + `offset_s` by its own clock it was `offset_s`
ahead. Between two of them offset and error are interpolated linearly, outside the nearest holds; a host without any
has offset and error 0. A time of a host is corrected by subtracting its offset at that time. T0 is `t0` of the
journal's `go`; without one it is the earliest corrected `t` of a line.

Publications. One for each id of a `publish` line; the line with `ack_s` is the client's own, the others are brokers'.
It was made at `time`, corrected by the clock of its host: where plan.json has the process that `speaks` as the client;
else where the client's own line came from; else the broker's. `broker` is who wrote the first broker's line, else the
first that the client says it is `connected` to.

Subscriptions. One for each client and id of a `subscribe` line, however often it is issued. It holds from the first
of the client's own lines (they have `ack_s`), else of the brokers', until the earliest of: its first `unsubscribe` line
(again the client's own first), the client's last `disconnected` line with the reason `closed`, the first `exited` event
of its process in the controller's journal, each only when not before its beginning; and the last line of any log. It
is not judged when a predicate has an operator that is not built in, or no operand (a variable), or one that JSON
could not write.

Matching. As broker_runtime/language/predicates.py has it: kinds never mix, integers and floats are one kind, null is
present and compares with nothing, `class` is a text.

Deliveries. Arrivals are the `deliver` lines with `latency_s`, one for each id in `to`; a line without `to` is for each
judged subscription of the client that matches, and when there is none, for the subscription null. A pair of
publication and subscription has a row when it was expected (it matches, and from ≤ published ≤ until) or arrived.
The first arrival gives `delivered_s`, `latency_s`, `error_s`, `hops`; all four are null when nothing arrived, as are
`late` and `in_order`. Latency is the difference of the corrected times, and its error the sum of both errors; on one
host it is the difference of the times as written, and the error is 0. `late`: more than `late_s`. `in_order` is false
when an earlier first arrival of the same source for the same subscription had a higher number. `broker` is that of
the subscription. Where no log has the publication, all that comes from it is null, latency too.

Verdicts, the first that applies:
  nothing arrived: `unknown` when no good line of the subscriber came home; `lost` when from + settle ≤ published ≤
  until − settle; else `unsettled`
  no log has the publication: `unknown` when no good line of its publisher came home, else `unexpected`
  it does not match, or was made before from − settle or after until + settle, or no such subscription is known:
  `unexpected` (a subscription that is not judged matches always, and holds always)
  it came more than once: `twice`; not `in_order`: `out of order`; `late`: `late`; else `delivered`

Latency. Of all rows that have one, grouped `by` all, class, subscriber, publisher, broker, and by time in buckets of
BUCKET_S of `published_s`; `key` is null for all and time, and rows whose key is null are in no group of it.
Percentiles are interpolated linearly between the closest ranks; `error_s` is the largest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

LATE_S = 1.0
SETTLE_S = 1.0
BUCKET_S = 1.0
LINE_MAX_BYTES = 1 << 20
LANES = ("texts", "integers", "floats", "dates", "flags")
NUMBER, TEXT, WHOLE, TABLE, LIST = (int, float), (str,), (int,), (dict,), (list,)
COMMON = {"t": NUMBER, "host": TEXT, "run": TEXT, "proc": TEXT, "kind": TEXT}
REQUIRED: dict[str, dict[str, tuple[type, ...]]] = {
    "publish": {"id": TEXT, "client": TEXT, "time": NUMBER},
    "deliver": {"id": TEXT, "client": TEXT, "hops": WHOLE},
    "subscribe": {"id": TEXT, "client": TEXT, "text": TEXT, "filter": LIST},
    "unsubscribe": {"id": TEXT, "client": TEXT},
    "connected": {"broker": TEXT},
    "disconnected": {"reason": TEXT},
}
OPTIONAL: dict[str, dict[str, tuple[type, ...]]] = {
    "publish": {"ack_s": NUMBER, "class": TEXT, **dict.fromkeys(LANES, TABLE)},
    "deliver": {"time": NUMBER, "latency_s": NUMBER, "subscriptions": WHOLE, "to": LIST},
    "subscribe": {"ack_s": NUMBER},
}
NOTHING: dict[str, Any] = {}


class Publication(NamedTuple):
    run: str
    publication: str
    publisher: str
    source: str
    number: int
    class_: str | None
    broker: str | None
    host: str
    t: float
    published_s: float
    error_s: float
    ack_s: float | None


class Subscription(NamedTuple):
    run: str
    subscription: str
    subscriber: str
    broker: str | None
    host: str
    class_: str | None
    text: str
    from_s: float
    until_s: float
    judged: bool
    why: str | None


class Delivery(NamedTuple):
    run: str
    publication: str
    subscription: str | None
    subscriber: str
    publisher: str
    class_: str | None
    broker: str | None
    published_s: float | None
    delivered_s: float | None
    latency_s: float | None
    error_s: float | None
    hops: int | None
    times: int
    late: bool | None
    in_order: bool | None
    verdict: str


class Verdict(NamedTuple):
    run: str
    subscriber: str
    class_: str | None
    verdict: str
    count: int


class Latency(NamedTuple):
    run: str
    by: str
    key: str | None
    bucket_s: float | None
    count: int
    mean_s: float
    min_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    max_s: float
    error_s: float


class Tables(NamedTuple):
    publications: list[Publication]
    subscriptions: list[Subscription]
    deliveries: list[Delivery]
    verdicts: list[Verdict]
    latency: list[Latency]


# Reading


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
    with opened as file:
        for line in file:
            if len(line) > LINE_MAX_BYTES:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def has(line: dict[str, Any], fields: dict[str, tuple[type, ...]], *, required: bool) -> bool:
    for name, types in fields.items():
        value = line.get(name)
        if value is None and (required or name in line):
            return False
        if value is not None and (not isinstance(value, types) or value is True or value is False):
            return False
    return True


def is_good(line: dict[str, Any]) -> bool:
    if line.get("v") != 1 or line["v"] is True or not has(line, COMMON, required=True):
        return False
    kind = line["kind"]
    return has(line, REQUIRED.get(kind, NOTHING), required=True) and has(
        line, OPTIONAL.get(kind, NOTHING), required=False
    )


class Clock:
    """One host's clock, by its measurements."""

    def __init__(self, measured: list[tuple[float, float, float]]) -> None:
        measured.sort()
        self.times = [each[0] for each in measured]
        self.offsets = [each[1] for each in measured]
        self.errors = [each[2] for each in measured]

    def at(self, t: float) -> tuple[float, float]:
        """Offset and error at a time of its own."""
        times = self.times
        right = bisect_right(times, t)
        if right == 0:
            return (self.offsets[0], self.errors[0]) if times else (0.0, 0.0)
        if right == len(times):
            return self.offsets[-1], self.errors[-1]
        left = right - 1
        share = (t - times[left]) / (times[right] - times[left])
        return (
            self.offsets[left] + share * (self.offsets[right] - self.offsets[left]),
            self.errors[left] + share * (self.errors[right] - self.errors[left]),
        )

    def corrected(self, t: float) -> float:
        return t - self.at(t)[0]


# Matching: a content is (class and texts, integers, floats, dates, flags)

Content = tuple[dict[str, Any], ...]
Test = Callable[[Content], bool]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda v, o: v == o,
    "neq": lambda v, o: v != o,
    "<": lambda v, o: v < o,
    "<=": lambda v, o: v <= o,
    ">": lambda v, o: v > o,
    ">=": lambda v, o: v >= o,
    "str-prefix": lambda v, o: v.startswith(o),
    "str-postfix": lambda v, o: v.endswith(o),
    "str-contains": lambda v, o: o in v,
}
PRESENT = {
    "*": (0, 1, 2, 3, 4),
    "@STRING": (0,),
    "@INTEGER": (1,),
    "@FLOAT": (1, 2),
    "@DATE": (3,),
    "@BOOLEAN": (4,),
}
OPERANDS = {"texts": (0,), "numbers": (1, 2), "dates": (3,), "flags": (4,)}


def content_of(line: dict[str, Any]) -> Content:
    texts, *others = (line.get(lane, NOTHING) for lane in LANES)
    return ({**texts, "class": line["class"]} if "class" in line else texts, *others)


class CannotJudge(Exception):
    """Nobody but the program itself knows what this predicate means."""


def test_of(part: Any) -> Test:
    """What one predicate of a filter asks."""
    if not isinstance(part, dict) or not isinstance(part.get("attribute"), str):
        raise CannotJudge("a predicate that cannot be read")
    attribute, op = part["attribute"], part.get("op")
    if op == "isPresent":
        lanes = PRESENT.get(part.get("type", ""))
        if lanes is None:
            raise CannotJudge(f"isPresent {part.get('type')}")
        return lambda content: any(attribute in content[lane] for lane in lanes)
    named = next((name for name in OPERANDS if isinstance(part.get(name), list) and part[name]), None)
    if op != "in" and op not in COMPARISONS:
        raise CannotJudge(f"operator {op}")
    if named is None or None in part[named]:
        raise CannotJudge(f"{op} without an operand")
    return comparison(attribute, op, OPERANDS[named], part[named])


def comparison(attribute: str, op: str, lanes: tuple[int, ...], operands: list[Any]) -> Test:
    if op == "in":
        members = frozenset(operands)
        compare: Callable[[Any, Any], bool] = lambda v, o: v in members  # noqa: E731
    else:
        compare = COMPARISONS[op]
    operand = operands[0]
    if len(lanes) == 1:
        (lane,) = lanes

        def test(content: Content) -> bool:
            value = content[lane].get(attribute)
            return value is not None and compare(value, operand)

        return test

    def test_number(content: Content) -> bool:
        value = content[1].get(attribute)
        if value is None:
            value = content[2].get(attribute)
        return value is not None and compare(value, operand)

    return test_number


# One run


class Made:
    """A publication, as its lines tell."""

    __slots__ = ("ack_s", "broker", "content", "error_s", "host", "publisher", "t", "time")

    def __init__(self, publisher: str, time: float, content: Content) -> None:
        self.publisher = publisher
        self.time = time
        self.content = content
        self.host = ""
        self.broker: str | None = None
        self.ack_s: float | None = None
        self.t = 0.0
        self.error_s = 0.0

    @property
    def class_(self) -> str | None:
        return self.content[0].get("class")


class Asked:
    """A subscription, as its lines tell."""

    __slots__ = ("broker", "class_", "from_", "host", "own", "tests", "text", "until", "why", "withdrawn")

    def __init__(self, line: dict[str, Any]) -> None:
        self.text: str = line["text"]
        self.host = ""
        self.broker: str | None = None
        self.own = False
        self.from_ = math.inf
        self.until = math.inf
        self.withdrawn: tuple[bool, float] | None = None
        self.class_: str | None = None
        self.tests: list[Test] = []
        self.why: str | None = None
        try:
            self.tests = [test_of(part) for part in line["filter"]]
        except CannotJudge as problem:
            self.why = str(problem)
        for part in line["filter"]:
            if isinstance(part, dict) and part.get("attribute") == "class" and part.get("op") == "eq":
                self.class_ = next(iter(part.get("texts", ())), None)

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
        self.connected: dict[str, str] = {}  # client → its first broker
        self.closed: dict[str, float] = {}  # client → its last `disconnected`, corrected
        self.exits: dict[str, list[float]] = defaultdict(list)
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
                self.exits[speaks.get(entry["event"]["process"], "")].append(at)

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
            asked = self.asked.get((line["client"], line["id"]))
            own = line["proc"] == line["client"]
            if asked and (
                asked.withdrawn is None or (not own, t) < (not asked.withdrawn[0], asked.withdrawn[1])
            ):
                asked.withdrawn = (own, t)
        elif kind == "connected":
            self.connected.setdefault(line["proc"], line["broker"])
        elif kind == "disconnected" and line["reason"] == "closed":
            self.closed[line["proc"]] = max(t, self.closed.get(line["proc"], t))

    def _publish(self, line: dict[str, Any]) -> None:
        made = self.made.get(line["id"])
        if made is None:
            made = self.made[line["id"]] = Made(line["client"], line["time"], content_of(line))
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
        own = "ack_s" in line
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
        for (client, _), asked in self.asked.items():
            asked.host = self.host_of.get(client, asked.host)
            asked.broker = asked.broker or self.connected.get(client)
            ends = [asked.withdrawn[1]] if asked.withdrawn else []
            ends += self.exits.get(client, [])
            if client in self.closed:
                ends.append(self.closed[client])
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
                fits = found is not None and found.why is not None
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
                latency_s, error_s = arrival.t - made.time, 0.0
            elif made:
                latency_s, error_s = arrival.t - offset_s - made.t, arrival_error_s + made.error_s
        late = latency_s > self.late_s if latency_s is not None else None
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
            arrival.in_order if arrival else None,
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
        late: bool | None,
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
        if not fits or asked is None:
            return "unexpected"
        if asked.why is None and not asked.from_ - settle_s <= made.t <= asked.until + settle_s:
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


# Figures


def verdicts_of(deliveries: Iterable[Delivery]) -> list[Verdict]:
    counts = Counter((row.run, row.subscriber, row.class_, row.verdict) for row in deliveries)
    return [Verdict(*key, count) for key, count in counts.items()]


def percentile(ordered: list[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def latency_of(deliveries: Iterable[Delivery]) -> list[Latency]:
    groups: dict[tuple[str, str, str | None, float | None], list[float]] = defaultdict(list)
    errors: dict[tuple[str, str, str | None, float | None], float] = defaultdict(float)
    for row in deliveries:
        if row.latency_s is None or row.error_s is None or row.published_s is None:
            continue
        run = row.run
        keys = [
            (run, "all", None, None),
            (run, "subscriber", row.subscriber, None),
            (run, "publisher", row.publisher, None),
            (run, "time", None, math.floor(row.published_s / BUCKET_S) * BUCKET_S),
        ]
        if row.class_ is not None:
            keys.append((run, "class", row.class_, None))
        if row.broker is not None:
            keys.append((run, "broker", row.broker, None))
        for key in keys:
            groups[key].append(row.latency_s)
            errors[key] = max(errors[key], row.error_s)
    found = []
    for key, values in groups.items():
        values.sort()
        shares = [percentile(values, share) for share in (0.5, 0.9, 0.95, 0.99)]
        mean_s = math.fsum(values) / len(values)
        found.append(Latency(*key, len(values), mean_s, values[0], *shares, values[-1], errors[key]))
    return found


def analyze(folders: Iterable[Path], late_s: float = LATE_S, settle_s: float = SETTLE_S) -> Tables:
    tables = Tables([], [], [], [], [])
    for folder in folders:
        run = Run(folder, late_s, settle_s)
        run.read()
        tables.publications.extend(run.publications())
        tables.subscriptions.extend(run.subscriptions())
        tables.deliveries.extend(run.deliveries())
    tables.verdicts.extend(verdicts_of(tables.deliveries))
    tables.latency.extend(latency_of(tables.deliveries))
    return tables


def write(tables: Tables, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for table, rows in tables._asdict().items():
            for row in rows:
                fields = {name.rstrip("_"): value for name, value in row._asdict().items()}
                file.write(json.dumps({"table": table, **fields}, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.plain")
    parser.add_argument("folders", nargs="+", type=Path, metavar="RUNFOLDER")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--late", type=float, default=LATE_S)
    parser.add_argument("--settle", type=float, default=SETTLE_S)
    said = parser.parse_args()
    write(analyze(said.folders, said.late, said.settle), said.out)


if __name__ == "__main__":
    main()
