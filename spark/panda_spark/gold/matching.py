"""Decides whether a publication's content satisfies a filter, in Spark's own expressions.

The rules are those of docs/message-language.md: strings, numbers, dates and booleans never meet; a value that
is no number (null here) is present and compares with nothing. An operator that is not among ours was
registered by a program, and what it matches cannot be told from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

# A comparison of two values of one kind comes out as one of three bits; an operator accepts some of them.
LESS, EQUAL, GREATER = 1, 2, 4
ACCEPTED: Final = {
    "eq": EQUAL,
    "neq": LESS | GREATER,
    "<": LESS,
    "<=": LESS | EQUAL,
    ">": GREATER,
    ">=": GREATER | EQUAL,
}
TEXTUAL: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "str-prefix": lambda value, operand: value.startswith(operand),
    "str-postfix": lambda value, operand: value.endswith(operand),
    "str-contains": lambda value, operand: value.contains(operand),
}
OPERATORS: Final = (*ACCEPTED, *TEXTUAL, "in", "isPresent")
UNROLLED: Final = 3  # predicates that are tested in generated code; the rest, if any, in a loop over the list
CONTENT: Final = ("class", "texts", "integers", "floats", "dates", "flags")


def unjudged(filter_: Column) -> Column:
    """Why nobody can tell what a filter matches; null when we can."""
    strange = F.filter(filter_, lambda each: ~each["op"].isin(*OPERATORS))
    empty = F.filter(filter_, lambda each: (each["op"] != "isPresent") & ~_has_operand(each))
    return (
        F.when(filter_.isNull(), "no filter")
        .when(F.size(strange) > 0, F.concat(F.lit("operator "), F.get(strange, F.lit(0))["op"]))
        .when(F.size(empty) > 0, F.concat(F.lit("no operand of "), F.get(empty, F.lit(0))["attribute"]))
    )


def _has_operand(predicate: Column) -> Column:
    """Whether there is a value to compare with: a variable has none, and JSON could not write some."""
    kinds = ("texts", "numbers", "dates", "flags")
    values = sum((F.greatest(F.size(predicate[kind]), F.lit(0)) for kind in kinds), F.lit(0))
    nulls = reduce(
        Column.__or__,
        [F.coalesce(F.exists(predicate[kind], lambda value: value.isNull()), F.lit(False)) for kind in kinds],
    )
    return (values > 0) & ~nulls


def of_class(filter_: Column) -> Column:
    return F.filter(filter_, lambda each: each["attribute"] == "class")


def of_attributes(filter_: Column) -> Column:
    return F.filter(filter_, lambda each: each["attribute"] != "class")


def class_satisfies(predicates: Column, class_: Column) -> Column:
    """Whether publications of a class can satisfy these predicates on the class."""

    def satisfied(predicate: Column) -> Column:
        present = predicate["type"].isin("*", "@STRING")
        number, flag = F.lit(None).cast("double"), F.lit(None).cast("boolean")
        return F.when(predicate["op"] == "isPresent", present).otherwise(
            _compares(predicate, class_, number, number, flag)
        )

    return F.forall(predicates, satisfied)


def satisfies(predicates: Column) -> Column:
    """Whether the content in the row's columns satisfies every predicate, none of which is on the class."""
    tested = [
        F.when(F.size(predicates) > place, _satisfied(F.get(predicates, F.lit(place)))).otherwise(F.lit(True))
        for place in range(UNROLLED)
    ]
    rest = F.slice(predicates, F.lit(UNROLLED + 1), F.greatest(F.size(predicates) - UNROLLED, F.lit(0)))
    more = F.when(F.size(predicates) > UNROLLED, F.forall(rest, _satisfied)).otherwise(F.lit(True))
    return reduce(Column.__and__, [*tested, more])


def _satisfied(predicate: Column) -> Column:
    name = predicate["attribute"]
    number = F.coalesce(F.try_element_at("integers", name).cast("double"), F.try_element_at("floats", name))
    text, date, flag = (F.try_element_at(kind, name) for kind in ("texts", "dates", "flags"))
    return F.when(predicate["op"] == "isPresent", _present(predicate["type"], name)).otherwise(
        _compares(predicate, text, number, date, flag)
    )


def _compares(predicate: Column, text: Column, number: Column, date: Column, flag: Column) -> Column:
    """False when the value is absent or of another kind than the operand."""
    op = predicate["op"]
    operands = {"texts": text, "numbers": number, "dates": date, "flags": flag}
    outcome = F.coalesce(
        *(_outcome(value, F.get(predicate[kind], F.lit(0))) for kind, value in operands.items())
    )
    among = [
        F.coalesce(F.array_contains(predicate[kind], value), F.lit(False)) for kind, value in operands.items()
    ]
    accepted = F.lit(0)
    for name, bits in ACCEPTED.items():
        accepted = F.when(op == name, F.lit(bits)).otherwise(accepted)
    result = F.when(op == "in", reduce(Column.__or__, among))
    for name, test in TEXTUAL.items():
        result = result.when(op == name, test(text, F.get(predicate["texts"], F.lit(0))))
    return F.coalesce(result.otherwise(accepted.bitwiseAND(outcome) != 0), F.lit(False))


def _outcome(value: Column, operand: Column) -> Column:
    return F.when(value < operand, LESS).when(value == operand, EQUAL).when(value > operand, GREATER)


def _present(type_: Column, name: Column) -> Column:
    def there(column: str) -> Column:
        return F.coalesce(F.map_contains_key(column, name), F.lit(False))

    return (
        F.when(type_ == "@STRING", there("texts"))
        .when(type_ == "@INTEGER", there("integers"))
        .when(type_ == "@FLOAT", there("integers") | there("floats"))
        .when(type_ == "@DATE", there("dates"))
        .when(type_ == "@BOOLEAN", there("flags"))
        .otherwise(reduce(Column.__or__, [there(each) for each in CONTENT[1:]]))
    )
