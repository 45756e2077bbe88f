"""Decides what a subscription asks of one attribute, in the form an index can use; never stores one.

A rule is *plain* when its kind and its interval say everything. The index answers for plain rules by itself;
of the others (lists, exclusions, infixes, registered operators, integers only) it knows the hull, and what
survives is put to the language.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from broker_runtime.language.constraints import Constraint, constraint_of
from broker_runtime.language.messages import Conjunction
from broker_runtime.language.predicates import Predicate, Test, Variable
from broker_runtime.language.values import Kind, Value

CLASSES_BY_KIND: Final[dict[Kind, tuple[type, ...]]] = {
    Kind.NUMBER: (int, float),
    Kind.STRING: (str,),
    Kind.DATE: (datetime,),
    Kind.BOOLEAN: (bool,),
}

RuleKey = str | Predicate | tuple[Predicate, ...]


class Rule:
    """One attribute's constraint with its hull, shared by all subscriptions that ask the same."""

    __slots__ = (
        "attribute",
        "cls",
        "constraint",
        "high",
        "high_open",
        "kind",
        "low",
        "low_open",
        "only",
        "place",
        "plain",
        "test",
        "users",
    )

    def __init__(self, attribute: str, constraint: Constraint) -> None:
        self.attribute = attribute
        self.constraint = constraint
        self.users = 0
        self.place: Any = None  # on the scale that was asked last, which remembers it here
        self.kind = constraint.kind
        # A class stands for its kind where speed counts: hashing an Enum runs Python code.
        self.cls = object if self.kind is None else CLASSES_BY_KIND[self.kind][0]
        self.test = _joint_test(constraint.tests)
        self.plain = is_plain(constraint)
        values = constraint.values
        self.low: Any
        self.high: Any
        if values:
            self.low, self.high = min(values), max(values)
            self.low_open = self.high_open = False
        else:
            self.low, self.low_open = constraint.low, constraint.low_open
            self.high, self.high_open = constraint.high, constraint.high_open
        # The one value that a plain rule admits, if it admits but one.
        self.only: Value | None = self.low if self.plain and values is not None else None

    @property
    def loose(self) -> bool:
        """Whether the hull tells less of what is covered here than `Constraint.includes` may find out.

        That lists the integers which a registered operator lets through, and there may be none.
        """
        return self.constraint.integral and bool(self.constraint.customs)

    def includes(self, other: Rule) -> bool:
        """`Constraint.includes`, for two plain rules."""
        if self.kind is not None and self.kind is not other.kind:
            return False
        if self.low is not None:
            low = other.low
            if low is None or low < self.low or (low == self.low and self.low_open and not other.low_open):
                return False
        if self.high is not None:
            high = other.high
            if high is None or high > self.high:
                return False
            return not (high == self.high and self.high_open and not other.high_open)
        return True

    def meets(self, other: Rule) -> bool:
        """`Constraint.meets`, for two plain rules."""
        if self.kind is not other.kind:
            return self.kind is None or other.kind is None
        return not (_beyond(self, other) or _beyond(other, self))


def _beyond(upper: Rule, lower: Rule) -> bool:
    """Whether the first begins after the second has ended."""
    low, high = upper.low, lower.high
    if low is None or high is None or low < high:
        return False
    return bool(low > high) or upper.low_open or lower.high_open


def is_plain(constraint: Constraint) -> bool:
    return not (
        constraint.integral
        or constraint.excluded
        or constraint.customs
        or constraint.postfixes
        or constraint.infixes
        or (constraint.values is not None and len(constraint.values) != 1)
    )


def _anything(value: Value) -> bool:
    return True


def _joint_test(tests: tuple[Test, ...]) -> Test:
    if not tests:
        return _anything
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def grouped(predicates: Iterable[Predicate]) -> dict[str, RuleKey]:
    """Attribute → what names its rule: the predicate, or several, or the bare name for variables alone."""
    groups: dict[str, RuleKey] = {}
    for each in predicates:
        attribute = each.attribute
        have = groups.get(attribute)
        if each.operand.__class__ is Variable:
            if have is None:
                groups[attribute] = attribute
        elif have is None or have.__class__ is str:
            groups[attribute] = each
        elif isinstance(have, Predicate):
            groups[attribute] = (have, each)
        else:
            groups[attribute] = (*have, each)
    return groups


def _rule(attribute: str, key: RuleKey) -> Rule:
    if isinstance(key, Predicate):
        return Rule(attribute, constraint_of((key,)))
    return Rule(attribute, constraint_of(key if isinstance(key, tuple) else ()))


class RuleBook:
    """The rules in use, each once, as long as somebody uses it."""

    def __init__(self) -> None:
        self._rules: dict[RuleKey, Rule] = {}

    def take(self, asked: Conjunction) -> list[Rule]:
        rules = []
        known = self._rules
        for attribute, key in grouped(asked.predicates).items():
            rule = known.get(key)
            if rule is None:
                rule = known[key] = _rule(attribute, key)
            rule.users += 1
            rules.append(rule)
        return rules

    def asked(self, message: Conjunction) -> dict[str, Rule]:
        """The rules of a message that is asked about, by attribute; those not in use are not kept."""
        known = self._rules
        return {
            attribute: known.get(key) or _rule(attribute, key)
            for attribute, key in grouped(message.predicates).items()
        }

    def release(self, asked: Conjunction) -> None:
        for key in grouped(asked.predicates).values():
            rule = self._rules[key]
            rule.users -= 1
            if not rule.users:
                del self._rules[key]

    def __len__(self) -> int:
        return len(self._rules)
