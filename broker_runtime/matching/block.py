"""Decides, for up to a few thousand subscriptions at once, whom a cell violates; never asks the language.

A row is a Python integer with one bit for each slot. For rows of this length its `|` and `^` are several
times cheaper than a call into numpy, and rows that are equal share their memory.
"""

from __future__ import annotations

from typing import Any

from broker_runtime.language.messages import Subscription
from broker_runtime.matching.layout import Layout, Scale, Split
from broker_runtime.matching.rules import Rule


class Record:
    """A stored subscription and where it is. Its rules leave out what its partition has settled."""

    __slots__ = ("block", "key", "partition", "plain", "rules", "slot", "subscription")

    def __init__(self, key: Any, subscription: Subscription, rules: tuple[Rule, ...], plain: bool) -> None:
        self.key = key
        self.subscription = subscription
        self.rules = rules
        self.plain = plain
        self.partition: Any = None
        self.block: Block | None = None
        self.slot = -1


class Column:
    """The rows of one scale in one block."""

    __slots__ = ("cells", "doubts", "highs", "lows", "members", "splits_seen", "unders")

    def __init__(self, scale: Scale) -> None:
        cuts = len(scale.cuts)
        self.members = 0  # who asks for this kind
        self.lows = 0  # who has a lower bound
        self.highs = 0  # who has an upper bound
        self.cells = [0] * (2 * cuts + 1)  # who is violated in the cell
        self.unders: list[int] = []  # who of those with both bounds is violated by the lower one
        self.doubts = [0] * (cuts + 1)  # whose bound lies inside the gap
        self.splits_seen = len(scale.splits)

    def over(self, cell: int) -> int:
        """Whose upper bound the cell exceeds."""
        row = self.cells[cell] & self.highs
        return row & ~self.unders[cell] if self.unders else row

    def under(self, cell: int) -> int:
        """Whose lower bound the cell falls short of."""
        row = self.cells[cell]
        return row ^ (row & self.over(cell))

    def flip(self, rule: Rule, scale: Scale, bit: int) -> tuple[int, ...]:
        """Put the rule in, or take it out again; the gaps in which it is in doubt."""
        self.members ^= bit
        low, high = rule.low is not None, rule.high is not None
        if not (low or high):
            return ()
        under, over, doubts = scale.span(rule)
        cells = self.cells
        if low:
            self.lows ^= bit
            cells[:under] = [row ^ bit for row in cells[:under]]
        if high:
            self.highs ^= bit
            cells[over:] = [row ^ bit for row in cells[over:]]
            if low:
                unders = self.unders = self.unders or [0] * len(cells)
                unders[:under] = [row ^ bit for row in unders[:under]]
        for gap in doubts:
            self.doubts[gap] ^= bit
        return doubts

    def follow(self, split: Split, rules: dict[int, Rule]) -> None:
        """Split a gap as the scale did. `rules` are those of the slots that are in doubt there."""
        cell = 2 * split.gap
        self.cells[cell : cell + 1] = [self.cells[cell]] * 3
        if self.unders:
            self.unders[cell : cell + 1] = [self.unders[cell]] * 3
        self.doubts[split.gap : split.gap + 1] = [0, 0]
        for slot, rule in rules.items():
            self._settle(split, rule, 1 << slot)

    def _settle(self, split: Split, rule: Rule, bit: int) -> None:
        cell, cut = 2 * split.gap, split.cut
        low, high = rule.low, rule.high
        for bound in (low, high):
            if bound is None or bound == cut:
                continue
            if bound < cut:
                if split.left is None or bound > split.left:
                    self.doubts[split.gap] |= bit
            elif split.right is None or bound < split.right:
                self.doubts[split.gap + 1] |= bit
        below: list[int] = []
        if low is not None and low >= cut:
            below = [cell, cell + 1] if low > cut or rule.low_open else [cell]
        above: list[int] = []
        if high is not None and high <= cut:
            above = [cell + 1, cell + 2] if high < cut or rule.high_open else [cell + 2]
        for each in below + above:
            self.cells[each] |= bit
        if high is not None:
            for each in below:
                self.unders[each] |= bit


class Block:
    """Slots for subscriptions, with the rows that say whom a publication violates."""

    __slots__ = ("_free", "check", "columns", "keys", "live", "present", "records", "version")

    def __init__(self) -> None:
        self.records: list[Record | None] = []
        self.keys: list[Any] = []
        self._free: list[int] = []
        self.live = 0  # slots in use
        self.check = 0  # slots whose rules are not all plain: always verified
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
        record.block, record.slot = self, slot
        self._flip(record, layout, 1)

    def take_out(self, record: Record, layout: Layout) -> None:
        slot = record.slot
        self._flip(record, layout, -1)
        self.records[slot] = self.keys[slot] = None
        self._free.append(slot)
        record.block = None

    def _flip(self, record: Record, layout: Layout, step: int) -> None:
        if self.version != layout.version:
            self.catch_up(layout)
        bit = 1 << record.slot
        self.live ^= bit
        if not record.plain:
            self.check ^= bit
        for rule in record.rules:
            axis = layout.axis_by_attribute[rule.attribute]
            axis.users += step
            self.present[axis.number] ^= bit
            if rule.kind is not None:
                scale = axis.scales[rule.cls]
                doubts = self.columns[scale.number].flip(rule, scale, bit)
                if doubts:
                    scale.count_doubts(doubts, step)

    def catch_up(self, layout: Layout) -> None:
        """Follow what the layout has become since this block was last looked at."""
        self.present += [0] * (len(layout.axes) - len(self.present))
        for axis in layout.axes:
            for number in axis.all_scales():
                scale = layout.scales[number]
                while len(self.columns) <= number:
                    self.columns.append(Column(layout.scales[len(self.columns)]))
                column = self.columns[number]
                for split in scale.splits[column.splits_seen :]:
                    column.follow(split, self._in_doubt(column.doubts[split.gap], axis.attribute))
                column.splits_seen = len(scale.splits)
        self.version = layout.version

    def _in_doubt(self, row: int, attribute: str) -> dict[int, Rule]:
        found: dict[int, Rule] = {}
        for slot in slots_of(row):
            record = self.records[slot]
            assert record is not None
            found[slot] = next(rule for rule in record.rules if rule.attribute == attribute)
        return found


def slots_of(row: int) -> list[int]:
    """The numbers of the bits that are set, ascending. For rows with few of them."""
    slots = []
    while row:
        lowest = row & -row
        slots.append(lowest.bit_length() - 1)
        row ^= lowest
    return slots
