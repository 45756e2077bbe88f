"""Decides where the values of each attribute are cut; never knows which subscriptions there are.

The values of one kind on one attribute form a scale. Its cuts are bounds that subscriptions named, all of
them as long as they are few. What an interval says about two neighbouring cuts holds for the gap between
them, unless one of its own ends is there.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

from broker_runtime.language.values import Kind
from broker_runtime.matching.rules import CLASSES_BY_KIND, Rule

CUTS_EXACT = 128
CUTS_MAX = 256
BOUNDS_PER_GAP_MIN = 64


class Split(NamedTuple):
    """The gap with this number was cut in two."""

    gap: int
    cut: Any


class Place(NamedTuple):
    """Where a rule's interval lies on a scale."""

    scale: Scale
    cuts: int  # how many there were: with more, the place is another
    under: int  # rows before this one are below the interval (see `block`)
    over: int  # rows from this one on are above it
    exact: bool  # its ends are cuts


class Scale:
    """The cuts of one attribute's values of one kind. Gap i lies below cut i, the last one above all."""

    __slots__ = (
        "_inside",
        "_inside_total",
        "cuts",
        "kind",
        "number",
        "ordinal",
        "others",
        "points",
        "splits",
    )

    def __init__(self, number: int, ordinal: int, kind: Kind) -> None:
        self.number = number
        self.ordinal = ordinal  # among the scales of its axis
        self.kind = kind
        self.others: list[int] = []  # the numbers of its axis's scales of other kinds
        self.cuts: list[Any] = []
        self.points: dict[Any, int] = {}  # cut → its number
        self.splits: list[Split] = []
        self._inside: list[int] = [0]  # bounds that were left inside each gap
        self._inside_total = 0

    def offer(self, bound: Any, exact: int) -> bool:
        """Make the bound a cut if that helps: there are few, or its gap holds more than its share."""
        if bound in self.points:
            return False
        cuts = len(self.cuts)
        gap = bisect_left(self.cuts, bound)
        if cuts >= exact:
            share = max(BOUNDS_PER_GAP_MIN, 4 * self._inside_total // (cuts + 1))
            if cuts >= CUTS_MAX or self._inside[gap] < share:
                self._inside[gap] += 1
                self._inside_total += 1
                return False
        self._cut(gap, bound)
        return True

    def place(self, rule: Rule) -> Place:
        known: Place | None = rule.place
        if known is not None and known.scale is self and known.cuts == len(self.cuts):
            return known
        cuts = len(self.cuts)
        exact = True
        under = 0
        if rule.low is not None:
            cut = self.points.get(rule.low)
            if cut is None:
                gap = bisect_left(self.cuts, rule.low)
                under, exact = gap + 1, False
            else:
                under = cut + 2 if rule.low_open else cut + 1
        over = cuts + 2
        if rule.high is not None:
            cut = self.points.get(rule.high)
            if cut is None:
                gap = bisect_left(self.cuts, rule.high)
                over, exact = gap + 1, False
            else:
                over = cut + 1 if rule.high_open else cut + 2
        rule.place = place = Place(self, cuts, under, over, exact)
        return place

    def _cut(self, gap: int, bound: Any) -> None:
        self.cuts.insert(gap, bound)
        self.points = {cut: i for i, cut in enumerate(self.cuts)}
        # On which side the bounds inside the old gap lie is not known here; half each is close enough.
        half = self._inside[gap] // 2
        self._inside[gap : gap + 1] = [half, half]
        self.splits.append(Split(gap, bound))


class Axis:
    """One attribute, with a scale for each kind that is asked for."""

    __slots__ = ("attribute", "number", "scales")

    def __init__(self, number: int, attribute: str) -> None:
        self.number = number
        self.attribute = attribute
        self.scales: dict[type, Scale] = {}  # by the classes of the kind's values

    def all_scales(self) -> list[int]:
        return list(dict.fromkeys(scale.number for scale in self.scales.values()))


class Layout:
    """The axes and scales that the blocks of one partition share. The version grows with every change."""

    __slots__ = ("axes", "axis_by_attribute", "cuts_exact", "scales", "tracks", "version")

    def __init__(self, cuts_exact: int = CUTS_EXACT) -> None:
        self.axes: list[Axis] = []
        self.axis_by_attribute: dict[str, Axis] = {}
        self.scales: list[Scale] = []
        self.tracks: list[tuple[str, int, dict[type, Scale]]] = []  # the axes, quick to go through
        self.version = 0
        self.cuts_exact = cuts_exact

    def prepare(self, rule: Rule) -> None:
        """See to the rule's axis, its scale and the cuts that its bounds deserve."""
        axis = self.axis_by_attribute.get(rule.attribute)
        if axis is None:
            axis = self._add_axis(rule.attribute)
        if rule.kind is None:
            return
        scale = axis.scales.get(rule.cls)
        if scale is None:
            scale = self._add_scale(axis, rule.kind)
        place: Place | None = rule.place
        if place is not None and place.scale is scale and place.exact:
            return  # its bounds are cuts, and a cut stays one
        for bound in (rule.low, rule.high):
            if bound is not None and scale.offer(bound, self.cuts_exact):
                self.version += 1

    def _add_axis(self, attribute: str) -> Axis:
        axis = Axis(len(self.axes), attribute)
        self.axes.append(axis)
        self.tracks.append((attribute, axis.number, axis.scales))
        self.axis_by_attribute[attribute] = axis
        self.version += 1
        return axis

    def _add_scale(self, axis: Axis, kind: Kind) -> Scale:
        scale = Scale(len(self.scales), len(axis.all_scales()), kind)
        self.scales.append(scale)
        for cls in CLASSES_BY_KIND[kind]:
            axis.scales[cls] = scale
        for own in axis.scales.values():
            own.others = [number for number in axis.all_scales() if number != own.number]
        self.version += 1
        return scale
