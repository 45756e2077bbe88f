"""Decides into which cells the values of each attribute fall; never knows which subscriptions there are.

The values of one kind on one attribute form a scale. Its cuts are bounds that subscriptions named; its cells
are, from left to right, gap, point, gap, point, … gap: cell 2i+1 is the i-th cut itself, an even cell the
open gap beside it. As long as a scale has few bounds every bound is a cut, so that a cell says all about a
value. Later bounds fall into gaps, where a row of doubts tells whom to verify.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

from broker_runtime.language.values import Kind
from broker_runtime.matching.rules import CLASSES_BY_KIND, Rule

CUTS_EXACT = 24
CUTS_MAX = 128
DOUBTS_PER_GAP_MIN = 64

class Split(NamedTuple):
    """A gap was cut in three: what is left of the cut, the cut, and what is right of it."""

    gap: int
    left: Any
    cut: Any
    right: Any


class Span(NamedTuple):
    """Where a rule's interval lies on a scale."""

    under: int  # cells before this one are below the interval
    over: int  # cells from this one on are above it
    doubts: tuple[int, ...]  # gaps that hold one of its ends


class Scale:
    """The cuts of one attribute's values of one kind."""

    __slots__ = ("_doubted", "_doubted_total", "cuts", "kind", "number", "points", "splits")

    def __init__(self, number: int, kind: Kind) -> None:
        self.number = number
        self.kind = kind
        self.cuts: list[Any] = []
        self.points: dict[Any, int] = {}
        self.splits: list[Split] = []
        self._doubted: list[int] = [0]
        self._doubted_total = 0

    def at(self, value: Any) -> int:
        """The cell of the value, which is of this kind and not a NaN."""
        cell = self.points.get(value)
        return 2 * bisect_left(self.cuts, value) if cell is None else cell

    def after(self, value: Any) -> int:
        """The cell of the values just above."""
        cell = self.points.get(value)
        return 2 * bisect_left(self.cuts, value) if cell is None else cell + 1

    def before(self, value: Any) -> int:
        """The cell of the values just below."""
        cell = self.points.get(value)
        return 2 * bisect_left(self.cuts, value) if cell is None else cell - 1

    def offer(self, bound: Any, exact: int) -> bool:
        """Make the bound a cut if that helps: there are few, or its gap holds more than its share."""
        if bound in self.points:
            return False
        cuts = len(self.cuts)
        gap = bisect_left(self.cuts, bound)
        if cuts >= exact:
            share = max(DOUBTS_PER_GAP_MIN, 4 * self._doubted_total // (cuts + 1))
            if cuts >= CUTS_MAX or self._doubted[gap] < share:
                return False
        self._cut(gap, bound)
        return True

    def _cut(self, gap: int, bound: Any) -> None:
        cuts = self.cuts
        left = cuts[gap - 1] if gap else None
        right = cuts[gap] if gap < len(cuts) else None
        self.splits.append(Split(gap, left, bound, right))
        cuts.insert(gap, bound)
        self.points = {cut: 2 * i + 1 for i, cut in enumerate(cuts)}
        # Which side the doubts of the old gap fell on is not known here; half each is close enough.
        half = self._doubted[gap] // 2
        self._doubted[gap : gap + 1] = [half, half]

    def span(self, rule: Rule) -> Span:
        under, over = 0, 2 * len(self.cuts) + 1
        low_gap = high_gap = -1
        if rule.low is not None:
            cell = self.at(rule.low)
            if cell & 1:
                under = cell + 1 if rule.low_open else cell
            else:
                under, low_gap = cell, cell // 2
        if rule.high is not None:
            cell = self.at(rule.high)
            if cell & 1:
                over = cell if rule.high_open else cell + 1
            else:
                over, high_gap = cell + 1, cell // 2
        if low_gap < 0 and high_gap < 0:
            return Span(under, over, ())
        if low_gap < 0 or high_gap == low_gap:
            return Span(under, over, (high_gap,))
        return Span(under, over, (low_gap,) if high_gap < 0 else (low_gap, high_gap))

    def count_doubts(self, gaps: tuple[int, ...], step: int) -> None:
        for gap in gaps:
            self._doubted[gap] += step
            self._doubted_total += step


class Axis:
    """One attribute: how many subscriptions constrain it, and a scale for each kind they ask for."""

    __slots__ = ("attribute", "number", "others", "scales", "users")

    def __init__(self, number: int, attribute: str) -> None:
        self.number = number
        self.attribute = attribute
        self.users = 0
        self.scales: dict[type, Scale] = {}
        self.others: dict[type, list[int]] = {}

    def rarity(self) -> tuple[int, int]:
        """Smaller is rarer. Counts are taken coarsely, lest equals keep changing places."""
        return self.users.bit_length(), self.number

    def all_scales(self) -> list[int]:
        return list(dict.fromkeys(scale.number for scale in self.scales.values()))

    def other_scales(self, kind: Kind) -> list[int]:
        return list(dict.fromkeys(s.number for s in self.scales.values() if s.kind is not kind))



class Layout:
    """The axes and scales that the blocks of one partition share. The version grows with every change."""

    __slots__ = ("axes", "axis_by_attribute", "cuts_exact", "scales", "version")

    def __init__(self, cuts_exact: int = CUTS_EXACT) -> None:
        self.axes: list[Axis] = []
        self.axis_by_attribute: dict[str, Axis] = {}
        self.scales: list[Scale] = []
        self.version = 0
        self.cuts_exact = cuts_exact

    def prepare(self, rule: Rule) -> Axis:
        """The rule's axis, with the scale and the cuts that its bounds deserve."""
        axis = self.axis_by_attribute.get(rule.attribute)
        if axis is None:
            axis = self._add_axis(rule.attribute)
        if rule.kind is None:
            return axis
        scale = axis.scales.get(rule.cls)
        if scale is None:
            scale = self._add_scale(axis, rule.kind)
        low, high = rule.low, rule.high
        if low is not None and scale.offer(low, self.cuts_exact):
            self.version += 1
        if high is not None and scale.offer(high, self.cuts_exact):
            self.version += 1
        return axis

    def _add_axis(self, attribute: str) -> Axis:
        axis = Axis(len(self.axes), attribute)
        self.axes.append(axis)
        self.axis_by_attribute[attribute] = axis
        self.version += 1
        return axis

    def _add_scale(self, axis: Axis, kind: Kind) -> Scale:
        scale = Scale(len(self.scales), kind)
        self.scales.append(scale)
        for cls in CLASSES_BY_KIND[kind]:
            axis.scales[cls] = scale
        for each in axis.scales.values():
            for cls in CLASSES_BY_KIND[each.kind]:
                axis.others[cls] = axis.other_scales(each.kind)
        self.version += 1
        return scale
