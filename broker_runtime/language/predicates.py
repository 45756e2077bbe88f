"""Decides whether one value satisfies one predicate; never compares predicates with each other.

A predicate is satisfied only by a value of its operand's kind: `[x,neq,5]` is not satisfied by `'abc'`,
nor by a NaN. Operators have one canonical form; the spellings of the papers (`=`, `str-lt`, `before`, …)
are read and written in `parsing` and `printing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from broker_runtime.language.limits import IN_MAX_MEMBERS
from broker_runtime.language.values import (
    KIND_BY_TYPE,
    Kind,
    Type,
    Value,
    check_attribute,
    checked,
    is_nan,
    kind_of,
)

Test = Callable[[Value], bool]


class Op(Enum):
    """The built-in operators. BETWEEN is not among them: it is read as GE and LE."""

    EQ = "eq"
    NEQ = "neq"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    PRESENT = "isPresent"
    PREFIX = "str-prefix"
    POSTFIX = "str-postfix"
    CONTAINS = "str-contains"
    IN = "in"


ORDERED = frozenset((Op.LT, Op.LE, Op.GT, Op.GE))
TEXTUAL = frozenset((Op.PREFIX, Op.POSTFIX, Op.CONTAINS))


@dataclass(frozen=True, slots=True)
class Variable:
    """`$X`, perhaps shifted: `$L + 5`, `$T - 10s`. Bound by an `eq` without a shift."""

    name: str
    shift: int | float | timedelta = 0


@dataclass(frozen=True, slots=True)
class CustomOperator:
    """An operator that a program registers: how it tests, and what it knows of covering and overlap.

    Without `covers`, only an equal predicate is covered; without `overlaps`, everything overlaps. Both
    answers are sound.
    """

    name: str
    satisfied: Callable[[Value, Value], bool]
    covers: Callable[[Value, Value], bool] | None = None
    overlaps: Callable[[Value, Value], bool] | None = None


_custom_operators: dict[str, CustomOperator] = {}


def register_operator(operator: CustomOperator) -> None:
    """Make `[attribute, name, value]` readable and testable in this process."""
    from broker_runtime.language.operators import BETWEEN, SPELLINGS  # which in turn knows this module

    key = operator.name.lower()
    if key in _custom_operators or key in SPELLINGS or key == BETWEEN:
        raise ValueError(f"operator {operator.name!r} exists already")
    _custom_operators[key] = operator


def unregister_operator(name: str) -> None:
    del _custom_operators[name.lower()]


def custom_operator(name: str) -> CustomOperator | None:
    return _custom_operators.get(name.lower())


def custom_operator_names() -> list[str]:
    return [operator.name for operator in _custom_operators.values()]


Operand = Value | Type | Variable | tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """One `[attribute, operator, operand]`, valid by construction.

    Two predicates are equal when they accept the same values in the same words: 1 and 1.0 are the same
    operand, 1 and true are not.
    """

    attribute: str
    op: Op | CustomOperator
    operand: Operand
    kind: Kind | None  # of the operand; None for `isPresent *` and for variables

    def _identity(self) -> tuple[object, ...]:
        return (self.attribute, self.op, self.operand, self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self._identity() == other._identity()

    def __hash__(self) -> int:
        op = self.op
        name = op._value_ if op.__class__ is Op else op.name  # hashing an Enum runs Python code
        return hash((self.attribute, name, self.operand))

    @property
    def bound(self) -> bool:
        """Whether the operand is known now, that is, holds no variable."""
        return self.operand.__class__ is not Variable


def predicate(attribute: str, op: Op | CustomOperator, operand: object) -> Predicate:
    """Build a predicate; ValueError says what does not fit together."""
    check_attribute(attribute)
    if isinstance(operand, Variable):
        if op in TEXTUAL or op is Op.IN or op is Op.PRESENT:
            raise ValueError(f"{_name(op)} takes a value, not the variable ${operand.name}")
        return Predicate(attribute, op, operand, None)
    if op is Op.PRESENT:
        if not isinstance(operand, Type):
            raise ValueError("isPresent takes @STRING, @INTEGER, @FLOAT, @DATE, @BOOLEAN or *")
        return Predicate(attribute, op, operand, KIND_BY_TYPE[operand])
    if isinstance(operand, Type):
        raise ValueError(f"{operand.value} goes with isPresent, not with {_name(op)}")
    if op is Op.IN:
        return _membership(attribute, operand)
    value = checked(operand)
    kind = kind_of(value)
    if is_nan(value):
        raise ValueError("NaN compares with nothing")
    if kind is Kind.BOOLEAN and op in ORDERED:
        raise ValueError(f"{_name(op)} needs an order, which booleans do not have")
    if kind is not Kind.STRING and op in TEXTUAL:
        raise ValueError(f"{_name(op)} takes a string")
    return Predicate(attribute, op, value, kind)


def _membership(attribute: str, operand: object) -> Predicate:
    if not isinstance(operand, tuple | list | set | frozenset) or not operand:
        raise ValueError("IN takes a list of one value or more")
    if len(operand) > IN_MAX_MEMBERS:
        raise ValueError(f"IN takes at most {IN_MAX_MEMBERS} values")
    values = [checked(item) for item in operand]
    kinds = {kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ValueError("the values of IN must be of one kind")
    if any(is_nan(value) for value in values):
        raise ValueError("NaN compares with nothing")
    ordered = tuple(sorted(set(values)))
    return Predicate(attribute, Op.IN, ordered, kinds.pop())


def _name(op: Op | CustomOperator) -> str:
    return op.value if isinstance(op, Op) else op.name


def satisfies(value: Value, wanted: Predicate) -> bool:
    """Whether the value satisfies the predicate (variables: see `subscriptions`)."""
    return compiled(wanted)(value)


_NUMBERS = frozenset((int, float))


def compiled(wanted: Predicate) -> Test:
    """A fast test for one bound predicate."""
    op, operand = wanted.op, wanted.operand
    if isinstance(op, CustomOperator):
        return lambda v: kind_of(v) is wanted.kind and op.satisfied(v, operand)  # type: ignore[arg-type]
    if op is Op.PRESENT:
        return _presence_test(operand)  # type: ignore[arg-type]
    if op is Op.IN:
        return _membership_test(operand, wanted.kind)  # type: ignore[arg-type]
    if wanted.kind is Kind.NUMBER:
        return _number_test(op, operand)  # type: ignore[arg-type]
    return _plain_test(op, operand, operand.__class__)


def _presence_test(wanted: Type) -> Test:
    if wanted is Type.ANY:
        return lambda v: True
    if wanted is Type.FLOAT:
        return lambda v: v.__class__ in _NUMBERS
    classes = {Type.STRING: str, Type.INTEGER: int, Type.DATE: datetime, Type.BOOLEAN: bool}
    cls = classes[wanted]
    return lambda v: v.__class__ is cls


def _membership_test(operands: tuple[Value, ...], kind: Kind | None) -> Test:
    members = frozenset(operands)
    if kind is Kind.NUMBER:
        return lambda v: v.__class__ in _NUMBERS and v in members
    cls = operands[0].__class__
    return lambda v: v.__class__ is cls and v in members


def _number_test(op: Op, n: int | float) -> Test:
    numbers = _NUMBERS
    if op is Op.EQ:
        return lambda v: v == n and v.__class__ in numbers
    if op is Op.NEQ:
        return lambda v: v.__class__ in numbers and v != n and v == v  # noqa: PLR0124 — NaN
    if op is Op.LT:
        return lambda v: v.__class__ in numbers and v < n  # type: ignore[operator]
    if op is Op.LE:
        return lambda v: v.__class__ in numbers and v <= n  # type: ignore[operator]
    if op is Op.GT:
        return lambda v: v.__class__ in numbers and v > n  # type: ignore[operator]
    return lambda v: v.__class__ in numbers and v >= n  # type: ignore[operator]


def _plain_test(op: Op, operand: object, cls: type) -> Test:
    o: str = operand  # type: ignore[assignment]  # or a datetime or bool: same operators
    tests: dict[Op, Callable[[str], bool]] = {
        Op.EQ: lambda v: v == o and v.__class__ is cls,
        Op.NEQ: lambda v: v.__class__ is cls and v != o,
        Op.LT: lambda v: v.__class__ is cls and v < o,
        Op.LE: lambda v: v.__class__ is cls and v <= o,
        Op.GT: lambda v: v.__class__ is cls and v > o,
        Op.GE: lambda v: v.__class__ is cls and v >= o,
        Op.PREFIX: lambda v: v.__class__ is cls and v.startswith(o),
        Op.POSTFIX: lambda v: v.__class__ is cls and v.endswith(o),
        Op.CONTAINS: lambda v: v.__class__ is cls and o in v,
    }
    return tests[op]  # type: ignore[return-value]
