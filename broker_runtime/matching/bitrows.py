"""Decides matching and the relations among stored subscriptions with rows of bits; the broker's engine.

Partitions keep subscriptions apart by class and by equalities (`partition`), blocks answer for thousands of
them at once (`block`), and only who is left in doubt is verified. After REIN and TAMA, with blocks in place of
one index, so that additions and removals stay local. Keys come out in the order of partition, block, slot.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Generic

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.matching.block import Record, slots_of
from broker_runtime.matching.engine import K
from broker_runtime.matching.harvest import Harvest
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.partition import DEFAULT_SIZES, Partition, Root, Sizes, hash_key
from broker_runtime.matching.probes import Probe
from broker_runtime.matching.questions import Advertised, Covered, Covering, Overlapping
from broker_runtime.matching.rules import RuleBook, rules_of


class BitRowEngine(Generic[K]):
    def __init__(self, sizes: Sizes = DEFAULT_SIZES) -> None:
        self._records: dict[K, Record] = {}
        self._rules = RuleBook()
        self._root = Root(sizes)
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
        self._rules.release(record.subscription)

    def get(self, key: K) -> Subscription | None:
        record = self._records.get(key)
        return None if record is None else record.subscription

    def match(self, content: Content) -> list[K]:
        harvest = Harvest()
        _match(self._root, content, harvest)
        return harvest.finish()

    def covering(self, subscription: Subscription) -> list[K]:
        rules = rules_of(subscription)
        if any(rule.constraint.empty for rule in rules.values()):
            return list(self._records)
        return Covering(subscription, rules).answer(self._root)

    def covered(self, subscription: Subscription) -> list[K]:
        rules = rules_of(subscription)
        found = list(self._unsatisfiable)
        if any(rule.constraint.empty for rule in rules.values()):
            return found
        return found + Covered(subscription, rules).answer(self._root)

    def overlapping(self, subscription: Subscription) -> list[K]:
        rules = rules_of(subscription)
        if any(rule.constraint.empty for rule in rules.values()):
            return []
        return Overlapping(subscription, rules).answer(self._root)

    def overlapping_advertisement(self, advertisement: Advertisement) -> list[K]:
        return Advertised(advertisement, rules_of(advertisement)).answer(self._root)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records


def _match(partition: Partition, content: Content, harvest: Harvest) -> None:
    if partition.few is not None:
        for record in partition.few:
            if _matches(record, content):
                harvest.keys.append(record.key)
        return
    for attribute, table in partition.hashed.items():
        value = content.get(attribute)
        if value is not None:
            child = table.get(hash_key(value))
            if child is not None:
                _match(child, content, harvest)
    if partition.trunk is not None:
        probe = _match_probe(partition.layout, content)
        version = partition.layout.version
        for block in partition.blocks_within(probe.present):
            if block.version != version:
                block.catch_up(partition.layout)
            good, doubt = probe.sift(block)
            if doubt:
                for slot in slots_of(doubt):
                    if not _matches(block.records[slot], content):
                        good ^= 1 << slot
            if good:
                harvest.reap(good, block.keys)


def _matches(record: Any, content: Content) -> bool:
    if record.subscription.joins:
        return bool(record.subscription.matches(content))
    get = content.get
    for rule in record.rules:
        value = get(rule.attribute)
        if value is None or not rule.test(value):
            return False
    return True


def _match_probe(layout: Layout, content: Content) -> Probe:
    probe = Probe()
    get = content.get
    absent, present, cells = [], probe.present, probe.cells
    for axis in layout.axes:
        value = get(axis.attribute)
        if value is None:
            absent.append(axis.number)
            continue
        present.append(axis.number)
        scale = axis.scales.get(value.__class__)
        if scale is None:
            probe.members += axis.all_scales()
            continue
        probe.members += axis.others[value.__class__]
        cell = scale.points.get(value)
        if cell is not None:
            cells.append((scale.number, cell))
        elif value != value:  # noqa: PLR0124 — a NaN, which no bound admits
            probe.lows.append(scale.number)
            probe.highs.append(scale.number)
        else:
            gap = bisect_left(scale.cuts, value)
            cells.append((scale.number, 2 * gap))
            probe.doubts.append((scale.number, gap))
    probe.miss(absent)
    return probe
