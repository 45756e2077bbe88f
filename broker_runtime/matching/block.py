"""Decides, for up to a few thousand subscriptions at once, whom a value violates; never asks the language.

A row is a Python integer with one bit for each slot. For rows of this length its `|` and `^` are several
times cheaper than a call into numpy. Each scale has a row for each cut, telling whom that very value
violates, and one at either end for the values beyond all cuts. A value in the gap between two cuts violates
whom both violate and satisfies whom both satisfy. Of the others, a closed end rests on the cut that satisfies
it, so the gap is outside, and an open end on the cut that violates it, so the gap is inside; only who has an
end inside some gap is in doubt. An interval that holds no cut at all is *thin*: the cuts beside it let it
pass, and it is always in doubt.

Rows come in groups. Who is violated throughout a group is noted once, in the group's outer row, and only
there; so an interval changes the rows of the groups in which it ends, and one row for each of the others.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

from broker_runtime.matching.layout import Layout, Scale, Split
from broker_runtime.matching.rules import Rule

GROUP_ROWS = 16


class Record:
    """A stored message and where it is. Its rules leave out what its partition has settled."""

    __slots__ = ("holder", "key", "message", "partition", "plain", "rules", "slot")

    def __init__(self, key: Any, message: Any, rules: tuple[Rule, ...], plain: bool) -> None:
        self.key = key
        self.message = message
        self.rules = rules
        self.plain = plain
        self.partition: Any = None
        self.holder: Any = None  # the block, or the cell of a sheet, that the slot is in
        self.slot = -1


class Column:
    """The rows of one scale in one block."""

    __slots__ = (
        "closed_high",
        "closed_low",
        "inexact",
        "members",
        "outers",
        "rows",
        "splits_seen",
        "thin",
    )

    def __init__(self, scale: Scale) -> None:
        self.members = 0  # who asks for this kind
        self.closed_low = 0  # who has a lower bound that is itself admitted
        self.closed_high = 0
        self.inexact = 0  # who has a bound that is no cut
        self.thin = 0
        self.rows = [0] * (len(scale.cuts) + 2)
        self.outers = [0] * len(self.rows[::GROUP_ROWS])
        self.splits_seen = len(scale.splits)

    def violated(self, row: int) -> int:
        return self.rows[row] | self.outers[row // GROUP_ROWS]

    def flip(self, rule: Rule, scale: Scale, bit: int) -> None:
        """Put the rule in, or take it out again."""
        self.members ^= bit
        _, _, under, over, exact = scale.place(rule)
        if not exact:
            self.inexact ^= bit
        if rule.low is not None and not rule.low_open:
            self.closed_low ^= bit
        if rule.high is not None and not rule.high_open:
            self.closed_high ^= bit
        if under == over:
            self.thin ^= bit
            under, over = under - 1, over + 1
        if over < len(self.rows):
            self._flip_from(over, bit)
        if under:
            self._flip_before(under, bit)

    def _flip_before(self, row: int, bit: int) -> None:
        rows, outers = self.rows, self.outers
        group = row // GROUP_ROWS
        start = group * GROUP_ROWS
        rows[start:row] = [each ^ bit for each in rows[start:row]]
        if group:
            outers[:group] = [each ^ bit for each in outers[:group]]

    def _flip_from(self, row: int, bit: int) -> None:
        rows, outers = self.rows, self.outers
        group = -(-row // GROUP_ROWS)
        end = group * GROUP_ROWS
        rows[row:end] = [each ^ bit for each in rows[row:end]]
        if group < len(outers):
            outers[group:] = [each ^ bit for each in outers[group:]]

    def gap(self, row: int) -> tuple[int, int]:
        """Whom a value between the cuts of this row and the next violates, and who is in doubt."""
        below, above = self.violated(row), self.violated(row + 1)
        differing = below ^ above
        if not differing:
            return below, self.thin
        outside = (below & self.closed_low) | (above & self.closed_high)
        doubt = differing & self.inexact
        return (below & above) | (differing & outside & ~doubt), doubt | self.thin

    def in_question(self, gap: int) -> int:
        """Whose place relative to a cut in this gap the rows do not tell."""
        below, above = self.violated(gap), self.violated(gap + 1)
        return (below ^ above) | (self.thin & ~(below | above))

    def follow(self, split: Split, rules: list[tuple[int, Rule]], scale: Scale) -> None:
        """Split a gap as the scale did; `rules` are those in question there, with their bits."""
        gap, cut = split
        rows = [self.violated(row) for row in range(len(self.rows))]
        rows.insert(gap + 1, rows[gap] & rows[gap + 1])
        for bit, rule in rules:
            if self.inexact & bit and scale.place(rule).exact:
                self.inexact ^= bit
            is_below, is_above = below(rule, cut), above(rule, cut)
            if (rows[gap] ^ rows[gap + 2]) & bit:
                if is_below or is_above:
                    rows[gap + 1] |= bit
            elif is_below:  # thin, and now between the cut and the next one above
                rows[gap] |= bit
            elif is_above:
                rows[gap + 2] |= bit
            else:
                rows[gap] |= bit
                rows[gap + 2] |= bit
                self.thin ^= bit
        starts = range(0, len(rows), GROUP_ROWS)
        self.outers = [reduce(and_, rows[start : start + GROUP_ROWS]) for start in starts]
        self.rows = [row ^ self.outers[i // GROUP_ROWS] for i, row in enumerate(rows)]


def below(rule: Rule, value: Any) -> bool:
    """Whether the value is below the interval."""
    low = rule.low
    return low is not None and (low > value or (rule.low_open and low == value))


def above(rule: Rule, value: Any) -> bool:
    high = rule.high
    return high is not None and (high < value or (rule.high_open and high == value))


class Block:
    """Slots for subscriptions, with the rows that say whom a publication violates."""

    __slots__ = ("_free", "check", "columns", "keys", "live", "present", "records", "version")

    def __init__(self) -> None:
        self.records: list[Record | None] = []
        self.keys: list[Any] = []
        self._free: list[int] = []
        self.live = 0  # slots in use
        self.check = 0  # slots whose rules are not all plain: always in doubt
        self.present: list[int] = []  # by axis: who needs the attribute
        self.columns: list[Column] = []  # by scale
        self.version = 0

    def has_room(self, capacity: int) -> bool:
        return len(self.records) < capacity or bool(self._free)

    def put(self, record: Record, layout: Layout) -> None:
        if self._free:
            slot = self._free.pop()
            self.records[slot] = record
            self.keys[slot] = record.key
        else:
            slot = len(self.records)
            self.records.append(record)
            self.keys.append(record.key)
        record.holder, record.slot = self, slot
        self._flip(record, layout)

    def take_out(self, record: Record, layout: Layout) -> None:
        slot = record.slot
        self._flip(record, layout)
        self.records[slot] = self.keys[slot] = None
        self._free.append(slot)
        record.holder = None

    def living(self) -> int:
        return self.live

    def unplain(self) -> int:
        return self.check

    def needing(self, axes: list[int]) -> int:
        """Who needs any of these."""
        return reduce(or_, [self.present[axis] for axis in axes], 0)

    def members(self, scale: int) -> int:
        return self.columns[scale].members

    def thin(self, scale: int) -> int:
        return self.columns[scale].thin

    def violated(self, scale: int, row: int) -> int:
        return self.columns[scale].violated(row)

    def throughout(self, scale: int, first: int, last: int) -> int:
        """Whom all rows from the first to the last violate."""
        column = self.columns[scale]
        return reduce(and_, [column.violated(row) for row in range(first, last + 1)])

    def gap(self, scale: int, row: int) -> tuple[int, int]:
        return self.columns[scale].gap(row)

    def _flip(self, record: Record, layout: Layout) -> None:
        if self.version != layout.version:
            self.catch_up(layout)
        bit = 1 << record.slot
        self.live ^= bit
        if not record.plain:
            self.check ^= bit
        axes = layout.axis_by_attribute
        for rule in record.rules:
            axis = axes[rule.attribute]
            self.present[axis.number] ^= bit
            if rule.kind is not None:
                scale = axis.scales[rule.cls]
                self.columns[scale.number].flip(rule, scale, bit)

    def catch_up(self, layout: Layout) -> None:
        """Follow what the layout has become since this block was last looked at."""
        self.present += [0] * (len(layout.axes) - len(self.present))
        columns = self.columns
        columns += [Column(scale) for scale in layout.scales[len(columns) :]]
        for axis in layout.axes:
            for scale in axis.scales.values():
                column = columns[scale.number]
                if column.splits_seen != len(scale.splits):
                    for split in scale.splits[column.splits_seen :]:
                        in_question = column.in_question(split.gap)
                        column.follow(split, self._rules(in_question, axis.attribute), scale)
                    column.splits_seen = len(scale.splits)
        self.version = layout.version

    def _rules(self, row: int, attribute: str) -> list[tuple[int, Rule]]:
        found = []
        for slot in slots_of(row):
            record = self.records[slot]
            assert record is not None
            found += [(1 << slot, rule) for rule in record.rules if rule.attribute == attribute]
        return found


def slots_of(row: int) -> list[int]:
    """The numbers of the bits that are set, ascending. For rows with few of them."""
    slots = []
    while row:
        lowest = row & -row
        slots.append(lowest.bit_length() - 1)
        row ^= lowest
    return slots
