"""Decides whether figures are as expected: `lost=0`, `latency_p99_s<0.5`; computes none of them."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from panda.analysis.refusals import AnalysisRefused

# The columns of the table `summary`, as docs/tables.md has them; a test compares the two.
METRICS = (
    "published", "expected", "delivered", "late", "lost", "twice", "out_of_order", "unexpected", "unsettled",
    "unknown", "latency_mean_s", "latency_p50_s", "latency_p95_s", "latency_p99_s", "latency_max_s",
    "latency_error_s", "published_per_s", "delivered_per_s", "hops_mean", "records", "bytes",
    "schedule_p50_s", "schedule_p99_s", "schedule_max_s", "faults", "failed", "quarantined", "missing",
    "duration_s",
)  # fmt: skip

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_EXPECTATION = re.compile(rf"\s*(\w+)\s*(<=|>=|!=|==|=|<|>)\s*({_NUMBER})\s*")
_THRESHOLD = re.compile(r"\s*(\w+)\s*:\s*[+-]?\s*[\d.].*")


@dataclass(frozen=True, slots=True)
class Expectation:
    text: str
    metric: str
    comparison: str
    value: float

    def judge(self, summary: Mapping[str, Any]) -> str:
        """Empty when it is met, else what is instead."""
        found = summary.get(self.metric)
        if not isinstance(found, (int, float)) or isinstance(found, bool):
            return f"{self.text} is expected, and {self.metric} has no value"
        if _COMPARISONS[self.comparison](found, self.value):
            return ""
        return f"{self.text} is expected, and {self.metric} is {found:g}"


def expectation_of(text: str) -> Expectation:
    read = _EXPECTATION.fullmatch(text)
    if read is None:
        raise AnalysisRefused(
            f"{text!r} is no expectation", "say METRIC=N, METRIC<N, <=, >, >= or !=, such as lost=0"
        )
    known_metric(read[1])
    return Expectation(text.strip(), read[1], read[2], float(read[3]))


def check_threshold(text: str) -> str:
    """The threshold as it was said, if it looks like one: `latency_p99_s:+10%`, `lost:0`.

    So that a slip is refused before Spark is started; what it means is the comparison's matter.
    """
    read = _THRESHOLD.fullmatch(text)
    if read is None:
        raise AnalysisRefused(
            f"{text!r} is no threshold", "say METRIC:+N% or METRIC:N, such as latency_p99_s:+10%"
        )
    known_metric(read[1])
    return text.strip()


def known_metric(name: str) -> None:
    if name not in METRICS:
        near = difflib.get_close_matches(name, METRICS, 1, 0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(METRICS)}"
        raise AnalysisRefused(f"there is no metric {name!r}", hint)


def verdict_of(summary: Mapping[str, Any]) -> str:
    """What became of what was to be delivered, in a few words."""
    names = ("lost", "twice", "out_of_order", "late", "unexpected", "unknown")
    wrong = [f"{summary[name]} {name.replace('_', ' ')}" for name in names if summary.get(name)]
    expected = summary.get("expected")
    if wrong:
        return f"{', '.join(wrong)}, of {expected} expected deliveries"
    if not expected:
        return "nothing was to be delivered"
    return f"all of {expected} expected deliveries came, once, in order, in time"
