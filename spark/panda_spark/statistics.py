"""Decides how sure a figure is that was measured a few times, and whether two differ; knows no metric.

A value is what one run says of one metric. Values that are missing, NaN or infinite are left out and counted.
Where the values allow no statement, the answer is None and never a guess: one run has no interval, and
neither have runs that all say the same, because what did not vary gives no measure of chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
RESAMPLES = 5000
SEED = 20261118
LARGEST = 1e60  # what is beyond is left out like an infinity: floats could not hold the square of a ratio
SMALLEST = 1e-60  # and what is closer to 0 counts as 0
ROUNDING = 1e-12  # share of a value: less is how it was computed, not what was measured

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the runs of one group say together."""

    runs: int  # those that have the value
    missing: int
    mean: float | None
    mean_interval: Interval | None
    median: float | None
    median_interval: Interval | None
    median_method: str  # BCa, percentile, or empty where there is no interval


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different in B: its mean less that of A."""

    difference: float | None
    interval: Interval | None
    share: float | None  # of the size of A's mean; None when that is 0
    share_interval: Interval | None  # None also when A's mean may well be 0
    p_value: float | None
    method: str


def measured(values: Sequence[float | None]) -> list[float]:
    """The values that are numbers, in order of size, so that the order of runs changes nothing."""
    known = [float(v) for v in values if v is not None and abs(v) <= LARGEST]  # not true of a NaN
    return sorted(v if abs(v) >= SMALLEST else 0.0 for v in known)


def estimate(values: Sequence[float | None]) -> Estimate:
    known = measured(values)
    missing = len(values) - len(known)
    if not known:
        return Estimate(0, missing, None, None, None, None, "")
    mean, middle = _mean(known), median(known)
    if len(known) == 1 or _constant(known):
        return Estimate(len(known), missing, mean, None, middle, None, "")
    half = _t_quantile(len(known) - 1) * math.sqrt(_mean_variance(known))
    interval, method = _median_interval(known)
    return Estimate(len(known), missing, mean, (mean - half, mean + half), middle, interval, method)


def difference(a: Sequence[float | None], b: Sequence[float | None]) -> Difference:
    """B against A: Welch's t, which lets the groups vary each in its own way."""
    known_a, known_b = measured(a), measured(b)
    if not known_a or not known_b:
        return Difference(None, None, None, None, None, f"no value in {'B' if known_a else 'A'}")
    mean_a, mean_b = _mean(known_a), _mean(known_b)
    apart = mean_b - mean_a
    share = apart / abs(mean_a) if mean_a else None
    if len(known_a) == 1 or len(known_b) == 1:
        alone = " and ".join(name for name, known in (("A", known_a), ("B", known_b)) if len(known) == 1)
        return Difference(apart, None, share, None, None, f"one value in {alone}: chance cannot be judged")
    if _constant(known_a) and _constant(known_b):
        if _constant([*known_a, *known_b]):
            return Difference(0.0, None, 0.0 if mean_a else None, None, None, "all values are equal")
        p_value = _separated_p(len(known_a), len(known_b))
        return Difference(apart, None, share, None, p_value, "exact permutation: neither group varies")
    return _welch(known_a, known_b)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p value corrected for having looked at all of them; None stays None and does not count.

    Holm, A simple sequentially rejective multiple test procedure (1979): it holds however the metrics depend
    on each other.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        corrected[place] = reached
    return corrected


def _mean(known: list[float]) -> float:
    return known[0] if _constant(known) else fmean(known)


def _constant(known: Sequence[float]) -> bool:
    return math.isclose(min(known), max(known), rel_tol=ROUNDING)


def _mean_variance(known: list[float]) -> float:
    """The variance of the mean."""
    if _constant(known):
        return 0.0
    mean = fmean(known)
    return math.fsum((v - mean) * (v - mean) for v in known) / (len(known) - 1) / len(known)


def _t_quantile(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - ALPHA / 2))


def _freedom(part_a: float, runs_a: int, part_b: float, runs_b: int) -> float:
    """Welch and Satterthwaite's degrees of freedom of a sum of two variances."""
    share_a = part_a / (part_a + part_b)
    share_b = part_b / (part_a + part_b)
    return 1 / (share_a * share_a / (runs_a - 1) + share_b * share_b / (runs_b - 1))


def _welch(a: list[float], b: list[float]) -> Difference:
    from scipy.special import stdtr

    mean_a, mean_b = _mean(a), _mean(b)
    part_a, part_b = _mean_variance(a), _mean_variance(b)
    apart, error = mean_b - mean_a, math.sqrt(part_a + part_b)
    if not error:
        return Difference(apart, None, None, None, None, "the values vary too little to be told apart")
    freedom = _freedom(part_a, len(a), part_b, len(b))
    half = _t_quantile(freedom) * error
    p_value = float(2 * stdtr(freedom, -abs(apart / error)))
    share = apart / abs(mean_a) if mean_a else None
    shares = _share_interval(a, b) if mean_a else None
    return Difference(apart, (apart - half, apart + half), share, shares, p_value, "Welch's t")


def _share_interval(a: list[float], b: list[float]) -> Interval | None:
    """Fieller's interval of the ratio of two means, less 1; A's mean is uncertain as well as B's.

    Hasler, Vonk and Hothorn, Assessing non-inferiority of a new treatment in a three-arm trial in the
    presence of heteroscedasticity (2008): the degrees of freedom are those at the estimated ratio.
    """
    mean_a, mean_b = _mean(a), _mean(b)
    ratio = mean_b / mean_a
    part_a, part_b = _mean_variance(a), _mean_variance(b)
    if not (part_b + ratio * ratio * part_a):
        return None
    t = _t_quantile(_freedom(ratio * ratio * part_a, len(a), part_b, len(b)))
    # In units of A's mean, the ratios r that fulfil (ratio - r)² <= t² (vb + r² va).
    va, vb = t * t * part_a / (mean_a * mean_a), t * t * part_b / (mean_a * mean_a)
    if va >= 1:
        return None
    root = math.sqrt(max(0.0, va * ratio * ratio + vb * (1 - va)))
    low, high = (ratio - root) / (1 - va) - 1, (ratio + root) / (1 - va) - 1
    return (low, high) if mean_a > 0 else (-high, -low)


def _separated_p(runs_a: int, runs_b: int) -> float:
    """How likely chance would deal all of one value to A and all of another to B, or the other way round."""
    ways = 2 if runs_a == runs_b else 1
    return ways / math.comb(runs_a + runs_b, runs_a)


def _median_interval(known: list[float]) -> tuple[Interval, str]:
    """A seeded bootstrap of the median: BCa where its corrections exist, else the plain percentiles.

    Efron, Better bootstrap confidence intervals (1987). The acceleration needs medians that vary when one run
    is left out, the bias resamples on both sides of the median.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    values = np.array(known)
    picks = np.random.default_rng(SEED).integers(0, len(values), (RESAMPLES, len(values)))
    medians = np.median(values[picks], axis=1)
    middle = np.median(values)
    below = float(np.mean(medians < middle) + np.mean(medians == middle) / 2)
    left_out = np.array([np.median(np.delete(values, i)) for i in range(len(values))])
    lean = left_out.mean() - left_out
    scale = float(np.abs(lean).max())
    ends = np.array([ALPHA / 2, 1 - ALPHA / 2])
    method = "percentile"
    if 0 < below < 1 and scale > ROUNDING * float(np.abs(values).max()):
        lean = lean / scale
        acceleration = float((lean**3).sum() / (6 * (lean**2).sum() ** 1.5))
        bias = float(ndtri(below))
        shifted = bias + ndtri(ends)
        ends = ndtr(bias + shifted / (1 - acceleration * shifted))
        method = "BCa"
    low, high = np.quantile(medians, ends)
    return (float(low), float(high)), method
