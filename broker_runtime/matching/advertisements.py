"""Decides which stored advertisements concern a subscription, an advertisement or a publication.

It never routes by them. An advertisement promises no attribute but its own, so its questions read attribute
sets the other way round than those about subscriptions; partitions are the same. An attribute that an
advertisement constrains to nothing counts as not promised. Keys come out in the order of partition, block,
sheet and slot, those in doubt last; among few advertisements, `inducing` keeps the order of addition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

from broker_runtime.language.constraints import constraint_of
from broker_runtime.language.messages import CLASS, Advertisement, Content, Subscription
from broker_runtime.language.predicates import Op, Predicate
from broker_runtime.language.values import KIND_BY_CLASS, is_nan
from broker_runtime.matching.block import Record
from broker_runtime.matching.comparison import Comparison, Found, Holder
from broker_runtime.matching.engine import K
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.partition import DEFAULT_SIZES, Partition, Root, Sizes
from broker_runtime.matching.questions import (
    Question,
    Rules,
    Table,
    admitted,
    all_of_ours,
    all_of_theirs,
    included_in,
)
from broker_runtime.matching.rules import Rule, RuleBook

INDUCING_SCAN_MAX = 64
# Tables of their own for few values: advertisements are long, and most of them differ in who publishes.
ADVERTISEMENT_SIZES = DEFAULT_SIZES._replace(hashed_values_min=16)


class AdvertisementIndex(Generic[K]):
    def __init__(self, sizes: Sizes = ADVERTISEMENT_SIZES) -> None:
        self._records: dict[K, Record] = {}
        self._rules = RuleBook()
        self._root = Root(sizes)
        self._silent: dict[K, None] = {}  # no class will do, so they promise nothing

    def add(self, key: K, advertisement: Advertisement) -> None:
        if key in self._records:
            raise ValueError(f"key {key!r} is stored already")
        rules = tuple(rule for rule in self._rules.take(advertisement) if not rule.constraint.empty)
        plain = all(rule.plain for rule in rules)
        record = self._records[key] = Record(key, advertisement, rules, plain)
        if any(rule.attribute == CLASS for rule in rules):
            self._root.place(record)
        else:
            self._silent[key] = None

    def remove(self, key: K) -> None:
        record = self._records.pop(key)
        if key in self._silent:
            del self._silent[key]
        else:
            record.partition.drop(record)
        self._rules.release(record.message)

    def get(self, key: K) -> Advertisement | None:
        record = self._records.get(key)
        return None if record is None else record.message

    def overlapping(self, subscription: Subscription) -> list[K]:
        rules = self._rules.asked(subscription)
        if any(rule.constraint.empty for rule in rules.values()):
            return []
        return Promising(subscription, rules).answer(self._root)

    def covering(self, advertisement: Advertisement) -> list[K]:
        rules = self._promised(advertisement)
        if CLASS not in rules:
            return list(self._records)
        return PromisingAll(advertisement, rules).answer(self._root)

    def covered(self, advertisement: Advertisement) -> list[K]:
        rules = self._promised(advertisement)
        found = list(self._silent)
        if CLASS not in rules:
            return found
        return found + PromisedBy(advertisement, rules).answer(self._root)

    def inducing(self, content: Content) -> list[K]:
        if CLASS not in content:
            return []
        if len(self._records) <= INDUCING_SCAN_MAX:
            return [key for key, record in self._records.items() if record.message.induces(content)]
        return Inducing(content).answer(self._root)

    def _promised(self, advertisement: Advertisement) -> Rules:
        rules = self._rules.asked(advertisement)
        return {name: rule for name, rule in rules.items() if not rule.constraint.empty}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records


class Promising(Question):
    """Which advertisements overlap this subscription?"""

    def __init__(self, asked: Subscription, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return admitted(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_ours(holder, asked, Comparison.meeting)

    def _compared(self, record: Record, rules: Rules) -> bool:
        theirs = {rule.attribute: rule for rule in record.rules}
        return all(name in theirs and rule.meets(theirs[name]) for name, rule in rules.items())

    def _related(self, stored: Any) -> bool:
        return bool(stored.overlaps(self._asked))


class PromisingAll(Question):
    """Which advertisements cover this one?"""

    def __init__(self, asked: Advertisement, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return table.values() if rule is None else included_in(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_ours(holder, asked, Comparison.including)

    def _compared(self, record: Record, rules: Rules) -> bool:
        theirs = {rule.attribute: rule for rule in record.rules}
        return all(name in theirs and theirs[name].includes(rule) for name, rule in rules.items())

    def _related(self, stored: Any) -> bool:
        return bool(stored.covers(self._asked))


class PromisedBy(Question):
    """Which advertisements does this one cover?"""

    def __init__(self, asked: Advertisement, rules: Rules) -> None:
        super().__init__(asked.predicates, rules)
        self._asked = asked

    def _children(self, rule: Rule | None, table: Table) -> Iterable[Partition]:
        return () if rule is None else admitted(rule, table)

    def _sift(self, holder: Holder, layout: Layout, asked: list[Comparison]) -> Found | None:
        return all_of_theirs(holder, layout, asked, Comparison.included)

    def _compared(self, record: Record, rules: Rules) -> bool:
        for rule in record.rules:
            ours = rules.get(rule.attribute)
            if ours is None or not ours.includes(rule):
                return False
        return True

    def _related(self, stored: Any) -> bool:
        return self._asked.covers(stored)


class Inducing(PromisingAll):
    """Under which advertisements may this be published?

    A publication is asked about as the equalities that it satisfies. A NaN satisfies none, so what carries
    one is verified.
    """

    def __init__(self, content: Content) -> None:
        equalities = [
            Predicate(name, Op.EQ, value, KIND_BY_CLASS[value.__class__])
            for name, value in content.items()
            if not is_nan(value)
        ]
        rules = {each.attribute: Rule(each.attribute, constraint_of((each,))) for each in equalities}
        Question.__init__(self, equalities, rules)
        self._plain = self._plain and len(rules) == len(content)
        self._content = content

    def _related(self, stored: Any) -> bool:
        return bool(stored.induces(self._content))
