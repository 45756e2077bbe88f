"""Decides which stored subscriptions stand in a relation to a given message; never changes the store.

A question walks the partitions that can hold an answer, sifts their blocks, and verifies who is in doubt:
plain rules here, all others with the language's own relations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from broker_runtime.language.messages import CLASS, Advertisement, Conjunction, Subscription
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Block, Record, slots_of
from broker_runtime.matching.harvest import Harvest
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.partition import HashKey, Partition, hash_key
from broker_runtime.matching.probes import (
    CoveredProbe,
    Probe,
    covered_probe,
    covering_probe,
    is_loose,
    overlap_probe,
)
from broker_runtime.matching.rules import Rule

Rules = dict[str, Rule]
Table = dict[HashKey, Partition]


class Question(ABC):
    """Asked once: `Covering(subscription).answer(root)`."""

    def __init__(self, asked: Conjunction, rules: Rules) -> None:
        self._rules = rules
        # What is asked in plain words alone is compared here; the rest is left to the language.
        self._plain = all(rule.plain for rule in rules.values()) and all(p.bound for p in asked.predicates)
        self._harvest = Harvest()

    def answer(self, root: Partition) -> list[Any]:
        self._walk(root, self._rules)
        return self._harvest.finish()

    def _walk(self, partition: Partition, rules: Rules) -> None:
        if partition.few is not None:
            keys = self._harvest.keys
            keys += [record.key for record in partition.few if self._holds(record, rules)]
            return
        for attribute, table in partition.hashed.items():
            rest = {name: rule for name, rule in rules.items() if name != attribute}
            for child in self._children(rules.get(attribute), table):
                self._walk(child, rest)
        probe = self._probe(partition.layout, rules) if partition.trunk else None
        if probe is None:
            return
        for block in self._blocks(partition, probe):
            if not block.live:
                continue
            if block.version != partition.layout.version:
                block.catch_up(partition.layout)
            good, doubt = probe.sift(block)
            if good:
                self._reap(block, good, doubt if self._plain else good, rules)

    def _reap(self, block: Block, good: int, doubt: int, rules: Rules) -> None:
        if doubt:
            records = block.records
            for slot in slots_of(doubt):
                record = records[slot]
                if not self._holds(record, rules):  # type: ignore[arg-type]
                    good ^= 1 << slot
        self._harvest.reap(good, block.keys)

    def _blocks(self, partition: Partition, probe: Probe | CoveredProbe) -> Iterable[Block]:
        return partition.blocks

    def _holds(self, record: Record, rules: Rules) -> bool:
        if self._plain and record.plain:
            return self._compared(record, rules)
        return self._related(record.subscription)

    @abstractmethod
    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        """The partitions that can hold an answer, of those hashed by the rule's attribute."""

    @abstractmethod
    def _probe(self, layout: Layout, rules: Rules) -> Probe | CoveredProbe | None: ...

    @abstractmethod
    def _compared(self, record: Record, rules: Rules) -> bool:
        """Whether the relation holds, when both sides are plain."""

    @abstractmethod
    def _related(self, stored: Subscription) -> bool:
        """Whether the relation holds, in the language's words."""


class Covering(Question):
    """Who covers this subscription?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        if rule is None:
            return ()
        if is_loose(rule):
            return table.values()
        values = rule.constraint.values
        if values is None or len(values) != 1:
            return ()
        child = table.get(hash_key(rule.low))
        return () if child is None else (child,)

    def _probe(self, layout: Layout, rules: Rules) -> Probe:
        return covering_probe(layout, rules)

    def _blocks(self, partition: Partition, probe: Probe | CoveredProbe) -> Iterable[Block]:
        assert isinstance(probe, Probe)
        return partition.blocks_within(probe.present)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is None or not rule.includes(theirs):
                return False
        return True

    def _related(self, stored: Subscription) -> bool:
        return stored.covers(self._asked)


class Covered(Question):
    """Whom does this subscription cover?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return _admitted(rule, table)

    def _probe(self, layout: Layout, rules: Rules) -> CoveredProbe | None:
        return covered_probe(layout, rules)

    def _compared(self, record: Record, rules: Rules) -> bool:
        theirs = {rule.attribute: rule for rule in record.rules}
        return all(name in theirs and rule.includes(theirs[name]) for name, rule in rules.items())

    def _related(self, stored: Subscription) -> bool:
        return self._asked.covers(stored)


class Overlapping(Question):
    """Who overlaps this subscription?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return _admitted(rule, table)

    def _probe(self, layout: Layout, rules: Rules) -> Probe:
        return overlap_probe(layout, rules, subset=False)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is not None and not rule.meets(theirs):
                return False
        return True

    def _related(self, stored: Subscription) -> bool:
        return stored.overlaps(self._asked)


class Advertised(Question):
    """Who can match what this advertisement promises?"""

    def __init__(self, asked: Advertisement, rules: Rules) -> None:
        super().__init__(asked, {name: rule for name, rule in rules.items() if not rule.constraint.empty})
        self._asked = asked

    def answer(self, root: Partition) -> list[Any]:
        return super().answer(root) if CLASS in self._rules else []

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return () if rule is None else _admitted(rule, table)

    def _probe(self, layout: Layout, rules: Rules) -> Probe:
        return overlap_probe(layout, rules, subset=True)

    def _blocks(self, partition: Partition, probe: Probe | CoveredProbe) -> Iterable[Block]:
        assert isinstance(probe, Probe)
        return partition.blocks_within(probe.present)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is None or not rule.meets(theirs):
                return False
        return True

    def _related(self, stored: Subscription) -> bool:
        return self._asked.overlaps(stored)


def _admitted(rule: Rule | None, table: Table) -> Iterable[Partition]:
    """The partitions whose value the rule may admit."""
    if rule is None or rule.constraint.customs:
        return table.values()
    constraint = rule.constraint
    if constraint.values is not None:
        keys = [hash_key(value) for value in sorted(constraint.values)]  # type: ignore[type-var]
        return [table[key] for key in keys if key in table]
    return [child for key, child in table.items() if _admits(rule, key)]


def _admits(rule: Rule, key: HashKey) -> bool:
    value: Value = key[1] if key.__class__ is tuple else key  # type: ignore[index,assignment]
    if rule.constraint.integral and value.__class__ is float and value.is_integer():  # type: ignore[union-attr]
        value = int(value)  # type: ignore[arg-type]  # a stored 5.0 is satisfied by the integer 5
    return rule.test(value)

