"""Decides how messages are written, so that reading them back gives the same message.

Strings are always in plain single quotes, and everything that a terminal would not show is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from broker_runtime.language.dates import has_date_form, write_date, write_duration
from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.language.predicates import Op, Operand, Predicate, Variable
from broker_runtime.language.values import Type, Value

_BARE_ATTRIBUTE = re.compile(r"[^\W\d][\w.\-]*")
_SHORT_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def print_value(value: Value) -> str:
    cls = value.__class__
    if cls is str:
        text: str = value  # type: ignore[assignment]
        return _quoted(text) + "@STRING" if has_date_form(text) else _quoted(text)
    if cls is bool:
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"'{write_date(value)}'"
    return repr(value)


def print_attribute(attribute: str) -> str:
    return attribute if _BARE_ATTRIBUTE.fullmatch(attribute) else _quoted(attribute)


def print_predicate(predicate: Predicate) -> str:
    op = predicate.op.value if isinstance(predicate.op, Op) else predicate.op.name
    return f"[{print_attribute(predicate.attribute)},{op},{_operand(predicate.operand)}]"


def print_predicates(predicates: Iterable[Predicate]) -> str:
    return ",".join([print_predicate(each) for each in predicates])


def print_publication(content: Mapping[str, Value]) -> str:
    return ",".join([f"[{print_attribute(name)},{print_value(value)}]" for name, value in content.items()])


def print_subscription(subscription: Subscription) -> str:
    return print_predicates(subscription.predicates)


def print_advertisement(advertisement: Advertisement) -> str:
    return print_predicates(advertisement.predicates)


def _operand(operand: Operand) -> str:
    if isinstance(operand, Type):
        return operand.value
    if isinstance(operand, Variable):
        return _variable(operand)
    if isinstance(operand, tuple):
        return "{" + ",".join([print_value(each) for each in operand]) + "}"
    return print_value(operand)


def _variable(variable: Variable) -> str:
    shift = variable.shift
    if not shift:
        return f"${variable.name}"
    if isinstance(shift, timedelta):
        return f"${variable.name} {'-' if shift < timedelta() else '+'} {write_duration(shift)}"
    return f"${variable.name} {'-' if shift < 0 else '+'} {abs(shift)!r}"


def _quoted(text: str) -> str:
    if text.isprintable() and "\\" not in text and "'" not in text:
        return f"'{text}'"
    return "'" + "".join([_escaped(character) for character in text]) + "'"


def _escaped(character: str) -> str:
    short = _SHORT_ESCAPES.get(character)
    if short is not None:
        return short
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
