"""Decides where a subscription is kept; never answers a question.

A partition holds subscriptions that agree on the equalities of its path, first of all on the class. While it
is small it is a list. Then it is a block, and what finds the block full goes to a shelf of sheets. Both are
there because the integers of a small block answer in less time than a few calls into numpy take, but each
addition copies some of them whole, while sheets have room for any number. Nothing is moved from one to the
other. An attribute with many different equalities gets a hash table of partitions of its own; who is in the
block already and belongs there moves with the additions that follow, a few at a time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker_runtime.language.messages import CLASS
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Block, Record
from broker_runtime.matching.layout import CUTS_EXACT, Layout
from broker_runtime.matching.rules import Rule
from broker_runtime.matching.shelf import Shelf

HashKey = Value | tuple[str, bool]


class Sizes(NamedTuple):
    """The limits that shape partitions."""

    list_records_max: int = 4
    block_records_max: int = 8192
    waiting_records_max: int = 15
    cuts_exact: int = CUTS_EXACT
    hashed_values_min: int = 256
    sheet_slots_max: int = 262_144
    moves_per_addition: int = 16


DEFAULT_SIZES: Final = Sizes()


def hash_key(value: Value) -> HashKey:
    """What the value is hashed by: true is not 1."""
    return ("boolean", value) if value.__class__ is bool else value


class Partition:
    """Subscriptions that agree on a path of equalities."""

    __slots__ = (
        "_origin",
        "_unreviewed",
        "_values",
        "block",
        "few",
        "hashed",
        "layout",
        "records_count",
        "shelf",
        "sizes",
    )

    def __init__(self, sizes: Sizes, origin: tuple[Partition, str, HashKey] | None) -> None:
        self.sizes = sizes
        self.records_count = 0
        self.few: list[Record] | None = []
        self.layout = NO_LAYOUT
        self.block: Block | None = None
        self.shelf: Shelf | None = None
        self.hashed: dict[str, dict[HashKey, Partition]] = {}
        self._values: dict[str, set[HashKey]] = {}  # equalities seen on attributes that are not hashed
        self._unreviewed = 0  # slots of the block not looked at since the last table was opened
        self._origin = origin

    def place(self, record: Record) -> None:
        """Keep the record here or in a partition below."""
        self.records_count += 1
        if self.few is not None:
            if len(self.few) < self.sizes.list_records_max:
                self.few.append(record)
                record.partition = self
                return
            self._unfold()
        self._settle(record)

    def drop(self, record: Record) -> None:
        """Forget a record that is kept in this very partition."""
        if self.few is not None:
            self.few.remove(record)
        elif isinstance(record.holder, Block):
            record.holder.take_out(record, self.layout)
        elif self.shelf is not None:
            self.shelf.take_out(record, self.layout)
        self._shrink()

    def _shrink(self) -> None:
        self.records_count -= 1
        if self._origin is None:
            return
        parent, attribute, key = self._origin
        if not self.records_count:
            del parent.hashed[attribute][key]
            self._origin = None
        parent._shrink()

    def _unfold(self) -> None:
        records, self.few = self.few or [], None
        self.layout = Layout(self.sizes.cuts_exact)
        for record in records:
            self._settle(record)

    def _settle(self, record: Record) -> None:
        if self._unreviewed and self.block is not None:
            self._review(self.block)
        rule = self._equality(record)
        if rule is None:
            self._shelve(record)
        else:
            self._hash(record, rule)

    def _hash(self, record: Record, rule: Rule) -> None:
        table = self.hashed[rule.attribute]
        key = hash_key(rule.low)
        child = table.get(key)
        if child is None:
            child = table[key] = Partition(self.sizes, (self, rule.attribute, key))
        record.rules = tuple([each for each in record.rules if each is not rule])
        child.place(record)

    def _review(self, block: Block) -> None:
        """Move some of the block's records to the tables that have been opened since they came."""
        end = self._unreviewed
        start = self._unreviewed = max(0, end - self.sizes.moves_per_addition)
        for record in block.records[start:end]:
            rule = None if record is None else self._equality(record)
            if record is not None and rule is not None:
                block.take_out(record, self.layout)
                self._hash(record, rule)
        if not (self._unreviewed or block.live or self.shelf):
            self.block, self.layout = None, Layout(self.sizes.cuts_exact)

    def _equality(self, record: Record) -> Rule | None:
        """The rule to hash the record by, if it has an equality on an attribute that is worth hashing."""
        best, most = None, -1
        for rule in record.rules:
            value = rule.only
            if value is None:
                continue
            table = self.hashed.get(rule.attribute)
            if table is None:
                table = self._consider(rule.attribute, hash_key(value))
            if table is not None and len(table) > most:
                best, most = rule, len(table)
        return best

    def _consider(self, attribute: str, key: HashKey) -> dict[HashKey, Partition] | None:
        values = self._values.get(attribute)
        if values is None:
            values = self._values[attribute] = set()
        values.add(key)
        if len(values) < self.sizes.hashed_values_min:
            return None
        del self._values[attribute]
        table: dict[HashKey, Partition] = {}
        self.hashed[attribute] = table
        if self.block is not None:
            self._unreviewed = len(self.block.records)
        return table

    def _shelve(self, record: Record) -> None:
        layout = self.layout
        for rule in record.rules:
            layout.prepare(rule)
        record.partition = self
        if self.block is None:
            self.block = Block()
        if self.block.has_room(self.sizes.block_records_max):
            self.block.put(record, layout)
        else:
            if self.shelf is None:
                self.shelf = Shelf(self.sizes.waiting_records_max, self.sizes.sheet_slots_max)
            self.shelf.put(record, layout)


NO_LAYOUT: Final = Layout()


class Root(Partition):
    """The partition of everything, which hashes by class from the start."""

    __slots__ = ()

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, None)
        self.few = None
        self.layout = Layout(sizes.cuts_exact)
        self.hashed[CLASS] = {}

    def _equality(self, record: Record) -> Rule | None:
        for rule in record.rules:
            if rule.attribute == CLASS and rule.only is not None:
                return rule
        return super()._equality(record)
