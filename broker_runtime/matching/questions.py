"""Decides which stored subscriptions stand in a relation to a given message; never changes the store.

A question walks the partitions that can hold an answer, sifts their blocks and sheets, and verifies who is in
doubt: plain rules here, all others with the language's own relations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Predicate
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Block, Record, slots_of
from broker_runtime.matching.comparison import Comparison, Found, Holder
from broker_runtime.matching.harvest import keys_of
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.partition import HashKey, Partition, hash_key
from broker_runtime.matching.rows import keys_in, slots_in
from broker_runtime.matching.rules import Rule
from broker_runtime.matching.sheet import Sheet

Rules = dict[str, Rule]
Table = dict[HashKey, Partition]
Relation = Callable[[Comparison, Holder], Found]


class Question(ABC):
    """Asked once: `Covering(subscription).answer(root)`."""

    def __init__(self, asked: Iterable[Predicate], rules: Rules) -> None:
        self._rules = rules
        # What is asked in plain words alone is compared here; the rest is left to the language.
        self._plain = all(rule.plain for rule in rules.values()) and all(each.bound for each in asked)
        self._found: list[Any] = []

    def answer(self, root: Partition) -> list[Any]:
        self._walk(root, self._rules)
        return self._found

    def _walk(self, partition: Partition, rules: Rules) -> None:
        if partition.few is not None:
            self._found += [record.key for record in partition.few if self._holds(record, rules)]
            return
        for attribute, table in partition.hashed.items():
            rest = {name: rule for name, rule in rules.items() if name != attribute}
            for child in self._children(rules.get(attribute), table):
                self._walk(child, rest)
        if partition.block is None:
            return
        layout = partition.layout
        asked = [Comparison(layout, rule) for rule in rules.values()]
        self._reap(partition.block, layout, asked, rules)
        if partition.shelf is not None:
            for sheet in partition.shelf.sheets:
                self._reap(sheet, layout, asked, rules)
            self._found += [each.key for each in partition.shelf.waiting if self._holds(each, rules)]

    def _reap(self, holder: Block | Sheet, layout: Layout, asked: list[Comparison], rules: Rules) -> None:
        if holder.version != layout.version:
            holder.catch_up(layout)
        found = self._sift(holder, layout, asked)
        if found is None:
            return
        good, doubt = found
        if self._plain:
            doubt = doubt | holder.unplain()
            if doubt.__class__ is int and not doubt:
                self._found += _keys(holder, good)
                return
            self._found += _keys(holder, good & ~doubt)
            good = good & doubt
        for slot in _slots(holder, good):
            record = holder.records[slot]
            if record is not None and self._holds(record, rules):
                self._found.append(record.key)

    def _holds(self, record: Record, rules: Rules) -> bool:
        if self._plain and record.plain:
            return self._compared(record, rules)
        return self._related(record.message)

    @abstractmethod
    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        """The partitions that can hold an answer, of those hashed by the rule's attribute."""

    @abstractmethod
    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        """Who may be an answer, and who of them is in doubt; None for nobody."""

    @abstractmethod
    def _compared(self, record: Record, rules: Rules) -> bool:
        """Whether the relation holds, when both sides are plain."""

    @abstractmethod
    def _related(self, stored: Any) -> bool:
        """Whether the relation holds, in the language's words."""


class Covering(Question):
    """Who covers this subscription?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return () if rule is None else included_in(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_theirs(holder, layout, asked, Comparison.including)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is None or not rule.includes(theirs):
                return False
        return True

    def _related(self, stored: Any) -> bool:
        return bool(stored.covers(self._asked))


class Covered(Question):
    """Whom does this subscription cover?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return admitted(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_ours(holder, asked, Comparison.included)

    def _compared(self, record: Record, rules: Rules) -> bool:
        theirs = {rule.attribute: rule for rule in record.rules}
        return all(name in theirs and rule.includes(theirs[name]) for name, rule in rules.items())

    def _related(self, stored: Any) -> bool:
        return self._asked.covers(stored)


class Overlapping(Question):
    """Who overlaps this subscription?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return admitted(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_both(holder, asked, Comparison.meeting)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is not None and not rule.meets(theirs):
                return False
        return True

    def _related(self, stored: Any) -> bool:
        return bool(stored.overlaps(self._asked))


class Advertised(Question):
    """Who can match what this advertisement promises?"""

    def __init__(self, asked: Advertisement, rules: Rules) -> None:
        promised = {name: rule for name, rule in rules.items() if not rule.constraint.empty}
        super().__init__(asked.predicates, promised)
        self._asked = asked

    def answer(self, root: Partition) -> list[Any]:
        return super().answer(root) if CLASS in self._rules else []

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return () if rule is None else admitted(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_theirs(holder, layout, asked, Comparison.meeting)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is None or not rule.meets(theirs):
                return False
        return True

    def _related(self, stored: Any) -> bool:
        return self._asked.overlaps(stored)


def all_of_ours(holder: Holder, asked: list[Comparison], relation: Relation) -> Found | None:
    """Who has every attribute that is asked about, and on each the relation holds."""
    if any(each.axis is None for each in asked):
        return None
    good, doubt = holder.living(), 0
    for each in asked:
        mask, unsure = relation(each, holder)
        good, doubt = good & mask, doubt | unsure
    return Found(good, doubt)


def all_of_both(holder: Holder, asked: list[Comparison], relation: Relation) -> Found:
    """With whom the relation holds on every attribute that both have."""
    good, doubt = holder.living(), 0
    for each in asked:
        if each.axis is not None:
            mask, unsure = relation(each, holder)
            good, doubt = good & (mask | ~holder.needing([each.axis])), doubt | unsure
    return Found(good, doubt)


def all_of_theirs(holder: Holder, layout: Layout, asked: list[Comparison], relation: Relation) -> Found:
    """Who has no attribute but those that are asked about, and on each of its own the relation holds."""
    good, doubt = all_of_both(holder, asked, relation)
    ours = {each.axis for each in asked}
    others = [axis.number for axis in layout.axes if axis.number not in ours]
    return Found(good & ~holder.needing(others), doubt)


def _keys(holder: Block | Sheet, row: Any) -> list[Any]:
    return keys_of(row, holder.keys) if isinstance(holder, Block) else keys_in(row, holder.keys)


def _slots(holder: Block | Sheet, row: Any) -> list[int]:
    return slots_of(row) if isinstance(holder, Block) else slots_in(row)


def included_in(rule: Rule, table: Table) -> Iterable[Partition]:
    """The partitions whose one value is all that the rule admits."""
    if rule.loose:
        return table.values()
    values = rule.constraint.values
    if values is None or len(values) != 1:
        return ()
    child = table.get(hash_key(rule.low))
    return () if child is None else (child,)


def admitted(rule: Rule | None, table: Table) -> Iterable[Partition]:
    """The partitions whose value the rule may admit."""
    if rule is None or rule.constraint.customs:
        return table.values()
    constraint = rule.constraint
    if constraint.values is not None:
        keys = [hash_key(value) for value in sorted(constraint.values)]
        return [table[key] for key in keys if key in table]
    return [child for key, child in table.items() if _admits(rule, key)]


def _admits(rule: Rule, key: HashKey) -> bool:
    value: Value = key[1] if key.__class__ is tuple else key  # type: ignore[assignment]
    if rule.constraint.integral and value.__class__ is float and value.is_integer():
        value = int(value)  # a stored 5.0 is satisfied by the integer 5
    return rule.test(value)
