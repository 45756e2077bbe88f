"""Decides which texts are numbers, sizes, times and ids on a command line; ValueError says why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from broker_runtime.addresses import Address, parse_address, parse_target
from broker_runtime.language.dates import read_duration
from broker_runtime.language.identifiers import check_id
from broker_runtime.language.problems import LanguageError

_SIZE = re.compile(r"([0-9]{1,15})([kmgKMG]?)[bB]?")
_UNIT_BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "": 1 << 20}
_ON: Final = frozenset(("on", "true", "yes", "1"))
_OFF: Final = frozenset(("off", "false", "no", "0"))


def identifier(text: str) -> str:
    try:
        return check_id(text)
    except LanguageError as error:
        problem = error.problems[0]
        raise ValueError(f"{problem.message} ({problem.hint})") from None


def address(text: str) -> Address:
    return parse_address(text)


def target(text: str) -> Address:
    """The address of a broker to connect to."""
    return parse_target(text)


def targets(text: str) -> tuple[str, ...]:
    """Several, separated by commas."""
    return tuple(parse_target(each).uri for each in text.split(",") if each.strip())


def port(text: str) -> int:
    number = count(text)
    if number > 65_535:
        raise ValueError("a port is a number from 0 to 65535 (0 takes a free one)")
    return number


def count(text: str, least: int = 0) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < least:
        raise ValueError(f"it is a whole number, {least} or more")
    return int(text)


def positive(text: str) -> int:
    return count(text, 1)


def seconds(text: str) -> float:
    """`5`, `0.5`, `500ms`, `2min`."""
    try:
        found = float(text)
    except ValueError:
        try:
            found = read_duration(text) / timedelta(seconds=1)
        except ValueError:
            raise ValueError("it is a time such as 5, 0.5, 500ms or 2min") from None
    if not 0 <= found < 1e9:
        raise ValueError("it is a time of 0 or more seconds")
    return found


def megabytes(text: str) -> int:
    """`128`, `128m`, `1g`, `65536k`: as bytes; a plain number is in MB, as in the papers."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("it is a size such as 128, 128m or 1g (a plain number is in MB)")
    return int(match[1]) * _UNIT_BYTES[match[2].lower()]


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"it is one of {', '.join(words)}")
        return text.lower()

    return read


def heartbeat(text: str) -> float | bool:
    """`on`, `off`, or the seconds between two."""
    word = text.lower()
    if word in _ON - {"1"}:
        return True
    if word in _OFF:
        return False
    found = seconds(text)
    if found < 0.01:
        raise ValueError("it is on, off, or 0.01 seconds and more")
    return found


def split_outside(text: str, separator: str, limit: int = 1000) -> Sequence[str]:
    """Split at a separator that stands outside of quotes and brackets."""
    parts, depth, quote, start, position = [], 0, "", 0, 0
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "[({":
            depth += 1
        elif character in "])}":
            depth = max(0, depth - 1)
        elif character == separator and not depth:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    parts.append(text[start:])
    if len(parts) > limit:
        raise ValueError(f"at most {limit} are taken")
    return [part.strip() for part in parts if part.strip()]
