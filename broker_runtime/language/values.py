"""Decides what a value is and which values may be compared; never looks at an operator.

Four kinds of value never meet: numbers, strings, dates and booleans. Integers and floats are one kind
(`[price,>,50]` is satisfied by 50.5); a string is never equal to a number. A NaN is present but compares
with nothing.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from broker_runtime.language.limits import ATTRIBUTE_NAME_MAX_CHARACTERS, STRING_VALUE_MAX_CHARACTERS

Value = str | int | float | bool | datetime


class Kind(Enum):
    """The four domains within which values compare."""

    NUMBER = "number"
    STRING = "string"
    DATE = "date"
    BOOLEAN = "boolean"


class Type(Enum):
    """What isPresent can ask for. `@FLOAT` takes integers too; `@INTEGER` takes integers only."""

    ANY = "*"
    STRING = "@STRING"
    INTEGER = "@INTEGER"
    FLOAT = "@FLOAT"
    DATE = "@DATE"
    BOOLEAN = "@BOOLEAN"


KIND_BY_CLASS: Final[dict[type, Kind]] = {
    str: Kind.STRING,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    datetime: Kind.DATE,
}

KIND_BY_TYPE: Final[dict[Type, Kind | None]] = {
    Type.ANY: None,
    Type.STRING: Kind.STRING,
    Type.INTEGER: Kind.NUMBER,
    Type.FLOAT: Kind.NUMBER,
    Type.DATE: Kind.DATE,
    Type.BOOLEAN: Kind.BOOLEAN,
}


def kind_of(value: Value) -> Kind:
    """The kind of a value that `checked` has let through."""
    return KIND_BY_CLASS[value.__class__]


def is_nan(value: Value) -> bool:
    return value.__class__ is float and math.isnan(value)


def _check_text(text: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("a string holds a lone surrogate, which no UTF-8 text can carry") from error


def check_attribute(name: object) -> None:
    """ValueError unless an attribute can have this name."""
    if not isinstance(name, str) or not name or len(name) > ATTRIBUTE_NAME_MAX_CHARACTERS:
        raise ValueError(f"an attribute's name has 1 to {ATTRIBUTE_NAME_MAX_CHARACTERS} characters")
    _check_text(name)


def checked(value: object) -> Value:
    """The value as the language knows it: exact class, dates in UTC, text that UTF-8 can carry."""
    cls = value.__class__
    if cls is str:
        text: str = value  # type: ignore[assignment]
        if len(text) > STRING_VALUE_MAX_CHARACTERS:
            raise ValueError(f"a string has at most {STRING_VALUE_MAX_CHARACTERS} characters")
        _check_text(text)
        return text
    if cls is int or cls is float or cls is bool:
        return value  # type: ignore[return-value]
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        try:
            return value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("a date is outside the years 1 to 9999 in UTC") from error
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return checked(plain(value))
    raise ValueError(f"a value is a string, an integer, a float, a date or a boolean, not {cls.__name__}")
