"""Decides when messages are due, in seconds from the start; never waits.

Times are counted from the start and not from one another, so that whoever keeps them does not drift.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import count, takewhile

from broker_runtime.seam import RandomSource


def even(rate_per_s: float) -> Iterator[float]:
    """0, 1/rate, 2/rate, …"""
    return (number / rate_per_s for number in count())


def poisson(rate_per_s: float, random: RandomSource) -> Iterator[float]:
    """Exponential gaps of the same mean."""
    at = 0.0
    while True:
        yield at
        at -= math.log(1.0 - random.random()) / rate_per_s


def until(schedule: Iterable[float], duration_s: float) -> Iterator[float]:
    return takewhile(lambda at: at < duration_s, schedule)


def merged(schedules: Iterable[Iterable[float]]) -> Iterator[tuple[float, int]]:
    """All times in order, each with the number of the schedule it is from."""
    return heapq.merge(*(_tagged(each, number) for number, each in enumerate(schedules)))


def _tagged(times: Iterable[float], number: int) -> Iterator[tuple[float, int]]:
    return ((at, number) for at in times)
