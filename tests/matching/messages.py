"""Decides what random subscriptions, advertisements and publications look like; never what is right."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.language.predicates import ORDERED, CustomOperator, Op, Predicate, Variable, predicate
from broker_runtime.language.values import Type, Value

ATTRIBUTES = ("a", "b", "c", "d", "ünï")

NUMBERS: tuple[Value, ...] = (
    -math.inf, -2, -1, 0, 0.0, 1, 1.0, 1.5, 2, 3, 3.5, 4, 5, 7.25, 9, 10,
    2**53, 2**53 + 1, float(2**53), -(2**60), 10**400, math.inf,
)  # fmt: skip
STRINGS: tuple[Value, ...] = ("", "a", "ab", "abc", "abd", "b", "bc", "é", "é\U0010ffff", "\U0010ffff", "1")
DATES: tuple[Value, ...] = tuple(datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3))
BOOLEANS: tuple[Value, ...] = (True, False)

DIVISIBLE = CustomOperator("divisible", lambda v, by: isinstance(v, int) and v % int(by) == 0)  # type: ignore[call-overload]
SOUNDS = CustomOperator(
    "longer",
    lambda v, than: isinstance(v, str) and len(v) > len(str(than)),
    covers=lambda a, b: len(str(a)) <= len(str(b)),
    overlaps=lambda a, b: True,
)
NEVER = CustomOperator("never", lambda v, _: False, overlaps=lambda a, b: a == b)

numbers = st.sampled_from(NUMBERS)
strings = st.sampled_from(STRINGS)
operands = st.one_of(
    numbers, numbers, strings, st.sampled_from(DATES), st.sampled_from(BOOLEANS), st.integers(0, 12)
)
values = st.one_of(operands, st.just(math.nan), st.floats(-1, 12))


@st.composite
def predicates(draw: st.DrawFn, attribute: str, variables: bool) -> Predicate:
    op: Any = draw(st.sampled_from((*Op, *ORDERED_MORE, DIVISIBLE, SOUNDS, NEVER)))
    if variables and draw(st.integers(0, 15)) == 0 and (op in ORDERED or op is Op.EQ):
        return predicate(attribute, op, Variable(draw(st.sampled_from("XY")), draw(st.sampled_from((0, 2)))))
    if op is Op.PRESENT:
        return predicate(attribute, op, draw(st.sampled_from(Type)))
    if op is Op.IN:
        domain = draw(st.sampled_from((NUMBERS, STRINGS, DATES, BOOLEANS)))
        return predicate(attribute, op, draw(st.lists(st.sampled_from(domain), min_size=1, max_size=4)))
    if op in (Op.PREFIX, Op.POSTFIX, Op.CONTAINS):
        return predicate(attribute, op, draw(strings))
    if op is DIVISIBLE:
        return predicate(attribute, op, draw(st.integers(1, 4)))
    operand = draw(operands)
    if op in ORDERED and operand.__class__ is bool:
        op = Op.EQ
    return predicate(attribute, op, operand)


ORDERED_MORE = (*ORDERED, *ORDERED, Op.EQ, Op.EQ, Op.PRESENT)


@st.composite
def class_predicates(draw: st.DrawFn) -> Predicate:
    if draw(st.integers(0, 7)):
        return predicate("class", Op.EQ, draw(st.sampled_from(("A", "A", "A", "B", 1, True))))
    return draw(
        st.sampled_from(
            (
                predicate("class", Op.PRESENT, Type.ANY),
                predicate("class", Op.PREFIX, "A"),
                predicate("class", Op.NEQ, "B"),
                predicate("class", Op.IN, ("A", "B")),
            )
        )
    )


@st.composite
def conjunctions(draw: st.DrawFn, variables: bool) -> list[Predicate]:
    attributes = draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=4))
    return [draw(class_predicates()), *(draw(predicates(name, variables)) for name in attributes)]


subscriptions: st.SearchStrategy[Subscription] = conjunctions(variables=True).map(Subscription)
advertisements: st.SearchStrategy[Advertisement] = conjunctions(variables=False).map(Advertisement)


@st.composite
def contents(draw: st.DrawFn) -> Content:
    content: dict[str, Value] = {"class": draw(st.sampled_from(("A", "A", "A", "B", "C", 1, 1.0, True)))}
    for attribute in draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=5, unique=True)):
        content[attribute] = draw(values)
    return content
