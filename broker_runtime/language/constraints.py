"""Decides what all predicates on one attribute allow together: emptiness, inclusion, intersection.

A constraint is a normal form of a conjunction: a kind, an interval, perhaps a finite set, and what is left
(excluded values, text patterns, registered operators). Inclusion and intersection are sound always, and
exact for numbers, equality, membership, order and prefixes: a prefix is the interval of its extensions.
Numbers, strings and dates count as dense, integers as not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from broker_runtime.language.predicates import CustomOperator, Op, Predicate, Test, compiled
from broker_runtime.language.values import Kind, Type, Value

ENUMERATED_INTEGERS_MAX = 256
CACHE_ENTRIES_MAX = 65_536
LAST_CHARACTER = "\U0010ffff"


class Constraint:
    """The conjunction of some bound predicates on one attribute. Built by `constraint_of`."""

    __slots__ = (
        "customs",
        "empty",
        "excluded",
        "high",
        "high_open",
        "infixes",
        "integral",
        "kind",
        "low",
        "low_open",
        "postfixes",
        "predicates",
        "prefix",
        "tests",
        "values",
    )

    def __init__(self, predicates: tuple[Predicate, ...]) -> None:
        self.predicates = predicates
        self.tests: tuple[Test, ...] = tuple(compiled(p) for p in predicates)
        self.kind: Kind | None = None
        self.integral = False
        self.empty = False
        self.low: Any = None
        self.low_open = False
        self.high: Any = None
        self.high_open = False
        self.values: frozenset[Value] | None = None
        self.excluded: frozenset[Value] = frozenset()
        self.prefix = ""
        self.postfixes: tuple[str, ...] = ()
        self.infixes: tuple[str, ...] = ()
        self.customs: tuple[Predicate, ...] = ()
        for each in predicates:
            self._narrow(each)
        if not self.empty:
            self._settle()

    def admits(self, value: Value) -> bool:
        return all(test(value) for test in self.tests)

    def includes(self, other: Constraint) -> bool:
        """Whether every value that `other` admits is admitted here."""
        if other.empty:
            return True
        if self.empty or (self.kind is not None and self.kind is not other.kind):
            return False
        if self.integral and not other.integral:
            return False
        if any(not _implied(custom, other) for custom in self.customs):
            return False
        if other.values is not None:
            return all(self.admits(value) for value in other.values)
        if self.values is not None:
            inside = other.integers()
            return inside is not None and all(self.admits(value) for value in inside)
        if any(other.admits(value) for value in self.excluded):
            return False
        if self.excluded and other.customs and self.kind is Kind.NUMBER and other.admits(math.nan):
            return False  # a registered operator may let a NaN pass, `neq` does not
        if not (self._low_at_most(other) and self._high_at_least(other)):
            return False
        return self._text_implied_by(other)

    def meets(self, other: Constraint) -> bool:
        """Whether some value may be admitted by both."""
        return not conjunction(self, other).empty

    def integers(self) -> Iterable[int] | None:
        """The admitted integers, when only integers are admitted and they are few."""
        if not self.integral or self.low is None or self.high is None:
            return None
        if self.high - self.low > ENUMERATED_INTEGERS_MAX:
            return None
        return [n for n in range(self.low, self.high + 1) if self.admits(n)]

    def _narrow(self, wanted: Predicate) -> None:
        op, operand = wanted.op, wanted.operand
        if isinstance(op, CustomOperator):
            self.customs += (wanted,)
            return
        if wanted.kind is not None:
            if self.kind is not None and self.kind is not wanted.kind:
                self.empty = True
                return
            self.kind = wanted.kind
        if op is Op.PRESENT:
            self.integral = self.integral or operand is Type.INTEGER
        elif op is Op.EQ:
            self._keep(frozenset((operand,)))  # type: ignore[arg-type]
        elif op is Op.IN:
            self._keep(frozenset(operand))  # type: ignore[arg-type]
        elif op is Op.NEQ:
            self.excluded |= {operand}  # type: ignore[arg-type]
        elif op in (Op.GT, Op.GE):
            self._raise_low(operand, op is Op.GT)
        elif op in (Op.LT, Op.LE):
            self._reduce_high(operand, op is Op.LT)
        else:
            self._narrow_text(op, operand)  # type: ignore[arg-type]

    def _narrow_text(self, op: Op, text: str) -> None:
        if op is Op.POSTFIX:
            self.postfixes += (text,)
        elif op is Op.CONTAINS:
            self.infixes += (text,)
        else:
            self._raise_low(text, False)
            after = _after_prefix(text)
            if after is not None:
                self._reduce_high(after, True)
            if len(text) > len(self.prefix):
                self.prefix = text

    def _keep(self, values: frozenset[Value]) -> None:
        self.values = values if self.values is None else self.values & values

    def _raise_low(self, bound: Any, is_open: bool) -> None:
        if self.low is None or bound > self.low or (bound == self.low and is_open):
            self.low, self.low_open = bound, is_open

    def _reduce_high(self, bound: Any, is_open: bool) -> None:
        if self.high is None or bound < self.high or (bound == self.high and is_open):
            self.high, self.high_open = bound, is_open

    def _settle(self) -> None:
        """Reach the normal form: finite sets checked, integer bounds closed, single points as sets."""
        if self.kind is Kind.BOOLEAN and self.values is None:
            self.values = frozenset((True, False))
        if self.integral:
            self._close_integer_bounds()
        if self.values is None and self.low is not None and self.high is not None:
            if self.low > self.high:
                self.empty = True
            elif self.low == self.high:
                self.values = frozenset() if self.low_open or self.high_open else frozenset((self.low,))
        if self.values is not None:
            self.values = frozenset(v for v in self.values if self.admits(v))
            self.empty = not self.values
            return
        if self.low in self.excluded and not self.integral:
            self.low_open = True
        if self.high in self.excluded and not self.integral:
            self.high_open = True
        if self._postfixes_clash() or self._customs_clash():
            self.empty = True

    def _close_integer_bounds(self) -> None:
        if self.values is not None:
            self.values = frozenset(int(v) for v in self.values if _is_whole(v))  # type: ignore[arg-type]
        if self.low is not None and _is_finite(self.low):
            low = math.ceil(self.low)
            self.low = low + 1 if self.low_open and low == self.low else low
            self.low_open = False
            while self.low in self.excluded:
                self.low += 1
        elif self.low == math.inf or self.high == -math.inf:
            self.empty = True
        if self.high is not None and _is_finite(self.high):
            high = math.floor(self.high)
            self.high = high - 1 if self.high_open and high == self.high else high
            self.high_open = False
            while self.high in self.excluded:
                self.high -= 1
        if self.low == -math.inf:
            self.low, self.low_open = None, False
        if self.high == math.inf:
            self.high, self.high_open = None, False

    def _postfixes_clash(self) -> bool:
        longest = max(self.postfixes, key=len, default="")
        return any(not longest.endswith(each) for each in self.postfixes)

    def _customs_clash(self) -> bool:
        for i, a in enumerate(self.customs):
            for b in self.customs[:i]:
                if a.op == b.op and a.op.overlaps and not a.op.overlaps(a.operand, b.operand):  # type: ignore[union-attr,arg-type]
                    return True
        return False

    def _low_at_most(self, other: Constraint) -> bool:
        if self.low is None:
            return True
        if other.low is None:
            return False
        return bool(self.low < other.low) or (self.low == other.low and (other.low_open or not self.low_open))

    def _high_at_least(self, other: Constraint) -> bool:
        if self.high is None:
            return True
        if other.high is None:
            return False
        return bool(self.high > other.high) or (
            self.high == other.high and (other.high_open or not self.high_open)
        )

    def _text_implied_by(self, other: Constraint) -> bool:
        parts = (other.prefix, *other.postfixes, *other.infixes)
        return all(any(have.endswith(want) for have in other.postfixes) for want in self.postfixes) and all(
            any(want in have for have in parts) for want in self.infixes
        )


def _after_prefix(prefix: str) -> str | None:
    """The least string above every extension of the prefix, or None when there is none."""
    stem = prefix.rstrip(LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None


def _is_finite(number: int | float) -> bool:
    return number.__class__ is int or math.isfinite(number)  # isfinite overflows on huge integers


def _is_whole(number: Any) -> bool:
    return _is_finite(number) and number == int(number)


def _implied(wanted: Predicate, by: Constraint) -> bool:
    op = wanted.op
    for have in by.customs:
        if have == wanted:
            return True
        if have.op == op and op.covers and op.covers(wanted.operand, have.operand):  # type: ignore[union-attr,arg-type]
            return True
    return by.values is not None and all(compiled(wanted)(value) for value in by.values)


@lru_cache(maxsize=CACHE_ENTRIES_MAX)
def constraint_of(predicates: tuple[Predicate, ...]) -> Constraint:
    """The normal form of these predicates, which are all on one attribute and bound."""
    return Constraint(predicates)


def conjunction(a: Constraint, b: Constraint) -> Constraint:
    return Constraint(a.predicates + b.predicates)
