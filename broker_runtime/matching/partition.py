"""Decides where a subscription is kept; never answers a question.

A partition holds subscriptions that agree on the equalities of its path, first of all on the class. While it
is small it is a list. Then it is a tree of blocks. The trunk takes what comes until a few blocks are full;
what comes later goes to a branch named by its two rarest attributes, then by one more, so that publications
without them pass by. Nothing is ever moved, so no addition costs more than its own rows. An attribute with
many different equalities gets a hash table of partitions of its own.
"""

from __future__ import annotations

from itertools import combinations
from operator import attrgetter
from typing import Final, NamedTuple

from broker_runtime.language.messages import CLASS
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Block, Record
from broker_runtime.matching.layout import CUTS_EXACT, Axis, Layout, NewCut
from broker_runtime.matching.ledger import Ledger
from broker_runtime.matching.rules import Rule

HashKey = Value | tuple[str, bool]
Twig = tuple[int, int]  # the numbers of two axes in ascending order, or of one and -1 before it


class Sizes(NamedTuple):
    """The limits that shape a tree of partitions."""

    list_records_max: int = 4
    block_records_max: int = 8192
    trunk_blocks_max: int = 2
    cuts_exact: int = CUTS_EXACT
    hashed_values_min: int = 256
    ledger_records_min: int = 256


DEFAULT_SIZES: Final = Sizes()


def hash_key(value: Value) -> HashKey:
    """What the value is hashed by: true is not 1."""
    return ("boolean", value) if value.__class__ is bool else value


class Branch:
    """A block, and where those went that found it full."""

    __slots__ = ("block", "branches", "more")

    def __init__(self) -> None:
        self.block = Block()
        self.branches: dict[Twig, Branch] = {}
        self.more: Branch | None = None  # for the trunk, and for want of another attribute


class Partition:
    """Subscriptions that agree on a path of equalities."""

    __slots__ = (
        "_origin",
        "_values",
        "blocks",
        "few",
        "hashed",
        "layout",
        "ledger",
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
        self.ledger: Ledger | None = None
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
            if self.ledger is not None:
                self.ledger.strike(record)
        self._shrink()

    def blocks_within(self, present: list[int]) -> list[Block]:
        """The blocks that can hold somebody who needs no axis but these, given in ascending order."""
        trunk = self.trunk
        if trunk is None:
            return []
        if not trunk.branches and trunk.more is None:
            return [trunk.block]
        twigs: list[Twig] = [(-1, axis) for axis in present]
        pairs = list(combinations(present, 2))
        blocks: list[Block] = []
        waiting = [trunk]
        for branch in waiting:  # which grows as we go
            blocks.append(branch.block)
            below = branch.branches
            if below:
                waiting += [below[twig] for twig in twigs if twig in below]
                if branch is trunk:
                    waiting += [below[twig] for twig in pairs if twig in below]
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
        record.rules = tuple([each for each in record.rules if each is not rule])
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
        values = self._values.get(attribute)
        if values is None:
            values = self._values[attribute] = set()
        values.add(key)
        if len(values) < self.sizes.hashed_values_min:
            return None
        del self._values[attribute]
        table: dict[HashKey, Partition] = {}
        self.hashed[attribute] = table
        return table

    def _shelve(self, record: Record) -> None:
        layout = self.layout
        news: list[NewCut] = []
        axes = [layout.prepare(rule, news) for rule in record.rules]
        branch = self.trunk
        if branch is None:
            branch = self.trunk = self._grow()
        if not branch.block.has_room(self.sizes.block_records_max):
            branch = self._branch_with_room(branch, axes)
        record.partition = self
        branch.block.put(record, layout)
        self._enter(record, news)

    def _branch_with_room(self, branch: Branch, axes: list[Axis]) -> Branch:
        trunk = branch
        capacity = self.sizes.block_records_max
        for _ in range(1, self.sizes.trunk_blocks_max):
            if trunk.more is None:
                trunk.more = self._grow()
            trunk = trunk.more
            if trunk.block.has_room(capacity):
                return trunk
        for twig in _twigs(axes):
            below = branch.branches.get(twig)
            if below is None:
                below = branch.branches[twig] = self._grow()
            branch = below
            if branch.block.has_room(capacity):
                return branch
        while not branch.block.has_room(capacity):
            if branch.more is None:
                branch.more = self._grow()
            branch = branch.more
        return branch

    def _enter(self, record: Record, news: list[NewCut]) -> None:
        ledger = self.ledger
        if ledger is not None:
            if news:
                ledger.follow(news)
            ledger.enter(record)
        elif len(self.blocks[0].records) >= self.sizes.ledger_records_min:
            ledger = self.ledger = Ledger(self.layout)
            for block in self.blocks:
                for each in block.records:
                    if each is not None:
                        ledger.enter(each)

    def _grow(self) -> Branch:
        branch = Branch()
        self.blocks.append(branch.block)
        return branch


_users = attrgetter("users")


def _twigs(axes: list[Axis]) -> list[Twig]:
    """The way down the tree: the two rarest axes together, then one at a time."""
    if len(axes) < 2:
        return [(-1, axis.number) for axis in axes]
    axes.sort(key=_users)
    first, second, *others = [axis.number for axis in axes]
    return [(min(first, second), max(first, second)), *((-1, number) for number in others)]


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
