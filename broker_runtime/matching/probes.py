"""Decides which slots of a block survive a question; never verifies a survivor.

A probe is a question put in terms of one layout: numbers of axes, scales and cells. `sift` answers for a
block with two rows: who survives, and who of them is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import itemgetter, or_

from broker_runtime.matching.block import Block, Column
from broker_runtime.matching.layout import Axis, Layout, Scale
from broker_runtime.matching.rules import Rule

Pick = Callable[[list[int]], Sequence[int]]


def picker(numbers: list[int]) -> Pick | None:
    """A fast way to take these rows out of a block's list, or None for no rows."""
    if not numbers:
        return None
    if len(numbers) == 1:
        only = numbers[0]
        return lambda rows: (rows[only],)
    return itemgetter(*numbers)


class Probe:
    """Who needs no attribute but the present ones, and is violated by none of the chosen rows."""

    __slots__ = ("_absent", "cells", "doubts", "highs", "lows", "members", "overs", "present", "unders")

    def __init__(self) -> None:
        self.present: list[int] = []
        self._absent: Pick | None = None
        self.cells: list[tuple[int, int]] = []  # (scale, cell): violated there, by either bound
        self.overs: list[tuple[int, int]] = []  # violated there by the upper bound
        self.unders: list[tuple[int, int]] = []  # violated there by the lower bound
        self.doubts: list[tuple[int, int]] = []  # (scale, gap)
        self.members: list[int] = []  # scales: asks for this kind
        self.lows: list[int] = []  # has a lower bound
        self.highs: list[int] = []  # has an upper bound

    def miss(self, absent: list[int]) -> None:
        self._absent = picker(absent)

    def sift(self, block: Block) -> tuple[int, int]:
        absent = self._absent
        bad = 0 if absent is None else reduce(or_, absent(block.present))
        live = block.live
        columns = block.columns
        for scale, cell in self.cells:
            bad |= columns[scale].cells[cell]
        if self.members or self.lows or self.highs or self.overs or self.unders:
            bad |= self._rare(columns)
        good = live ^ (live & bad)
        if not good:
            return 0, 0
        doubt = block.check
        for scale, gap in self.doubts:
            doubt |= columns[scale].doubts[gap]
        return good, good & doubt

    def _rare(self, columns: list[Column]) -> int:
        bad = 0
        for scale in self.members:
            bad |= columns[scale].members
        for scale in self.lows:
            bad |= columns[scale].lows
        for scale in self.highs:
            bad |= columns[scale].highs
        for scale, cell in self.overs:
            bad |= columns[scale].over(cell)
        for scale, cell in self.unders:
            bad |= columns[scale].under(cell)
        return bad

    def doubt(self, scale: Scale, cell: int) -> None:
        if not cell & 1:
            self.doubts.append((scale.number, cell // 2))

    def kind(self, axis: Axis, rule: Rule) -> Scale | None:
        """Fail those of another kind; the scale of the rule's own kind, if anybody asks for that."""
        if rule.kind is None:
            return None
        self.members += axis.other_scales(rule.kind)
        return axis.scales.get(rule.cls)


def covering_probe(layout: Layout, asked: dict[str, Rule]) -> Probe:
    """Who admits both ends of what is asked, on every attribute it names."""
    probe = _subset_probe(layout, asked)
    for rule in asked.values():
        axis = layout.axis_by_attribute.get(rule.attribute)
        if axis is None:
            continue
        if rule.kind is None:
            probe.members += axis.all_scales()
            continue
        scale = probe.kind(axis, rule)
        if scale is None or is_loose(rule):
            continue
        for bound, cell, unbounded in (
            (rule.low, scale.after if rule.low_open else scale.at, probe.lows),
            (rule.high, scale.before if rule.high_open else scale.at, probe.highs),
        ):
            if bound is None:
                unbounded.append(scale.number)
            else:
                probe.cells.append((scale.number, cell(bound)))
                probe.doubt(scale, cell(bound))
    return probe


def overlap_probe(layout: Layout, asked: dict[str, Rule], subset: bool) -> Probe:
    """Who is not disjoint from what is asked, on every attribute that both name."""
    probe = _subset_probe(layout, asked) if subset else Probe()
    for rule in asked.values():
        axis = layout.axis_by_attribute.get(rule.attribute)
        scale = None if axis is None else probe.kind(axis, rule)
        if scale is None:
            continue
        if rule.low is not None:
            cell = scale.after(rule.low) if rule.low_open else scale.at(rule.low)
            probe.overs.append((scale.number, cell))
            probe.doubt(scale, cell)
        if rule.high is not None:
            cell = scale.before(rule.high) if rule.high_open else scale.at(rule.high)
            probe.unders.append((scale.number, cell))
            probe.doubt(scale, cell)
    return probe


def _subset_probe(layout: Layout, asked: dict[str, Rule]) -> Probe:
    probe = Probe()
    absent: list[int] = []
    present: list[int] = []
    for axis in layout.axes:
        (present if axis.attribute in asked else absent).append(axis.number)
    probe.present = present
    probe.miss(absent)
    return probe


def is_loose(rule: Rule) -> bool:
    """Whether the hull of what is asked tells less than `Constraint.includes` may find out.

    It lists the integers that a registered operator lets through, and there may be none.
    """
    return rule.constraint.integral and bool(rule.constraint.customs)


class CoveredProbe:
    """Who has every attribute that is asked for, within the bounds asked for."""

    __slots__ = ("_axes", "_doubts", "_members", "_overs", "_unders")

    def __init__(self, layout: Layout, asked: dict[str, Rule]) -> None:
        self._axes: list[int] = []
        self._members: list[int] = []
        self._unders: list[tuple[int, int]] = []
        self._overs: list[tuple[int, int]] = []
        self._doubts: list[tuple[int, int]] = []
        for rule in asked.values():
            self._require(layout.axis_by_attribute[rule.attribute], rule)

    def _require(self, axis: Axis, rule: Rule) -> None:
        self._axes.append(axis.number)
        if rule.kind is None:
            return
        scale = axis.scales[rule.cls]
        self._members.append(scale.number)
        ends = []
        if rule.low is not None:
            cell = scale.at(rule.low) if rule.low_open else scale.before(rule.low)
            self._unders.append((scale.number, cell))
            ends.append(cell)
        if rule.high is not None:
            cell = scale.at(rule.high) if rule.high_open else scale.after(rule.high)
            self._overs.append((scale.number, cell))
            ends.append(cell)
        self._doubts += [(scale.number, cell // 2) for cell in ends if not cell & 1]

    def sift(self, block: Block) -> tuple[int, int]:
        good = block.live
        for axis in self._axes:
            good &= block.present[axis]
        if not good:
            return 0, 0
        columns = block.columns
        for scale in self._members:
            good &= columns[scale].members
        doubt = block.check
        for scale, gap in self._doubts:
            doubt |= columns[scale].doubts[gap]
        for scale, cell in self._unders:
            good &= columns[scale].under(cell) | doubt
        for scale, cell in self._overs:
            good &= columns[scale].over(cell) | doubt
        return good, good & doubt


def covered_probe(layout: Layout, asked: dict[str, Rule]) -> CoveredProbe | None:
    """None when nobody in this partition can be covered: an attribute or a kind is never asked for."""
    for rule in asked.values():
        axis = layout.axis_by_attribute.get(rule.attribute)
        if axis is None or (rule.kind is not None and rule.cls not in axis.scales):
            return None
    return CoveredProbe(layout, asked)
