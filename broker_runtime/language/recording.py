"""Decides how a log writes what a publication says and what a filter asks: by type, in what JSON can carry.

It never reads them back. docs/log-format.md says what the fields mean.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from broker_runtime.language.messages import CLASS, Conjunction, Content
from broker_runtime.language.predicates import Op, Predicate, Variable
from broker_runtime.language.printing import print_predicates, print_value
from broker_runtime.language.values import Type, Value

_INTEGER_MIN: Final = -(1 << 63)  # beyond, readers have no integers
_INTEGER_MAX: Final = (1 << 63) - 1
_OPERAND_LISTS: Final = {
    "texts": "texts",
    "integers": "numbers",
    "floats": "numbers",
    "dates": "dates",
    "flags": "flags",
}

Plain = str | int | float | bool | None


def recorded_content(content: Content) -> dict[str, object]:
    """The class, and all other attributes by type; a type that does not occur is left out."""
    class_ = content[CLASS]
    fields: dict[str, Any] = {CLASS: class_ if isinstance(class_, str) else print_value(class_)}
    for attribute, value in content.items():
        if attribute != CLASS or class_.__class__ is not str:
            type_, plain = _plain(value)
            if type_ in fields:
                fields[type_][attribute] = plain
            else:
                fields[type_] = {attribute: plain}
    return fields


def recorded_filter(wanted: Conjunction) -> dict[str, object]:
    """The text of a subscription or advertisement, and its predicates in parts."""
    return {
        "text": print_predicates(wanted.predicates),
        "filter": [_recorded_predicate(each) for each in wanted.predicates],
    }


def _recorded_predicate(each: Predicate) -> dict[str, object]:
    op, operand = each.op, each.operand
    fields: dict[str, object] = {
        "attribute": each.attribute,
        "op": op.value if isinstance(op, Op) else op.name,
    }
    if isinstance(operand, Type):
        fields["type"] = operand.value
    elif not isinstance(operand, Variable):  # what a variable stands for, only a publication says
        plain = [_plain(value) for value in (operand if isinstance(operand, tuple) else (operand,))]
        fields[_OPERAND_LISTS[plain[0][0]]] = [value for _, value in plain]
    return fields


def _plain(value: Value) -> tuple[str, Plain]:
    """The type under which a value is written, and the value as JSON has it."""
    if isinstance(value, str):
        return "texts", value
    if isinstance(value, float):
        return "floats", value if isfinite(value) else None
    if isinstance(value, bool):
        return "flags", value
    if isinstance(value, int):
        if _INTEGER_MIN <= value <= _INTEGER_MAX:
            return "integers", value
        try:
            return "floats", float(value)
        except OverflowError:
            return "floats", None
    return "dates", value.timestamp()
