"""Decides, for many thousands of subscriptions at once, whom a value violates; never asks the language.

The rows mean what they mean in a `block`; here they are stretches of memory that numpy works on, so that the
cost of a call is shared by a whole sheet. What is cheap there is dear here: one slot's bit lies in a
different page of memory for each row. So slots are not changed one by one. A cell of neighbouring slots is
written in one go, every row of it, and a slot that was left stays dead until its whole cell is written anew.

Rows that compare (*levels*) belong to a scale and have a rank among its cuts: a slot is violated if the rank
is below or above its interval. Every so many cuts there are two more, for below and for above alone, lest
relations have to read all rows of a range. Rows that ask for a property (*marks*) have a source and a mask:
for each four axes, which of them a slot needs, with one row for each choice of the four, so that the absence
of any of them takes one row; and for each scale, what is known about the slot's interval.
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from broker_runtime.matching.block import Record, above, below
from broker_runtime.matching.layout import Axis, Layout, Scale, Split
from broker_runtime.matching.rows import CELL_SLOTS, SLOTS_SHOWN_FIRST, Rows, Words, clear, put, slots_in
from broker_runtime.matching.rules import Rule

AXES_PER_GROUP: Final = 4
BEYOND: Final = 32_767  # all ranks
CUTS_PER_MILESTONE = 24
CELL_LIVE_MIN: Final = 5  # with no more in use, a cell is given up

MEMBER, CLOSED_LOW, CLOSED_HIGH, INEXACT, THIN = 1, 2, 4, 8, 16
SCALE_MARKS: Final = (MEMBER, CLOSED_LOW, CLOSED_HIGH, INEXACT, THIN)


class Cell:
    """Some neighbouring slots. A record keeps its cell and a number below 16, which takes no memory."""

    __slots__ = ("first", "live", "sheet")

    def __init__(self, sheet: Sheet, first: int) -> None:
        self.sheet = sheet
        self.first = first
        self.live = 0  # slots in use


class Strip:
    """The rows of one scale in one sheet, by their numbers."""

    __slots__ = (
        "above",
        "below",
        "closed_high",
        "closed_low",
        "inexact",
        "member",
        "order",
        "source",
        "splits_seen",
        "thin",
        "thins",
    )

    def __init__(self, source: int, marks: list[int], order: list[int], splits_seen: int) -> None:
        self.source = source  # where a cell's facts tell of it
        self.member, self.closed_low, self.closed_high, self.inexact, self.thin = marks
        self.order = order  # the levels in the order of their ranks
        # By rank: the level for below alone, if there is one here.
        self.below: list[int | None] = [None] * len(order)
        self.above: list[int | None] = [None] * len(order)
        self.splits_seen = splits_seen
        self.thins = False  # whether anybody was ever thin


class Sheet:
    """Slots for subscriptions, with the rows that say whom a publication violates."""

    __slots__ = (
        "_dead_bytes",
        "_free",
        "_groups",
        "_mask",
        "_needs",
        "_rank_above",
        "_rank_below",
        "_scale",
        "_slots_max",
        "_source",
        "_sources",
        "check",
        "dead",
        "keys",
        "levels",
        "marks",
        "records",
        "strips",
        "version",
    )

    def __init__(self, slots: int) -> None:
        words = -(-slots // 64)
        self._slots_max = words * 64
        self._free: list[Cell] = []
        self.levels = Rows(words)
        self.marks = Rows(words)
        self._dead_bytes = bytearray(b"\xff" * (8 * words))
        self.dead = self._dead_view(min(words, SLOTS_SHOWN_FIRST // 64))
        self.keys = np.full(len(self.dead) * 64, None, dtype=object)
        self.records: list[Record | None] = []
        self.check = False  # whether any slot ever had a rule that is not plain: the first mark tells which
        self._groups: list[int] = []  # for each four axes, the mark before their first
        # By axis: where a cell's facts tell who needs it, and the bit.
        self._needs: list[tuple[int, int]] = []
        self.strips: list[Strip] = []  # by scale
        self.version = -1
        self._rank_below = np.zeros(0, np.int16)  # by level
        self._rank_above = np.zeros(0, np.int16)
        self._scale = np.zeros(0, np.intp)
        self._sources = 0
        self._source = np.zeros(0, np.intp)  # by mark
        self._mask = np.zeros(0, np.uint8)
        self._add_marks((1,))

    def has_room(self) -> bool:
        return bool(self._free) or len(self.records) < self._slots_max

    def write(self, records: list[Record], layout: Layout) -> None:
        """Fill a cell with these records."""
        if self.version != layout.version:
            self.catch_up(layout)
        cell = self._take_cell()
        under = array("h", bytes(2 * CELL_SLOTS * len(layout.scales)))
        over = array("h", [BEYOND]) * len(under)
        known = bytearray(CELL_SLOTS * self._sources)
        axes, strips, needs = layout.axis_by_attribute, self.strips, self._needs
        for place, record in enumerate(records):
            record.holder, record.slot = cell, place
            if not record.plain:
                self.check = True
                known[place] = 1
            for rule in record.rules:
                axis = axes[rule.attribute]
                source, need = needs[axis.number]
                known[source + place] |= need
                if rule.kind is None:
                    continue
                scale = axis.scales[rule.cls]
                strip = strips[scale.number]
                _, _, low, high, exact = scale.place(rule)
                facts = MEMBER if exact else MEMBER | INEXACT
                if rule.low is not None and not rule.low_open:
                    facts |= CLOSED_LOW
                if rule.high is not None and not rule.high_open:
                    facts |= CLOSED_HIGH
                if low == high:
                    facts |= THIN
                    strip.thins = True
                    low, high = low - 1, high + 1
                known[strip.source + place] = facts
                at = scale.number * CELL_SLOTS + place
                under[at], over[at] = low, high
        self._fill(cell, records)
        self._write_levels(cell, under, over)
        facts_by_source = np.frombuffer(known, np.uint8).reshape(-1, CELL_SLOTS)
        self.marks.write(cell.first // CELL_SLOTS, (facts_by_source[self._source] & self._mask[:, None]) != 0)

    def take_out(self, record: Record) -> list[Record]:
        """Leave the slot; if that leaves its cell mostly empty, all the others, who need a new place."""
        cell: Cell = record.holder
        self._leave(record)
        if cell.live > CELL_LIVE_MIN:
            return []
        rest = [each for each in self.records[cell.first : cell.first + CELL_SLOTS] if each is not None]
        for each in rest:
            self._leave(each)
        self._free.append(cell)
        return rest

    def living(self) -> Words:
        return ~self.dead

    def unplain(self) -> Words | int:
        return self.marks.shown[0] if self.check else 0

    def needing(self, axes: list[int]) -> Words:
        """Who needs any of these."""
        marks = [self.marks.shown[mark] for mark in self.marks_of(axes)]
        if len(marks) == 1:
            return marks[0]
        row = np.zeros_like(self.dead)
        for mark in marks:
            row |= mark
        return row

    def marks_of(self, axes: list[int]) -> list[int]:
        """The marks of those who need any of these."""
        members = [0] * len(self._groups)
        for axis in axes:
            members[axis // AXES_PER_GROUP] |= 1 << axis % AXES_PER_GROUP
        return [group + chosen for group, chosen in zip(self._groups, members, strict=True) if chosen]

    def members(self, scale: int) -> Words:
        return self.marks.shown[self.strips[scale].member]

    def thin(self, scale: int) -> Words | int:
        strip = self.strips[scale]
        return self.marks.shown[strip.thin] if strip.thins else 0

    def violated(self, scale: int, row: int) -> Words:
        return self.levels.shown[self.strips[scale].order[row]]

    def throughout(self, scale: int, first: int, last: int) -> Words:
        """Whom all rows from the first to the last violate: the range is below or above them."""
        strip = self.strips[scale]
        if first == 0:
            return self._below(strip, last)
        if last == len(strip.order) - 1:
            return self._above(strip, first)
        if last - first > CUTS_PER_MILESTONE:
            return self._below(strip, last) | self._above(strip, first)
        return self._common(strip.order[first : last + 1])

    def _below(self, strip: Strip, row: int) -> Words:
        start = row
        while start and strip.below[start] is None:
            start -= 1
        milestone = strip.below[start]
        rows = strip.order[start : row + 1]
        return self._common(rows if milestone is None else [milestone, *rows[1:]])

    def _above(self, strip: Strip, row: int) -> Words:
        end = row
        while end < len(strip.order) - 1 and strip.above[end] is None:
            end += 1
        milestone = strip.above[end]
        rows = strip.order[row : end + 1]
        return self._common(rows if milestone is None else [milestone, *rows[:-1]])

    def _common(self, numbers: list[int]) -> Words:
        levels, both = self.levels.shown, np.bitwise_and
        row = levels[numbers[0]].copy()
        for number in numbers[1:]:
            both(row, levels[number], row)
        return row

    def gap(self, scale: int, row: int) -> tuple[Words, Words]:
        """Whom a value between this row and the next violates, and who is in doubt (see `block`)."""
        strip, marks = self.strips[scale], self.marks.shown
        lower, upper = self.violated(scale, row), self.violated(scale, row + 1)
        differing = lower ^ upper
        doubt = differing & marks[strip.inexact]
        outside = (lower & marks[strip.closed_low]) | (upper & marks[strip.closed_high])
        outside &= differing & ~doubt
        outside |= lower & upper
        if strip.thins:
            doubt |= marks[strip.thin]
        return outside, doubt

    def catch_up(self, layout: Layout) -> None:
        """Follow what the layout has become since this sheet was last looked at."""
        while len(self._groups) * AXES_PER_GROUP < len(layout.axes):
            self._needs += [(CELL_SLOTS * self._sources, 1 << axis) for axis in range(AXES_PER_GROUP)]
            self._groups.append(self._add_marks(tuple(range(1, 1 << AXES_PER_GROUP)))[0] - 1)
        for scale in layout.scales[len(self.strips) :]:
            marks = self._add_marks(SCALE_MARKS)
            order = [self.levels.add() for _ in range(len(scale.cuts) + 2)]
            strip = Strip(CELL_SLOTS * (self._sources - 1), marks, order, len(scale.splits))
            for rank in range(CUTS_PER_MILESTONE, len(order) - 1, CUTS_PER_MILESTONE):
                strip.below[rank], strip.above[rank] = self.levels.add(), self.levels.add()
            self.strips.append(strip)
            self._rank_levels(scale)
        for axis in layout.axes:
            for scale in axis.scales.values():
                if self.strips[scale.number].splits_seen != len(scale.splits):
                    self._follow(axis, scale)
        self.version = layout.version

    def _follow(self, axis: Axis, scale: Scale) -> None:
        strip = self.strips[scale.number]
        asked: dict[int, Rule] = {}
        for split in scale.splits[strip.splits_seen :]:
            asked |= self._split(scale.number, split, axis.attribute)
        # Not before all cuts are there: until then, an end that will be a cut still lies inside a gap.
        exact = [slot for slot, rule in asked.items() if scale.place(rule).exact]
        clear(self.marks.shown[strip.inexact], exact)
        strip.splits_seen = len(scale.splits)
        self._rank_levels(scale)

    def _split(self, scale: int, split: Split, attribute: str) -> dict[int, Rule]:
        """Split a gap as the scale did; the rules that had to be asked, by their slots."""
        gap, cut = split
        strip = self.strips[scale]
        lower, upper = self.violated(scale, gap), self.violated(scale, gap + 1)
        thin = self.marks.shown[strip.thin]
        differing = lower ^ upper
        question = differing & (self.marks.shown[strip.inexact] | thin)
        question |= thin & ~(lower | upper)
        question &= ~self.dead
        outside, _ = self.gap(scale, gap)
        number = self.levels.add()
        row = self.levels.shown[number]
        row[:] = outside & ~question
        strip.order.insert(gap + 1, number)
        strip.below.insert(gap + 1, None)
        strip.above.insert(gap + 1, None)
        asked = {}
        lowers: list[int] = []
        rows: list[int] = []
        uppers: list[int] = []
        thickened: list[int] = []
        undecided = set(slots_in(question & ~differing))
        for slot in slots_in(question):
            asked[slot] = rule = self._rule(slot, attribute)
            is_below, is_above = below(rule, cut), above(rule, cut)
            if slot not in undecided:
                if is_below or is_above:
                    rows.append(slot)
            elif is_below:  # thin, and now between the cut and the next one above
                lowers.append(slot)
            elif is_above:
                uppers.append(slot)
            else:
                lowers.append(slot)
                uppers.append(slot)
                thickened.append(slot)
        for where, slots in ((lower, lowers), (row, rows), (upper, uppers)):
            put(where, slots)
        for milestone, slots in ((strip.below[gap], lowers), (strip.above[gap + 2], uppers)):
            if milestone is not None:
                put(self.levels.shown[milestone], slots)
        clear(thin, thickened)
        return asked

    def _rule(self, slot: int, attribute: str) -> Rule:
        record = self.records[slot]
        assert record is not None
        return next(rule for rule in record.rules if rule.attribute == attribute)

    def _add_marks(self, masks: tuple[int, ...]) -> list[int]:
        """Rows for a new source, one for each mask."""
        numbers = [self.marks.add() for _ in masks]
        self._source = np.append(self._source, np.full(len(masks), self._sources, np.intp))
        self._mask = np.append(self._mask, np.array(masks, np.uint8))
        self._sources += 1
        return numbers

    def _rank_levels(self, scale: Scale) -> None:
        strip = self.strips[scale.number]
        missing = len(self.levels.shown) - len(self._scale)
        self._scale = np.append(self._scale, np.full(missing, scale.number, np.intp))
        self._rank_below = np.append(self._rank_below, np.full(missing, BEYOND, np.int16))
        self._rank_above = np.append(self._rank_above, np.full(missing, -1, np.int16))
        for ranks, milestones in ((self._rank_below, strip.below), (self._rank_above, strip.above)):
            ranks[strip.order] = np.arange(len(strip.order), dtype=np.int16)
            for rank, number in enumerate(milestones):
                if number is not None:
                    ranks[number] = rank

    def _write_levels(self, cell: Cell, under: array[int], over: array[int]) -> None:
        if not under:
            return
        bits = self._rank_below[:, None] < np.frombuffer(under, np.int16).reshape(-1, CELL_SLOTS)[self._scale]
        bits |= (
            self._rank_above[:, None] >= np.frombuffer(over, np.int16).reshape(-1, CELL_SLOTS)[self._scale]
        )
        self.levels.write(cell.first // CELL_SLOTS, bits)

    def _take_cell(self) -> Cell:
        if self._free:
            return self._free.pop()
        cell = Cell(self, len(self.records))
        self.records += [None] * CELL_SLOTS
        if len(self.records) > 64 * len(self.dead):
            words = min(2 * len(self.dead), len(self._dead_bytes) // 8)
            self.dead = self._dead_view(words)
            self.keys = np.append(self.keys, np.full(64 * words - len(self.keys), None, dtype=object))
            self.levels.show(words)
            self.marks.show(words)
        return cell

    def _dead_view(self, words: int) -> Words:
        return np.frombuffer(self._dead_bytes, np.uint64, words)

    def _fill(self, cell: Cell, records: list[Record]) -> None:
        cell.live = len(records)
        for slot, record in enumerate(records, cell.first):
            self.records[slot] = record
            self.keys[slot] = record.key
            self._dead_bytes[slot >> 3] ^= 1 << (slot & 7)

    def _leave(self, record: Record) -> None:
        cell: Cell = record.holder
        slot = cell.first + record.slot
        record.holder = None
        self.records[slot] = self.keys[slot] = None
        self._dead_bytes[slot >> 3] ^= 1 << (slot & 7)
        cell.live -= 1
