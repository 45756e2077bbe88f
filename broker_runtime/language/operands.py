"""Decides which value, or which variable, an operand's text means; knows no operators and no brackets.

Quoted text is a string, or a date when it has a date's form. Bare text is a number, `true`, `false`, a
date, a name of the environment, a sum of these, or a word. Sums are folded here, so that a message that
leaves its client holds only values and variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from broker_runtime.language.dates import (
    DATE_EXAMPLES,
    DURATION_EXAMPLES,
    NUMBER_PATTERN,
    has_date_form,
    read_date,
    read_duration,
)
from broker_runtime.language.limits import (
    ARITHMETIC_MAX_TERMS,
    INTEGER_MAX_DIGITS,
    STRING_VALUE_MAX_CHARACTERS,
)
from broker_runtime.language.operators import nearest
from broker_runtime.language.predicates import Variable
from broker_runtime.language.scanning import QUOTES, PlacedError, found, quoted, shown, skip_space
from broker_runtime.language.values import Kind, Value, checked, kind_of

Number = int | float

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(rf"[+-]?{NUMBER_PATTERN}")
# A word's parts neither begin nor end with a dash: `job-status` is a word, `MY_LOC - 10` is not.
_WORD = re.compile(r"[^\W\d][\w.]*+(?:-++[\w.]++)*+(?:\s++[\w.]++(?:-++[\w.]++)*+)*+")
_VARIABLE = re.compile(r"\$([^\W\d]\w*)")
_SUM_HEAD = re.compile(r"\$?[^\W\d][\w.]*")
_SUM_TERM = re.compile(
    rf"\s*([+-])\s*(?:({NUMBER_PATTERN})(?![\w.])(?!\s*[^\W\d])|([0-9][\w.\s]*+)|([^\W\d][\w.]*))"
)
_DASHED_NAME = re.compile(r"([^\W\d][\w.]*)\s*-\s*(?:[0-9]|[^\W\d])")
_TYPED = re.compile(r"\s*@\s*(\w+)")

NOW: Final = "now"
_CONSTANTS: Final[dict[str, Value]] = {
    "true": True,
    "false": False,
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
}


class Operands:
    """Reads operands of one text, with the names that its client knows."""

    __slots__ = ("environment", "now", "text", "variables_refused")

    def __init__(
        self, text: str, environment: Mapping[str, Value], now: datetime | None, variables_refused: str
    ) -> None:
        assert now is None or now.tzinfo is not None, "now needs a time zone"
        self.text = text
        self.environment = environment
        self.now = now
        self.variables_refused = variables_refused  # why a variable may not stand here; empty if it may

    def quoted(self, offset: int, kind: Kind | None = None) -> tuple[Value, int]:
        """The literal whose opening quote stands at the offset, and the offset behind it."""
        content, end = quoted(self.text, offset)
        self._check_length(content, offset)
        typed = _TYPED.match(self.text, end)
        if typed is None:
            return self.literal(content, offset, kind), end
        wanted = typed[1].upper()
        if wanted == "STRING":
            return self._checked(content, offset), typed.end()
        if wanted == "DATE":
            return self._date(content, offset), typed.end()
        raise PlacedError(
            typed.start(),
            f"@{typed[1]} cannot follow a quoted text",
            "only @STRING and @DATE can; other values are written without quotes",
        )

    def literal(self, content: str, offset: int, kind: Kind | None = None) -> Value:
        """What the content of a quoted literal means where a kind is asked for."""
        if len(content) > STRING_VALUE_MAX_CHARACTERS:
            self._check_length(content, offset)
        if kind is not Kind.STRING and content[:1].isdigit() and has_date_form(content):
            return self._date(content, offset)
        return content if content.isascii() else self._checked(content, offset)

    def bare(self, run: str, offset: int) -> Value | Variable:
        """What unquoted text means. The run is not blank and is stripped."""
        first = run[0]
        if first.isdigit() or first in "+-.":
            return self._numeric(run, offset)
        if first == "$":
            variable = _VARIABLE.fullmatch(run)
            return self._variable(variable[1], offset) if variable else self._sum(run, offset)
        lowered = run.lower()
        if lowered in _CONSTANTS:  # before the environment: what is printed must mean the same everywhere
            return _CONSTANTS[lowered]
        if lowered == NOW:
            return self._now(offset)
        if run in self.environment:
            return self._checked(self.environment[run], offset)
        if _WORD.fullmatch(run):
            return self._word(run, offset)
        if first == "@" or run == "*":
            raise PlacedError(
                offset, f"{run} goes with isPresent", "write [attribute, isPresent, " + run + "]"
            )
        return self._sum(run, offset)

    def _word(self, run: str, offset: int) -> Value | Variable:
        dashed = _DASHED_NAME.match(run)
        if dashed is not None and self._is_name(dashed[1]) and self._subtracts(run, dashed):
            return self._sum(run, offset)
        self._check_length(run, offset)
        return " ".join(run.split())

    def _subtracts(self, run: str, dashed: re.Match[str]) -> bool:
        """Whether `now-1h` is meant, and not a word such as `now-playing`."""
        rest = run[dashed.end(1) :].lstrip("- \t\r\n")
        return rest[0].isdigit() or self._is_name(rest)

    def _is_name(self, word: str) -> bool:
        return word in self.environment or word.lower() == NOW

    def _numeric(self, run: str, offset: int) -> Value:
        # No sums here: `555-1234` is a telephone number that wants quotes.
        if _INTEGER.fullmatch(run) or _FLOAT.fullmatch(run):
            return self._number(run, offset)
        if run.lower() in _CONSTANTS:
            return _CONSTANTS[run.lower()]
        if has_date_form(run):
            return self._date(run, offset)
        try:
            read_duration(run)
        except ValueError:
            raise PlacedError(
                offset, f"{shown(run)} is neither a number nor a date", "put a string into quotes"
            ) from None
        raise PlacedError(
            offset, f"{shown(run)} is a duration, not a value", "add it to a date: now + " + run[:40]
        )

    def _number(self, digits: str, offset: int) -> Number:
        if _INTEGER.fullmatch(digits):
            if len(digits.lstrip("+-")) > INTEGER_MAX_DIGITS:
                raise PlacedError(
                    offset, f"an integer has more than INTEGER_MAX_DIGITS, which is {INTEGER_MAX_DIGITS}"
                )
            return int(digits)
        number = float(digits)
        if math.isinf(number):
            raise PlacedError(
                offset, f"{shown(digits)} is beyond the range of a float", "write inf for infinity"
            )
        return number

    def _date(self, content: str, offset: int) -> datetime:
        try:
            return read_date(content)
        except ValueError as error:
            hint = "add @STRING behind the quotes if it is not a date" if has_date_form(content) else ""
            raise PlacedError(offset, f"{shown(content)}: {error}", hint) from None

    def _check_length(self, content: str, offset: int) -> None:
        if len(content) > STRING_VALUE_MAX_CHARACTERS:
            raise PlacedError(
                offset,
                f"a string of {len(content)} characters is longer than STRING_VALUE_MAX_CHARACTERS, "
                f"which is {STRING_VALUE_MAX_CHARACTERS}",
                "large data goes into the payload",
            )

    def _checked(self, value: object, offset: int) -> Value:
        try:
            return checked(value)
        except ValueError as error:
            raise PlacedError(offset, str(error)) from None

    def _now(self, offset: int) -> datetime:
        if self.now is None:
            raise PlacedError(
                offset,
                "now is not known here",
                "give the time as now=… to the parser, write a date, or quote the word: 'now'",
            )
        return checked(self.now)  # type: ignore[return-value]

    def _variable(self, name: str, offset: int, shift: Number | timedelta = 0) -> Variable:
        if self.variables_refused:
            raise PlacedError(offset, f"${name}: {self.variables_refused}")
        return Variable(name, shift)

    def _sum(self, run: str, offset: int) -> Value | Variable:
        """Fold `head ± term ± …`."""
        head = _SUM_HEAD.match(run)
        if head is None or not _SUM_TERM.match(run, head.end()):
            raise PlacedError(
                offset, f"expected a value, found {shown(run)}", "put a string into quotes: '…'"
            )
        position = head.end()
        if head[0][0] == "$":
            total: Value | timedelta = 0
        else:
            total = self._named(head[0], offset)
        for _ in range(ARITHMETIC_MAX_TERMS):
            term = _SUM_TERM.match(run, position)
            if term is None:
                break
            amount = self._term(term, offset + term.start(1))
            total = _add(total, amount, term[1] == "-", offset + term.start(1))
            position = term.end()
        position = skip_space(run, position)
        if _SUM_TERM.match(run, position):
            raise PlacedError(
                offset + position,
                f"a sum has more than ARITHMETIC_MAX_TERMS, which is {ARITHMETIC_MAX_TERMS}",
            )
        if position < len(run):
            raise PlacedError(
                offset + position, f"expected + or - and a number or a duration, found {found(run, position)}"
            )
        if head[0][0] == "$":
            if isinstance(total, float) and not math.isfinite(total):
                raise PlacedError(offset, "a variable cannot be shifted that far")
            return self._variable(head[0][1:], offset, total or 0)  # type: ignore[arg-type]
        return self._checked(total, offset)

    def _term(self, term: re.Match[str], offset: int) -> Value | timedelta:
        if term[2]:
            return self._number(term[2], offset)
        if term[4]:
            return self._named(term[4], offset)
        try:
            return read_duration(term[3])
        except ValueError as error:
            raise PlacedError(offset, str(error), f"a duration is {DURATION_EXAMPLES}") from None

    def _named(self, word: str, offset: int) -> Value:
        if word.lower() == NOW:
            return self._now(offset)
        if word in self.environment:
            return self._checked(self.environment[word], offset)
        close = nearest(word, [*self.environment, NOW])
        if close:
            hint = f"did you mean {close}?"
        else:
            known = ", ".join(sorted(self.environment)[:8])
            hint = f"the known names are {known} and now" if known else "no names but now are known here"
        raise PlacedError(offset, f"unknown name {shown(word)}", hint + "; put a string into quotes")


def _add(total: Value | timedelta, amount: Value | timedelta, minus: bool, offset: int) -> Value | timedelta:
    """Numbers with numbers, dates and durations with durations; nothing else adds up."""
    both_numbers = _is_number(total) and _is_number(amount)
    on_time = isinstance(amount, timedelta) and (isinstance(total, datetime | timedelta) or total == 0)
    if not both_numbers and not on_time:
        hint = f"a date takes a duration such as {DURATION_EXAMPLES}" if isinstance(total, datetime) else ""
        what = f"{'-' if minus else '+'} {_kind_name(amount)}"
        raise PlacedError(offset, f"{_kind_name(total)} {what} does not add up", hint)
    if total == 0 and isinstance(amount, timedelta):
        total = timedelta()  # a variable's shift, before its first term
    try:
        return total - amount if minus else total + amount  # type: ignore[operator]
    except OverflowError:
        raise PlacedError(offset, "the result is out of range") from None


def _is_number(value: object) -> bool:
    return value.__class__ is int or value.__class__ is float


def _kind_name(value: Value | timedelta) -> str:
    return "a duration" if isinstance(value, timedelta) else f"a {kind_of(value).value}"


def value_at(
    operands: Operands, run_pattern: re.Pattern[str], offset: int, kind: Kind | None
) -> tuple[Value | Variable, int]:
    """The value or variable that begins at the offset, and the offset behind it."""
    text = operands.text
    offset = skip_space(text, offset)
    if offset < len(text) and text[offset] in QUOTES:
        return operands.quoted(offset, kind)
    run = run_pattern.match(text, offset)
    stripped = run[0].rstrip() if run else ""
    if not stripped:
        raise PlacedError(offset, f"expected a value, found {found(text, offset)}", _value_hint(kind))
    return operands.bare(stripped, offset), offset + len(stripped)


def _value_hint(kind: Kind | None) -> str:
    if kind is Kind.DATE:
        return f"a date is {DATE_EXAMPLES}"
    return "a value is 'text', 12, 2.5, true or a date in quotes"
