"""Decides which texts are times, shares and rates, and how they are written; ValueError says why not."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from broker_runtime.language.dates import read_duration

TIME_MAX_S: Final = 10_000_000.0
RATE_MAX_BYTES_PER_S: Final = 1e12
TIME_EXAMPLES: Final = "a time is in seconds, such as 0.0 or 90, or like 500ms, 1m30s, 2h"

_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}")
_DURATION = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]{1,15})?[A-Za-zµμ]{1,12})+")
_RATE = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?)(?P<unit>[kKMG]?i?(?:B|bit))(?:/s|ps)")
_PREFIX: Final = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_BINARY_PREFIX: Final = {"k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_time(text: str) -> float:
    """Seconds, to the microsecond."""
    if text.startswith("-"):
        raise ValueError("a time is not negative")
    if _NUMBER.fullmatch(text):
        found = float(text)
    elif _DURATION.fullmatch(text):
        found = read_duration(text) / timedelta(seconds=1)
    else:
        raise ValueError("this is no time")
    if found > TIME_MAX_S:
        raise ValueError(f"a time is at most {TIME_MAX_S:g} s")
    return round(found, 6)


def write_time(seconds: float) -> str:
    """As the papers write it: `0.0`, `90`, `12.5`."""
    return write_number(seconds) if seconds else "0.0"


def write_duration(seconds: float) -> str:
    """As it reads best after a word: `0.05s`, `10s`."""
    return f"{write_number(seconds)}s"


def write_number(value: float) -> str:
    written = f"{value:.6f}".rstrip("0")
    return written.removesuffix(".")


def read_share(text: str) -> float:
    """`5%` or `0.05`, as a share from 0 to 1."""
    number = text.removesuffix("%")
    if not _NUMBER.fullmatch(number):
        raise ValueError("this is no share")
    share = float(number) / (100 if text.endswith("%") else 1)
    if share > 1:
        raise ValueError("a share is at most 100%")
    return round(share, 9)


def write_share(share: float) -> str:
    return f"{share * 100:.7f}".rstrip("0").removesuffix(".") + "%"


def read_rate(text: str) -> float:
    """`100kB/s`, `1MB/s`, `64KiB/s`, `10Mbit/s`: bytes per second."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError("this is no rate")
    unit = match["unit"]
    bits = unit.endswith("bit")
    prefix = unit.removesuffix("bit").removesuffix("B")
    factor = _BINARY_PREFIX.get(prefix[:-1], 0) if prefix.endswith("i") else _PREFIX[prefix]
    if not factor:
        raise ValueError("this is no rate")
    rate = round(float(match["number"]) * factor / (8 if bits else 1), 6)
    if not 0 < rate <= RATE_MAX_BYTES_PER_S:
        raise ValueError("a rate is more than 0, and at most 1000 GB/s")
    return rate


def write_rate(rate: float) -> str:
    for prefix in ("G", "M", "k"):
        factor = _PREFIX[prefix]
        if rate >= factor and rate % factor == 0:
            return f"{write_number(rate / factor)}{prefix}B/s"
    return f"{write_number(rate)}B/s"
