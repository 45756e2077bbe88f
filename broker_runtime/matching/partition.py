"""Decides where a subscription is kept; never answers a question.

A partition holds subscriptions that agree on the equalities of its path, first of all on the class. While it
is small it is a list. Then it is a tree of blocks: a block takes what comes until it is full, and what comes
later goes to a branch named by the rarest attribute that is left, so that a publication without it passes by.
Nothing is ever moved, so no addition costs more than its own rows. An attribute with many different
equalities gets a hash table of partitions of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker_runtime.language.messages import CLASS
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Block, Record
from broker_runtime.matching.layout import CUTS_EXACT, Layout
from broker_runtime.matching.rules import Rule

HashKey = Value | tuple[str, bool]


class Sizes(NamedTuple):
    """The limits that shape a tree of partitions."""

    list_records_max: int = 5
    block_records_max: int = 4096
    cuts_exact: int = CUTS_EXACT
    hashed_values_min: int = 128


DEFAULT_SIZES: Final = Sizes()


def hash_key(value: Value) -> HashKey:
    """What the value is hashed by: true is not 1."""
    return ("boolean", value) if value.__class__ is bool else value  # type: ignore[return-value]


class Branch:
    """A block, and where those went that found it full."""

    __slots__ = ("block", "branches", "more")

    def __init__(self) -> None:
        self.block = Block()
        self.branches: dict[int, Branch] = {}  # by the number of the axis
        self.more: Branch | None = None  # for those with no attribute left to tell them apart


class Partition:
    """Subscriptions that agree on a path of equalities."""

    __slots__ = (
        "_origin",
        "_values",
        "blocks",
        "few",
        "hashed",
        "layout",
        "records_count",
        "sizes",
        "trunk",
    )

    def __init__(self, sizes: Sizes, origin: tuple[Partition, str, HashKey] | None) -> None:
        self.sizes = sizes
        self.records_count = 0
        self.few: list[Record] | None = []
        self.layout = NO_LAYOUT
        self.trunk: Branch | None = None
        self.blocks: list[Block] = []
        self.hashed: dict[str, dict[HashKey, Partition]] = {}
        self._values: dict[str, set[HashKey]] = {}  # equalities seen on attributes that are not hashed
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
        if record.block is None:
            assert self.few is not None
            self.few.remove(record)
        else:
            record.block.take_out(record, self.layout)
        self._shrink()

    def blocks_within(self, present: list[int]) -> list[Block]:
        """The blocks that can hold somebody who needs no axis but these."""
        blocks: list[Block] = []
        waiting = [self.trunk] if self.trunk else []
        for branch in waiting:  # which grows as we go
            blocks.append(branch.block)
            if branch.branches:
                below = branch.branches
                waiting += [below[axis] for axis in present if axis in below]
            if branch.more is not None:
                waiting.append(branch.more)
        return blocks

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
        rule = self._equality(record)
        if rule is None:
            self._shelve(record)
            return
        table = self.hashed[rule.attribute]
        key = hash_key(rule.low)
        child = table.get(key)
        if child is None:
            child = table[key] = Partition(self.sizes, (self, rule.attribute, key))
        record.rules = tuple(each for each in record.rules if each is not rule)
        child.place(record)

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
        values = self._values.setdefault(attribute, set())
        values.add(key)
        if len(values) < self.sizes.hashed_values_min:
            return None
        del self._values[attribute]
        table: dict[HashKey, Partition] = {}
        self.hashed[attribute] = table
        return table

    def _shelve(self, record: Record) -> None:
        layout = self.layout
        axes = [layout.prepare(rule) for rule in record.rules]
        branch = self.trunk
        if branch is None:
            branch = self.trunk = self._grow()
        if not branch.block.has_room(self.sizes.block_records_max):
            axes.sort(key=lambda axis: axis.rarity())
            for axis in axes:
                below = branch.branches.get(axis.number)
                if below is None:
                    below = branch.branches[axis.number] = self._grow()
                branch = below
                if branch.block.has_room(self.sizes.block_records_max):
                    break
            while not branch.block.has_room(self.sizes.block_records_max):
                if branch.more is None:
                    branch.more = self._grow()
                branch = branch.more
        record.partition = self
        branch.block.put(record, layout)

    def _grow(self) -> Branch:
        branch = Branch()
        self.blocks.append(branch.block)
        return branch


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
