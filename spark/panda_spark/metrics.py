"""Decides which figures of a run can be compared, what is better and how they are printed; computes none.

The names are the columns of the table `summary`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", ""]

SIZES = {
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "bytes": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
}


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str  # s, bytes, per s, or empty for a number of things
    better: Better  # empty: neither; a difference is told and not judged
    says: str

    def show(self, value: float | None, *, signed: bool = False) -> str:
        """The value with three or four digits in a unit that suits its size."""
        if value is None:
            return "unknown"
        sizes = SIZES.get(self.unit, ((self.unit.replace("per ", "/"), 1.0),))
        name, size = next((each for each in sizes if abs(value) >= each[1]), sizes[-1])
        if not value:
            name, size = sizes[0] if self.unit == "s" else sizes[-1]
        return f"{plain(value / size, signed=signed)}{'' if name.startswith('/') or not name else ' '}{name}"


def plain(number: float, *, signed: bool = False) -> str:
    """Four digits that matter, never an exponent for what fits without one; 0 has no sign."""
    sign = "+" if signed and number > 0 else ""
    if number == 0:
        return "0"
    if abs(number) >= 1000:
        return f"{sign}{number:,.0f}" if abs(number) < 1e15 else f"{sign}{number:.3g}"
    return f"{sign}{number:.4g}"


METRICS: tuple[Metric, ...] = (
    Metric("published", "", "", "publications"),
    Metric("expected", "", "", "deliveries that subscriptions asked for"),
    Metric("delivered", "", "higher", "deliveries once, in order and in time"),
    Metric("late", "", "lower", "deliveries after too long a time"),
    Metric("lost", "", "lower", "deliveries that never came"),
    Metric("twice", "", "lower", "deliveries that came more than once"),
    Metric("out_of_order", "", "lower", "deliveries after a later one of the same publisher"),
    Metric("unexpected", "", "lower", "deliveries that nobody asked for"),
    Metric("unsettled", "", "", "deliveries that may be missing or not"),
    Metric("unknown", "", "lower", "deliveries of which the logs are missing"),
    Metric("latency_mean_s", "s", "lower", "mean latency"),
    Metric("latency_p50_s", "s", "lower", "median latency"),
    Metric("latency_p95_s", "s", "lower", "latency that 95 % stay below"),
    Metric("latency_p99_s", "s", "lower", "latency that 99 % stay below"),
    Metric("latency_max_s", "s", "lower", "longest latency"),
    Metric("latency_error_s", "s", "lower", "how wrong latencies may be by the clocks"),
    Metric("published_per_s", "per s", "higher", "publications a second"),
    Metric("delivered_per_s", "per s", "higher", "deliveries a second"),
    Metric("hops_mean", "", "lower", "brokers on the way"),
    Metric("records", "", "lower", "records between processes"),
    Metric("bytes", "bytes", "lower", "bytes between processes"),
    Metric("schedule_p50_s", "s", "lower", "how late the schedule was, at the median"),
    Metric("schedule_p99_s", "s", "lower", "how late the schedule was at worst, but for 1 %"),
    Metric("schedule_max_s", "s", "lower", "how late the schedule was at worst"),
    Metric("faults", "", "", "faults that were made"),
    Metric("failed", "", "lower", "processes that ended unexpectedly"),
    Metric("quarantined", "", "lower", "lines that could not be read"),
    Metric("missing", "", "lower", "logs that did not come home"),
    Metric("duration_s", "s", "", "length of the run"),
)
BY_NAME = {metric.name: metric for metric in METRICS}
