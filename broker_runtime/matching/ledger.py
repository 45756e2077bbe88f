"""Decides which stored subscriptions may cover, be covered by or overlap; never looks at a publication.

One line for each subscription of a partition, one pair of short integers for each of its bounds, in pages of
fixed size. A question compares whole columns at once. A bound is written down as its place among the cuts:
gap, cut, gap, cut, … gap are numbered from 0, and the place is twice that number, plus one to tell `>` from
`>=` and `<=` from `<`. Bounds inside one gap cannot be told apart, which leaves a doubt.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from broker_runtime.matching.block import Record
from broker_runtime.matching.layout import HIGHEST, LOWEST, Axis, Layout, NewCut, Scale
from broker_runtime.matching.rules import Rule

LINES_PER_PAGE = 32_768

UNUSED: Final = 65_535  # in place of the number of attributes
ABSENT: Final = 0
ANY_KIND: Final = 1  # the attribute is asked for, of whatever kind
FIRST_KIND: Final = 2
UNKNOWN_KIND: Final = 255  # nobody asks for it

Mask = npt.NDArray[np.bool_]
Shorts = npt.NDArray[np.int16]


class Page:
    """The columns of some lines. They come into being when the first line needs them."""

    __slots__ = ("attributes", "check", "highs", "keys", "kinds", "lows", "records")

    def __init__(self) -> None:
        self.records: list[Record | None] = []
        self.keys: list[Any] = []
        self.check = array("B", bytes(LINES_PER_PAGE))  # 1: its rules are not all plain
        self.attributes = array("H", [UNUSED]) * LINES_PER_PAGE
        self.kinds: dict[int, array[int]] = {}  # by axis
        self.lows: dict[int, array[int]] = {}  # by scale
        self.highs: dict[int, array[int]] = {}

    def write(self, line: int, axis: Axis, rule: Rule) -> None:
        kinds = self.kinds.get(axis.number)
        if kinds is None:
            kinds = self.kinds[axis.number] = array("B", bytes(LINES_PER_PAGE))
        if rule.kind is None:
            kinds[line] = ANY_KIND
            return
        scale = axis.scales[rule.cls]
        kinds[line] = FIRST_KIND + scale.ordinal
        lows = self.lows.get(scale.number)
        if lows is None:
            lows = self.lows[scale.number] = array("h", bytes(2 * LINES_PER_PAGE))
            self.highs[scale.number] = array("h", bytes(2 * LINES_PER_PAGE))
        _, _, _, _, lows[line], self.highs[scale.number][line], _ = scale.place(rule)

    def renumber(self, scale: Scale, gap: int) -> list[int]:
        """Make room for the cut in this gap; the lines with a bound in the gap."""
        if scale.number not in self.lows:
            return []
        count = len(self.records)
        lows = np.frombuffer(self.lows[scale.number], np.int16, count)
        highs = np.frombuffer(self.highs[scale.number], np.int16, count)
        place = 4 * gap
        inside: list[int] = np.flatnonzero((lows == place) | (highs == place + 1)).tolist()
        lows[lows > place] += 4
        highs[(highs > place + 1) & (highs != HIGHEST)] += 4
        return inside


class Ledger:
    """The lines of one partition."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._free: list[int] = []
        self._lines = 0
        self.pages: list[Page] = []

    def enter(self, record: Record) -> None:
        if self._free:
            line = self._free.pop()
        else:
            line = self._lines
            self._lines += 1
            if line % LINES_PER_PAGE == 0:
                self.pages.append(Page())
        record.line = line
        page, line = self.pages[line // LINES_PER_PAGE], line % LINES_PER_PAGE
        if line < len(page.records):
            page.records[line] = record
            page.keys[line] = record.key
        else:
            page.records.append(record)
            page.keys.append(record.key)
        page.check[line] = 0 if record.plain else 1
        page.attributes[line] = len(record.rules)
        axes = self._layout.axis_by_attribute
        for rule in record.rules:
            page.write(line, axes[rule.attribute], rule)

    def strike(self, record: Record) -> None:
        self._free.append(record.line)
        page, line = self.pages[record.line // LINES_PER_PAGE], record.line % LINES_PER_PAGE
        page.records[line] = page.keys[line] = None
        page.attributes[line] = UNUSED
        axes = self._layout.axis_by_attribute
        for rule in record.rules:
            page.kinds[axes[rule.attribute].number][line] = ABSENT

    def follow(self, news: list[NewCut]) -> None:
        """Renumber the places above new cuts, and look up those whose gap was cut in two."""
        for page in self.pages:
            stale: dict[tuple[int, str], Axis] = {}
            for axis, scale, gap in news:
                for line in page.renumber(scale, gap):
                    stale[line, axis.attribute] = axis
            for (line, attribute), axis in stale.items():
                record = page.records[line]
                for rule in record.rules if record else ():
                    if rule.attribute == attribute:
                        page.write(line, axis, rule)


class Comparison:
    """What is asked of one attribute, put in numbers, to be held against the columns of a page."""

    __slots__ = ("_axis", "_code", "_high", "_loose", "_low", "_scale")

    def __init__(self, layout: Layout, rule: Rule) -> None:
        axis = layout.axis_by_attribute.get(rule.attribute)
        self._axis = -1 if axis is None else axis.number
        self._code = ANY_KIND if rule.kind is None else UNKNOWN_KIND
        self._scale = -1
        self._loose = rule.loose
        self._low, self._high = LOWEST, HIGHEST
        scale = None if axis is None or rule.kind is None else axis.scales.get(rule.cls)
        if axis is not None and scale is not None:
            self._code = FIRST_KIND + scale.ordinal
            self._scale = scale.number
            _, _, _, _, self._low, self._high, _ = scale.place(rule)

    def known(self, page: Page) -> bool:
        return self._axis in page.kinds

    def _kinds(self, page: Page) -> npt.NDArray[np.uint8]:
        return np.frombuffer(page.kinds[self._axis], np.uint8, len(page.records))

    def _bounds(self, page: Page) -> tuple[Shorts, Shorts]:
        count = len(page.records)
        lows = np.frombuffer(page.lows[self._scale], np.int16, count)
        return lows, np.frombuffer(page.highs[self._scale], np.int16, count)

    def _comparable(self, page: Page) -> bool:
        return self._scale in page.lows

    def including(self, page: Page) -> Mask:
        """Who asks for the attribute and admits all that is asked here."""
        kinds = self._kinds(page)
        mask: Mask = kinds == ANY_KIND
        if self._comparable(page):
            same = kinds == self._code
            if not self._loose:
                lows, highs = self._bounds(page)
                same &= lows <= self._low
                same &= highs >= self._high
            mask |= same
        return mask

    def included(self, page: Page) -> Mask:
        """Who asks for the attribute and admits no more than is asked here."""
        kinds = self._kinds(page)
        mask: Mask = kinds != ABSENT if self._code == ANY_KIND else kinds == self._code
        if self._comparable(page):
            lows, highs = self._bounds(page)
            # A line that is not plain may admit less than its hull: leave it to be verified.
            free = np.frombuffer(page.check, np.bool_, len(page.records))
            if self._low != LOWEST:
                mask &= (lows >= self._low) | free
            if self._high != HIGHEST:
                mask &= (highs <= self._high) | free
        return mask

    def meeting(self, page: Page) -> Mask:
        """Who asks for the attribute and admits some of what is asked here."""
        kinds = self._kinds(page)
        mask: Mask = kinds != ABSENT if self._code == ANY_KIND else kinds == self._code
        if self._comparable(page):
            lows, highs = self._bounds(page)
            if self._high != HIGHEST:
                mask &= lows < self._high
            if self._low != LOWEST:
                mask &= highs > self._low
        mask |= kinds == ANY_KIND
        return mask

    def absent(self, page: Page) -> Mask:
        mask: Mask = self._kinds(page) == ABSENT
        return mask

    def doubtful(self, page: Page) -> Mask | None:
        """Who has a bound in the same gap as a bound asked for; None for nobody."""
        mask: Mask | None = None
        if not self._comparable(page):
            return None
        for place in (self._low, self._high):
            if place not in (LOWEST, HIGHEST) and not place & 2:
                lows, highs = self._bounds(page)
                gap = place & ~3
                here = (lows == gap) | (highs == gap + 1)
                mask = here if mask is None else mask | here
        return mask
