"""Decides which texts are dates and durations, and how both are written; never asks what time it is.

A two-digit year means 1969 to 2068, as in POSIX. A date without an offset is in UTC, and every date
becomes UTC. A month counts as 30 days and a year as 365: a duration is a fixed length of time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from broker_runtime.language.problems import LanguageError, Problem

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# The form is narrow (months to 12, days to 31) so that codes such as '1234-56-78' stay strings.
_DATE_FORM = re.compile(
    rf"""(?:
        (?P<year>[0-9]{{4}})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12][0-9]|3[01])
      | (?P<d>0?[1-9]|[12][0-9]|3[01])-(?P<m>{"|".join(_MONTHS)})-(?P<y>[0-9]{{4}}|[0-9]{{2}})
    )
    (?:[Tt\ ](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])
        (?: :(?P<second>[0-5][0-9]|60)(?:\.(?P<fraction>[0-9]{{1,9}}))?)?
        \ ?(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?
    )?""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)

DATE_EXAMPLES: Final = "'12-Aug-2008', '12-Aug-08 14:30:05' or '2008-08-12T14:30:05Z'"

NUMBER_PATTERN: Final = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"

_MICROSECONDS: Final = {
    name: microseconds
    for names, microseconds in (
        ("us µs μs microsecond microseconds", 1),
        ("ms millisecond milliseconds", 1_000),
        ("s sec secs second seconds", 1_000_000),
        ("m min mins minute minutes", 60_000_000),
        ("h hr hrs hour hours", 3_600_000_000),
        ("d day days", 86_400_000_000),
        ("w week weeks", 7 * 86_400_000_000),
        ("month months", 30 * 86_400_000_000),
        ("y year years", 365 * 86_400_000_000),
    )
    for name in names.split()
}
_WRITTEN_UNITS: Final = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)

_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([^\W\d]+)\s*")
DURATION_EXAMPLES: Final = "500ms, 10s, 5 min, 1h, 2 days, 1 week or 2 months"


def has_date_form(text: str) -> bool:
    """Whether a quoted text would be read as a date (or refused as a wrong one)."""
    return text[:1].isdigit() and _DATE_FORM.fullmatch(text) is not None


def read_date(text: str) -> datetime:
    """The date that a text names; ValueError says why it names none."""
    form = _DATE_FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"not a date; write {DATE_EXAMPLES}")
    part = form.groupdict(default="0")
    if form["year"] is not None:
        year, month, day = int(part["year"]), int(part["month"]), int(part["day"])
    else:
        year, month, day = _year(part["y"]), _MONTHS.index(part["m"].lower()) + 1, int(part["d"])
    if part["second"] == "60":
        raise ValueError("leap seconds are not counted; write second 59")
    clock = (int(part["hour"]), int(part["minute"]), int(part["second"]))
    microsecond = int(part["fraction"].ljust(6, "0")[:6])
    zone = _zone(form["offset"])
    try:
        return datetime(year, month, day, *clock, microsecond, tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise ValueError("outside the years 1 to 9999") from None
    except ValueError as error:
        raise ValueError(f"no such day: {error}") from None


def _year(digits: str) -> int:
    if len(digits) == 4:
        return int(digits)
    return int(digits) + (1900 if int(digits) >= 69 else 2000)


def _zone(offset: str | None) -> timezone:
    if offset is None or offset in "Zz":
        return UTC
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def write_date(moment: datetime) -> str:
    """ISO 8601 in UTC, with microseconds only when there are some."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def parse_duration(text: str) -> timedelta:
    """Read `10s`, `500ms`, `1h 30min`, `2 months` …; LanguageError says what is wrong."""
    try:
        return read_duration(text)
    except ValueError as error:
        problem = Problem(1, 1, str(error), f"a duration is {DURATION_EXAMPLES}", text[:200])
        raise LanguageError([problem]) from None


def read_duration(text: str) -> timedelta:
    """As `parse_duration`, with a plain ValueError for callers that know the place."""
    text = text.strip()
    position, microseconds = 0, 0
    while True:
        amount = _AMOUNT.match(text, position)
        if amount is None:
            raise ValueError(f"not a duration: {text[:40]!r}")
        unit = _unit(amount[2])
        whole, _, fraction = amount[1].partition(".")
        microseconds += int(whole) * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = amount.end()
        if position == len(text):
            break
    try:
        return timedelta(microseconds=microseconds)
    except OverflowError:
        raise ValueError(f"too long a duration: {text[:40]!r}") from None


def _unit(name: str) -> int:
    try:
        return _MICROSECONDS[name.lower()]
    except KeyError:
        raise ValueError(f"not a unit of time: {name[:40]!r}") from None


def write_duration(duration: timedelta) -> str:
    """The length in the largest unit that divides it: `90min`, `1500ms`."""
    microseconds = abs(duration) // timedelta(microseconds=1)
    for name, unit in _WRITTEN_UNITS:
        if microseconds and microseconds % unit == 0:
            return f"{microseconds // unit}{name}"
    return "0s"
