"""Decides what a threshold such as `latency_p99_s:+10%` says, and whether it is crossed; measures nothing."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from panda_spark.metrics import BY_NAME, Metric
from panda_spark.refusal import Refused

ROUNDING = 1e-9  # share of the greater value: B exactly at the threshold does not cross it
_TEXT = re.compile(r"([^:\s]+)\s*:\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(\S*)", re.ASCII)
_UNITS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "per s": {"/s": 1.0},
    "": {},
}
_EXAMPLES = "latency_p99_s:+10%, latency_p50_s:+2ms, delivered_per_s:-5%, lost:0"


@dataclass(frozen=True, slots=True)
class Threshold:
    text: str
    metric: Metric
    sign: str  # + allows no more growth than this, - no more shrinking; empty: neither, or whatever is worse
    allowed: float  # in the metric's unit, or as a share of A
    is_share: bool

    def crossed(self, a: float | None, b: float | None) -> bool | None:
        """Whether B is worse than A by more than is allowed; None when one of them is unknown."""
        if a is None or b is None:
            return None
        growth = b - a
        worse = {"+": growth, "-": -growth, "": abs(growth)}[self.sign]
        allowance = self.allowed * abs(a) if self.is_share else self.allowed
        return worse > allowance + ROUNDING * max(abs(a), abs(b))


def thresholds_of(texts: Sequence[str]) -> list[Threshold]:
    """What the texts say; Refused with a hint at the first that says nothing, or the same as another."""
    found: dict[str, Threshold] = {}
    for text in texts:
        threshold = threshold_of(text)
        name = threshold.metric.name
        if name in found:
            raise Refused(
                f"two thresholds for {name}: {found[name].text!r} and {text!r}", "say one for each metric"
            )
        found[name] = threshold
    return list(found.values())


def threshold_of(text: str) -> Threshold:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise Refused(f"the threshold {text!r} is not METRIC:CHANGE", f"say it like one of {_EXAMPLES}")
    name, sign, number, unit = match.groups()
    metric = BY_NAME.get(name)
    if metric is None:
        near = difflib.get_close_matches(name, BY_NAME, n=3, cutoff=0.5) or list(BY_NAME)
        raise Refused(f"the threshold {text!r} is about an unknown metric", f"known: {', '.join(near)}")
    worse = {"lower": "+", "higher": "-", "": ""}[metric.better]
    if sign and worse and sign != worse:
        raise Refused(
            f"the threshold {text!r} would be crossed by what is better: {metric.better} is better here",
            f"say {name}:{worse}{number}{unit}",
        )
    factor = _factor(metric, unit, text)
    allowed = float(number) * factor
    if not math.isfinite(allowed):
        raise Refused(f"the threshold {text!r} is beyond every number", f"say it like one of {_EXAMPLES}")
    return Threshold(text.strip(), metric, sign or worse, allowed, unit == "%")


def _factor(metric: Metric, unit: str, text: str) -> float:
    if unit == "%":
        return 0.01
    units = _UNITS[metric.unit]
    if not unit:
        return 1.0
    if unit not in units:
        known = ", ".join(["%", *dict.fromkeys(units)])
        raise Refused(f"the threshold {text!r} has a unit that {metric.name} has not", f"known here: {known}")
    return units[unit]
