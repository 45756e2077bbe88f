"""Decides what a row of each table holds, and the figures that are made of deliveries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

SHARES = (0.5, 0.9, 0.95, 0.99)


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
    error_s: float | None
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
    late: bool
    in_order: bool
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
    key: str
    bucket_s: float | None
    count: int
    mean_s: float
    min_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    max_s: float
    error_s: float | None


class Tables(NamedTuple):
    publications: list[Publication]
    subscriptions: list[Subscription]
    deliveries: list[Delivery]
    verdicts: list[Verdict]
    latency: list[Latency]


def verdicts_of(deliveries: Iterable[Delivery]) -> list[Verdict]:
    counts = Counter((row.run, row.subscriber, row.class_, row.verdict) for row in deliveries)
    return [Verdict(*key, count) for key, count in counts.items()]


def percentile(ordered: list[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def latency_of(deliveries: Iterable[Delivery], bucket_s: float) -> list[Latency]:
    groups: dict[tuple[str, str, str, float | None], list[float]] = defaultdict(list)
    errors: dict[tuple[str, str, str, float | None], float] = {}
    for row in deliveries:
        if row.latency_s is None or row.published_s is None:
            continue
        run = row.run
        for key in (
            (run, "all", "", None),
            (run, "class", row.class_ or "", None),
            (run, "subscriber", row.subscriber, None),
            (run, "publisher", row.publisher, None),
            (run, "broker", row.broker or "", None),
            (run, "time", "", math.floor(row.published_s / bucket_s) * bucket_s),
        ):
            groups[key].append(row.latency_s)
            if row.error_s is not None:
                errors[key] = max(errors.get(key, 0.0), row.error_s)
    found = []
    for key, values in groups.items():
        values.sort()
        p50_s, p90_s, p95_s, p99_s = (percentile(values, share) for share in SHARES)
        figures = (math.fsum(values) / len(values), values[0], p50_s, p90_s, p95_s, p99_s, values[-1])
        found.append(Latency(*key, len(values), *figures, errors.get(key)))
    return found
