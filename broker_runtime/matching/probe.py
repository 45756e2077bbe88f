"""Decides which slots of a block or a sheet a publication leaves over; never verifies a survivor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import reduce
from operator import itemgetter, or_

import numpy as np

from broker_runtime.language.messages import Content
from broker_runtime.matching.block import GROUP_ROWS, Block
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.rows import Words
from broker_runtime.matching.sheet import Sheet

Pick = Callable[[list[int]], Sequence[int]]


class Probe:
    """A publication in terms of one layout: numbers of axes, scales, cuts and gaps."""

    __slots__ = ("_absent", "_beyond", "_cuts", "_gaps", "_members", "_missing")

    def __init__(self, layout: Layout, content: Content) -> None:
        self._cuts: list[tuple[int, int]] = []  # (scale, row)
        self._gaps: list[tuple[int, int]] = []  # (scale, row below)
        self._members: list[int] = []  # scales of another kind than the value's
        self._beyond: list[int] = []  # scales on which the value is a NaN
        get = content.get
        absent: list[int] = []
        for attribute, number, scales in layout.tracks:
            value = get(attribute)
            if value is None:
                absent.append(number)
                continue
            scale = scales.get(value.__class__)
            if scale is None:
                self._members += layout.axes[number].all_scales()
                continue
            if scale.others:
                self._members += scale.others
            cut = scale.points.get(value)
            if cut is not None:
                self._cuts.append((scale.number, cut + 1))
            elif value != value:  # noqa: PLR0124 — a NaN
                self._beyond.append(scale.number)
            else:
                self._gaps.append((scale.number, bisect_left(scale.cuts, value)))
        self._missing = absent
        self._absent = _picker(absent)

    def sift(self, block: Block) -> tuple[int, int]:
        """Two rows: who survives, and who of them is in doubt."""
        absent = self._absent
        bad = 0 if absent is None else reduce(or_, absent(block.present))
        doubt = block.check
        columns = block.columns
        for scale, row in self._cuts:
            column = columns[scale]
            bad |= column.rows[row] | column.outers[row // GROUP_ROWS]
            if column.thin:
                doubt |= column.thin
        for scale, row in self._gaps:
            outside, unsure = columns[scale].gap(row)
            bad |= outside
            doubt |= unsure
        for scale in self._members:
            bad |= columns[scale].members
        for scale in self._beyond:  # no bound admits a NaN
            column = columns[scale]
            bad |= column.violated(0) | column.violated(len(column.rows) - 1)
            doubt |= column.thin
        live = block.live
        good = live ^ (live & bad)
        return good, good & doubt

    def sift_sheet(self, sheet: Sheet) -> tuple[Words, Words | None]:
        """The same for a sheet; None if nobody can be in doubt."""
        either = np.bitwise_or
        levels, marks, strips = sheet.levels.shown, sheet.marks.shown, sheet.strips
        bad = sheet.dead.copy()
        doubts = [marks[0]] if sheet.check else []
        for mark in sheet.marks_of(self._missing):
            either(bad, marks[mark], bad)
        for scale, row in self._cuts:
            strip = strips[scale]
            either(bad, levels[strip.order[row]], bad)
            if strip.thins:
                doubts.append(marks[strip.thin])
        for scale, row in self._gaps:
            outside, unsure = sheet.gap(scale, row)
            either(bad, outside, bad)
            doubts.append(unsure)
        for scale in self._members:
            either(bad, marks[strips[scale].member], bad)
        for scale in self._beyond:  # no bound admits a NaN
            strip = strips[scale]
            either(bad, levels[strip.order[0]], bad)
            either(bad, levels[strip.order[-1]], bad)
            doubts.append(marks[strip.thin])
        good = np.invert(bad, bad)
        if not doubts:
            return good, None
        return good, np.bitwise_or.reduce(doubts) & good


def sift_alone(block: Block, layout: Layout, content: Content) -> tuple[int, int]:
    """`Probe(layout, content).sift(block)` in one go, for the small tables on a broker's hot path."""
    get = content.get
    columns, present = block.columns, block.present
    bad, doubt = 0, block.check
    for attribute, number, scales in layout.tracks:
        value = get(attribute)
        if value is None:
            bad |= present[number]
            continue
        scale = scales.get(value.__class__)
        if scale is None:
            for other in layout.axes[number].all_scales():
                bad |= columns[other].members
            continue
        if scale.others:
            for other in scale.others:
                bad |= columns[other].members
        column = columns[scale.number]
        cut = scale.points.get(value)
        if cut is not None:
            bad |= column.rows[cut + 1] | column.outers[(cut + 1) // GROUP_ROWS]
            if column.thin:
                doubt |= column.thin
        elif value == value:  # noqa: PLR0124 — not a NaN
            outside, unsure = column.gap(bisect_left(scale.cuts, value))
            bad |= outside
            doubt |= unsure
        else:
            bad |= column.violated(0) | column.violated(len(column.rows) - 1)
            doubt |= column.thin
    good = block.live & ~bad
    return good, good & doubt


def _picker(numbers: list[int]) -> Pick | None:
    """A fast way to take these rows out of a block's list, or None for no rows."""
    if not numbers:
        return None
    if len(numbers) == 1:
        only = numbers[0]
        return lambda rows: (rows[only],)
    return itemgetter(*numbers)
