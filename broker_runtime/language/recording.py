"""Decides how a log writes what a publication says and what a filter asks: by type, in what JSON can carry.

It never reads them back. docs/log-format.md says what the fields mean.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

from broker_runtime.language.messages import CLASS, Conjunction, Content
from broker_runtime.language.predicates import Op, Predicate, Variable
from broker_runtime.language.printing import print_predicates, print_value
from broker_runtime.language.values import Type, Value

_INTEGERS_END: Final = 1 << 63  # what readers hold in a signed integer of 64 bits ends here
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
    by_type: dict[str, dict[str, Plain]] = {}
    for attribute, value in content.items():
        if attribute != CLASS or value.__class__ is not str:
            type_, plain = _plain(value)
            by_type.setdefault(type_, {})[attribute] = plain
    return {CLASS: class_ if isinstance(class_, str) else print_value(class_), **by_type}


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
    if isinstance(value, bool):
        return "flags", value
    if isinstance(value, datetime):
        return "dates", value.timestamp()
    if isinstance(value, int):
        if -_INTEGERS_END <= value < _INTEGERS_END:
            return "integers", value
        try:
            return "floats", float(value)
        except OverflowError:
            return "floats", None
    return "floats", value if math.isfinite(value) else None
