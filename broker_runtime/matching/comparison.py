"""Decides who of a block or a sheet may include, be included by or meet what is asked of one attribute.

It never verifies anybody. Cuts and gaps lie on a line: the row of a cut is at an even place, the gap above it
at the next odd one. An interval includes another if it admits both ends. It meets another if it admits any
of the other's cuts, or of the gaps in which the other ends; and it is included if it admits nothing outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from broker_runtime.matching.block import Record
from broker_runtime.matching.layout import Layout, Scale
from broker_runtime.matching.rules import Rule

Row = Any  # an integer, or an array of words: the operators are the same. Nobody may be 0 in both cases.


class Holder(Protocol):
    """What a block and a sheet have in common."""

    version: int

    @property
    def records(self) -> list[Record | None]: ...
    def catch_up(self, layout: Layout) -> None: ...
    def living(self) -> Row: ...
    def unplain(self) -> Row: ...
    def needing(self, axes: list[int]) -> Row: ...
    def members(self, scale: int) -> Row: ...
    def thin(self, scale: int) -> Row: ...
    def violated(self, scale: int, row: int) -> Row: ...
    def throughout(self, scale: int, first: int, last: int) -> Row: ...
    def gap(self, scale: int, row: int) -> tuple[Row, Row]: ...


class Found(NamedTuple):
    """Who needs the attribute and may stand in the relation, and who of all is in doubt."""

    good: Row
    doubt: Row


class Comparison:
    """What is asked of one attribute, put in places, to be held against the rows."""

    __slots__ = ("_any_kind", "_first", "_last", "_loose", "_rule", "_scale", "_scales", "axis")

    def __init__(self, layout: Layout, rule: Rule) -> None:
        axis = layout.axis_by_attribute.get(rule.attribute)
        self.axis = None if axis is None else axis.number
        self._scales = [] if axis is None else axis.all_scales()
        self._any_kind = rule.kind is None
        self._rule = rule
        self._loose = rule.loose
        self._scale = None if axis is None or rule.kind is None else axis.scales.get(rule.cls)
        self._first = self._last = 0
        if self._scale is not None:
            self._first, self._last = _ends(self._scale, rule)

    def including(self, holder: Holder) -> Found:
        """Who admits all that is asked here."""
        scale = self._scale
        good, doubt = self._needing(holder), 0
        for each in self._scales:
            if scale is None or each != scale.number:
                good = good & ~holder.members(each)
        if scale is not None and not self._loose:
            for place in (self._first, self._last):
                outside, unsure = _at(holder, scale, place)
                good, doubt = good & ~outside, doubt | unsure
        return Found(good, doubt)

    def included(self, holder: Holder) -> Found:
        """Who admits no more than is asked here."""
        scale = self._scale
        if self._any_kind:
            return Found(self._needing(holder), 0)
        if scale is None:
            return Found(self._needing(holder) & 0, 0)
        thin = holder.thin(scale.number)
        good, doubt = holder.members(scale.number), thin
        rows_end = len(scale.cuts) + 2
        for first, end in ((0, (self._first + 1) // 2), (self._last // 2 + 1, rows_end)):
            if first < end:
                good = good & holder.throughout(scale.number, first, end - 1)
        for place in self._just_outside(scale):
            outside, unsure = holder.gap(scale.number, place // 2)
            good, doubt = good & (outside | unsure), doubt | unsure
        # Who is not plain may admit less than its hull. A thin one's rows do not tell its own gap's.
        return Found(good | (holder.members(scale.number) & (thin | holder.unplain())), doubt)

    def meeting(self, holder: Holder) -> Found:
        """Who admits some of what is asked here."""
        scale = self._scale
        needing = self._needing(holder)
        if self._any_kind:
            return Found(needing, 0)
        others = needing
        for each in self._scales:
            others = others & ~holder.members(each)
        if scale is None:
            return Found(others, 0)
        bad, doubt = holder.members(scale.number), holder.thin(scale.number)
        first, last = (self._first + 1) // 2, self._last // 2
        if first <= last:
            bad = bad & holder.throughout(scale.number, first, last)
        for place in dict.fromkeys((self._first, self._last)):
            if place & 1:
                outside, unsure = holder.gap(scale.number, place // 2)
                bad, doubt = bad & outside, doubt | unsure
        return Found((holder.members(scale.number) ^ bad) | others, doubt)

    def _needing(self, holder: Holder) -> Row:
        assert self.axis is not None
        return holder.needing([self.axis])

    def _just_outside(self, scale: Scale) -> list[int]:
        """The gaps of which some is outside: next to a closed end, or around an end inside a gap."""
        rule = self._rule
        places = []
        if rule.low is not None:
            if not self._first & 1:
                places.append(self._first - 1)
            elif rule.low not in scale.points:
                places.append(self._first)
        if rule.high is not None:
            if not self._last & 1:
                places.append(self._last + 1)
            elif rule.high not in scale.points:
                places.append(self._last)
        return places


def _ends(scale: Scale, rule: Rule) -> tuple[int, int]:
    """The places of the first and the last that the rule admits."""
    place = scale.place(rule)
    first, last = 2 * place.under, 2 * place.over - 2
    if rule.low is not None and (rule.low_open or rule.low not in scale.points):
        first -= 1
    if rule.high is not None and (rule.high_open or rule.high not in scale.points):
        last += 1
    return first, last


def _at(holder: Holder, scale: Scale, place: int) -> tuple[Row, Row]:
    """Whom the values at this place violate, and who is in doubt."""
    if place & 1:
        return holder.gap(scale.number, place // 2)
    return holder.violated(scale.number, place // 2), holder.thin(scale.number)
