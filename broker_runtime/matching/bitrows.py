"""Decides matching and the relations among stored subscriptions with rows of bits; the broker's engine.

Partitions keep subscriptions apart by class and by equalities (`partition`), blocks and sheets answer for
thousands of them at once (`block`, `sheet`), and only who is left in doubt is verified. Relations are looked
up in the same rows (`comparison`, `questions`). Keys come out in the order of partition, block, sheet and
slot; of relations, those in doubt after the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

from broker_runtime.language.messages import CLASS, Advertisement, Content, Subscription
from broker_runtime.language.predicates import Op, Predicate, Variable
from broker_runtime.language.values import Type
from broker_runtime.matching.block import Block, Record, slots_of
from broker_runtime.matching.engine import K
from broker_runtime.matching.harvest import keys_of
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.partition import DEFAULT_SIZES, Partition, Root, Sizes, hash_key
from broker_runtime.matching.probe import Probe, sift_alone
from broker_runtime.matching.questions import Advertised, Covered, Covering, Overlapping, Table
from broker_runtime.matching.rows import clear, keys_in, slots_in
from broker_runtime.matching.rules import RuleBook
from broker_runtime.matching.shelf import Shelf


class BitRowEngine(Generic[K]):
    def __init__(self, sizes: Sizes = DEFAULT_SIZES) -> None:
        self._records: dict[K, Record] = {}
        self._rules = RuleBook()
        self._root = Root(sizes)
        self._classes = self._root.hashed[CLASS]
        self._unsatisfiable: dict[K, None] = {}  # they match nothing, so everything covers them

    def add(self, key: K, subscription: Subscription) -> None:
        if key in self._records:
            raise ValueError(f"key {key!r} is stored already")
        rules = self._rules.take(subscription)
        plain = not subscription.joins
        empty = False
        for rule in rules:
            if not rule.plain:
                plain = False
            if rule.constraint.empty:
                empty = True
        record = self._records[key] = Record(key, subscription, tuple(rules), plain)
        if empty:
            self._unsatisfiable[key] = None
        else:
            self._root.place(record)

    def remove(self, key: K) -> None:
        record = self._records.pop(key)
        if key in self._unsatisfiable:
            del self._unsatisfiable[key]
        else:
            record.partition.drop(record)
        self._rules.release(record.message)

    def get(self, key: K) -> Subscription | None:
        record = self._records.get(key)
        return None if record is None else record.message

    def match(self, content: Content) -> list[K]:
        root = self._root
        if root.block is not None or len(root.hashed) > 1:
            return _match_all(root, content)
        # The usual case: every subscription names its class.
        partition = self._classes.get(hash_key(content.get(CLASS)))  # type: ignore[arg-type]
        if partition is None:
            return []
        if partition.few is not None:
            return _match_few(partition.few, content)
        return _match_all(partition, content)

    def covering(self, subscription: Subscription) -> list[K]:
        rules = self._rules.asked(subscription)
        if any(rule.constraint.empty for rule in rules.values()):
            return list(self._records)
        return Covering(subscription, rules).answer(self._root)

    def covered(self, subscription: Subscription) -> list[K]:
        rules = self._rules.asked(subscription)
        found = list(self._unsatisfiable)
        if any(rule.constraint.empty for rule in rules.values()):
            return found
        return found + Covered(subscription, rules).answer(self._root)

    def overlapping(self, subscription: Subscription) -> list[K]:
        rules = self._rules.asked(subscription)
        if any(rule.constraint.empty for rule in rules.values()):
            return []
        return Overlapping(subscription, rules).answer(self._root)

    def overlapping_advertisement(self, advertisement: Advertisement) -> list[K]:
        if self._none_of_its_class(advertisement):
            return []
        return Advertised(advertisement, self._rules.asked(advertisement)).answer(self._root)

    def _none_of_its_class(self, advertisement: Advertisement) -> bool:
        """Whether its class tells already that nobody asks for it: the usual case in a large overlay."""
        root = self._root
        return (
            root.block is None
            and len(root.hashed) == 1
            and any(
                each.attribute == CLASS and each.op is Op.EQ and _unasked(each, self._classes)
                for each in advertisement.predicates
            )
        )

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records


def _unasked(equality: Predicate, classes: Table) -> bool:
    operand = equality.operand
    return not isinstance(operand, Variable | Type | tuple) and hash_key(operand) not in classes


def _match_all(partition: Partition, content: Content) -> list[Any]:
    if partition.few is not None:
        return _match_few(partition.few, content)
    found: list[Any] = []
    for attribute, table in partition.hashed.items():
        value = content.get(attribute)
        child = None if value is None else table.get(hash_key(value))
        if child is not None:
            found += _match_all(child, content)
    block, layout = partition.block, partition.layout
    if block is None:
        return found
    if block.version != layout.version:
        block.catch_up(layout)
    probe = None if partition.shelf is None else Probe(layout, content)
    good, doubt = sift_alone(block, layout, content) if probe is None else probe.sift(block)
    if doubt:
        good ^= _refuted(block, doubt, content)
    if good:
        found += keys_of(good, block.keys)
    if partition.shelf is not None and probe is not None:
        found += _match_shelf(partition.shelf, layout, probe, content)
    return found


def _match_shelf(shelf: Shelf, layout: Layout, probe: Probe, content: Content) -> list[Any]:
    found: list[Any] = []
    for sheet in shelf.sheets:
        if sheet.version != layout.version:
            sheet.catch_up(layout)
        good, doubt = probe.sift_sheet(sheet)
        if doubt is not None:
            clear(good, _mistaken(sheet.records, slots_in(doubt), content))
        found += keys_in(good, sheet.keys)
    return found + _match_few(shelf.waiting, content)


def _refuted(block: Block, doubt: int, content: Content) -> int:
    """Who of those in doubt does not match."""
    return sum([1 << slot for slot in _mistaken(block.records, slots_of(doubt), content)])


def _mistaken(records: list[Record | None], slots: list[int], content: Content) -> list[int]:
    """Those slots whose records do not match."""
    found = []
    for slot in slots:
        record = records[slot]
        assert record is not None
        if not _match_few((record,), content):
            found.append(slot)
    return found


def _match_few(records: Iterable[Record], content: Content) -> list[Any]:
    get = content.get
    found = []
    for record in records:
        for rule in record.rules:
            value = get(rule.attribute)
            if value is None or not rule.test(value):
                break
        else:
            if not record.message.joins or record.message.matches(content):
                found.append(record.key)
    return found
