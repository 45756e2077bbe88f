"""Decides which stored subscriptions stand in a relation to a given message; never changes the store.

A question walks the partitions that can hold an answer, sifts their ledgers, and verifies who is in doubt:
plain rules here, all others with the language's own relations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Predicate
from broker_runtime.language.values import Value
from broker_runtime.matching.block import Record
from broker_runtime.matching.ledger import UNUSED, Comparison, Mask, Page
from broker_runtime.matching.partition import HashKey, Partition, hash_key
from broker_runtime.matching.rules import Rule

Rules = dict[str, Rule]
Table = dict[HashKey, Partition]


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
        if partition.ledger is None:
            for block in partition.blocks:
                self._found += [r.key for r in block.records if r is not None and self._holds(r, rules)]
            return
        asked = [Comparison(partition.layout, rule) for rule in rules.values()]
        for page in partition.ledger.pages:
            self._reap(page, asked, rules)

    def _reap(self, page: Page, asked: list[Comparison], rules: Rules) -> None:
        good = self._sift(page, asked)
        if good is None:
            return
        count = len(page.records)
        if self._plain:
            doubt = np.frombuffer(page.check, np.bool_, count)
            for each in asked:
                more = each.doubtful(page)
                if more is not None:
                    doubt = doubt | more
            self._found += map(page.keys.__getitem__, np.flatnonzero(good & ~doubt).tolist())
            good &= doubt
        for line in np.flatnonzero(good).tolist():
            record = page.records[line]
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
    def _sift(self, page: Page, asked: list[Comparison]) -> Mask | None:
        """Who may be an answer; None for nobody."""

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

    def _sift(self, page: Page, asked: list[Comparison]) -> Mask | None:
        return all_of_theirs(page, [each.including(page) for each in asked if each.known(page)])

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

    def _sift(self, page: Page, asked: list[Comparison]) -> Mask | None:
        if not all(each.known(page) for each in asked):
            return None
        good = in_use(page)
        for each in asked:
            good &= each.included(page)
        return good

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

    def _sift(self, page: Page, asked: list[Comparison]) -> Mask | None:
        good = in_use(page)
        for each in asked:
            if each.known(page):
                good &= each.meeting(page) | each.absent(page)
        return good

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

    def _sift(self, page: Page, asked: list[Comparison]) -> Mask | None:
        return all_of_theirs(page, [each.meeting(page) for each in asked if each.known(page)])

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            theirs = rules.get(rule.attribute)
            if theirs is None or not rule.meets(theirs):
                return False
        return True

    def _related(self, stored: Any) -> bool:
        return self._asked.overlaps(stored)


def in_use(page: Page) -> Mask:
    used: Mask = np.frombuffer(page.attributes, np.uint16, len(page.records)) != UNUSED
    return used


def all_of_theirs(page: Page, masks: list[Mask]) -> Mask:
    """Who has no attribute but those that one of the masks grants."""
    granted = np.zeros(len(page.records), np.uint16)
    for mask in masks:
        granted += mask
    complete: Mask = granted == np.frombuffer(page.attributes, np.uint16, len(page.records))
    return complete


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
