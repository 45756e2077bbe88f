"""Decides what each window of a followed run says and when it is final; knows no Spark and opens no file.

A window is final when the watermark has passed its end: the newest time seen in earlier batches, less a
delay. What comes later still is counted as late in the newest window, so that every line is counted once.
Latencies are kept as counts in buckets that grow by 2 %, so that a percentile is off by 1 % at most and a
window has a bounded size, however many deliveries it saw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

LATENCY_MIN_S = 1e-6  # what is less, or negative by the clocks' error, counts as 0
LATENCY_MAX_S = 1e6
BUCKET_GROWTH = 1.02
BUCKET_BELOW = -1  # of latencies under the least
BUCKET_LAST = math.ceil(math.log(LATENCY_MAX_S / LATENCY_MIN_S) / math.log(BUCKET_GROWTH))

Row = dict[str, Any]


class Group(NamedTuple):
    """Lines of one batch that belong to the same window and bucket of latency."""

    window: int | None  # its number; None: bad lines
    bucket: int | None  # None: no latency
    lines: int
    published: int
    delivered: int
    errors: int
    newest: float | None  # the latest time among them


@dataclass(slots=True)
class Tally:
    published: int = 0
    delivered: int = 0
    errors: int = 0
    late_lines: int = 0
    bad_lines: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, group: Group) -> None:
        self.published += group.published
        self.delivered += group.delivered
        self.errors += group.errors
        if group.bucket is not None:
            self.buckets[group.bucket] = self.buckets.get(group.bucket, 0) + group.delivered

    def percentile(self, share: float) -> float | None:
        """The latency that this share of the deliveries does not exceed."""
        rank = math.ceil(share * sum(self.buckets.values()))
        for bucket in sorted(self.buckets):
            rank -= self.buckets[bucket]
            if rank <= 0:
                return _latency_s(bucket)
        return None


@dataclass(slots=True)
class Windows:
    window_s: float
    watermark_s: float
    batch: int = -1  # the last one taken
    newest: float | None = None
    closed_before: int | None = None  # windows with a smaller number are final
    late_lines: int = 0  # that wait for a window to be counted in
    bad_lines: int = 0
    offsets: dict[str, float] = field(default_factory=dict)  # by host, the first that was known
    opened: dict[int, Tally] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # what the last step told

    def take(self, batch: int, groups: Iterable[Group]) -> list[Row]:
        """Count the lines of a batch; the rows of windows that changed or became final."""
        self.batch = batch
        changed: set[int] = set()
        newest = self.newest
        for group in groups:
            if group.window is None:
                self.bad_lines += group.lines
            elif self.closed_before is not None and group.window < self.closed_before:
                self.late_lines += group.lines
            else:
                self.opened.setdefault(group.window, Tally()).add(group)
                changed.add(group.window)
            if group.newest is not None:
                newest = group.newest if newest is None else max(newest, group.newest)
        changed |= self._place_waiting()
        self.newest = newest
        if newest is not None:
            self._close_before(math.floor((newest - self.watermark_s) / self.window_s))
        return self._told(changed)

    def close(self) -> list[Row]:
        """No more lines will come: all windows are final."""
        changed = self._place_waiting()
        if self.opened:
            self._close_before(max(self.opened) + 1)
        rows = self._told(changed)
        if self.late_lines or self.bad_lines:
            rows.append(self._row(None, Tally(late_lines=self.late_lines, bad_lines=self.bad_lines)))
            self.late_lines = self.bad_lines = 0
        return rows

    def data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Windows:
        """What `data` gave, after a journey as JSON, which knows no numbers as keys."""
        tallies = {
            int(window): Tally(**{**tally, "buckets": {int(b): n for b, n in tally["buckets"].items()}})
            for window, tally in data["opened"].items()
        }
        return cls(**{**data, "opened": tallies})

    # Inside

    def _place_waiting(self) -> set[int]:
        if not self.opened or not (self.late_lines or self.bad_lines):
            return set()
        last = max(self.opened)
        self.opened[last].late_lines += self.late_lines
        self.opened[last].bad_lines += self.bad_lines
        self.late_lines = self.bad_lines = 0
        return {last}

    def _close_before(self, window: int) -> None:
        self.closed_before = window if self.closed_before is None else max(window, self.closed_before)

    def _told(self, changed: set[int]) -> list[Row]:
        closed = self.closed_before
        final = {window for window in self.opened if closed is not None and window < closed}
        self.rows = [self._row(window, self.opened[window]) for window in sorted(changed | final)]
        for window in final:
            del self.opened[window]
        return self.rows

    def _row(self, window: int | None, tally: Tally) -> Row:
        closed = window is None or (self.closed_before is not None and window < self.closed_before)
        return {
            "window_s": None if window is None else [window * self.window_s, (window + 1) * self.window_s],
            "published": tally.published,
            "delivered": tally.delivered,
            "p50_s": tally.percentile(0.50),
            "p99_s": tally.percentile(0.99),
            "errors": tally.errors,
            "late_lines": tally.late_lines,
            "bad_lines": tally.bad_lines,
            "final": closed,
        }


def _latency_s(bucket: int) -> float:
    """The middle of the bucket."""
    if bucket == BUCKET_BELOW:
        return 0.0
    return float(f"{LATENCY_MIN_S * BUCKET_GROWTH ** (bucket + 0.5):.4g}")
