"""Decides how far a host's clock is from ours, from four timestamps; never asks for one.

The exchange with the shortest way there and back bounds the error best: wherever in it the host looked at
its clock, the offset is off by no more than half of the time that was spent on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer: sent and returned by our clock, received and answered by theirs."""

    sent: float
    received: float
    answered: float
    returned: float

    @property
    def on_the_way_s(self) -> float:
        return (self.returned - self.sent) - (self.answered - self.received)


@dataclass(frozen=True, slots=True)
class Offset:
    """How much a host's clock is ahead of ours at a time of ours, give or take the error."""

    at: float
    offset_s: float
    error_s: float

    def to_theirs(self, ours: float) -> float:
        return ours + self.offset_s

    def to_ours(self, theirs: float) -> float:
        return theirs - self.offset_s


def offset_of(exchanges: Iterable[Exchange]) -> Offset:
    """The best estimate that the exchanges allow."""
    best = min(exchanges, key=lambda exchange: exchange.on_the_way_s)
    offset_s = ((best.received - best.sent) + (best.answered - best.returned)) / 2
    return Offset(best.returned, offset_s, max(0.0, best.on_the_way_s / 2))


def drift_of(first: Offset, last: Offset) -> float:
    """Seconds that their clock gains on ours in a second; 0 while the two are too close to tell."""
    span_s = last.at - first.at
    change_s = last.offset_s - first.offset_s
    if span_s <= 0 or abs(change_s) <= first.error_s + last.error_s:
        return 0.0
    return change_s / span_s
