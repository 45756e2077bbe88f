"""Whatever the text, the answer is a message or a LanguageError that points into it, in linear time."""

import contextlib
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_runtime.language import (
    LanguageError,
    parse_advertisement,
    parse_duration,
    parse_publication,
    parse_subscription,
    print_publication,
    print_subscription,
)
from broker_runtime.language.limits import PROBLEMS_MAX_PER_TEXT
from tests.language import strategies

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)
NAMES = {"MY_LOC": 25, "X": "text", "T": NOW, "B": True, "HUGE": 1e308, "INF": float("inf")}
PARSERS = [parse_publication, parse_subscription, parse_advertisement]

PIECES = [
    "[", "]", ",", "class", "eq", "'", '"', "‘", "’", "“", "”", "\\", "x", "<", ">=", "isPresent",
    "@STRING", "@", "*",
    "in", "{", "}", "(", ")", ";", "&&", "||", "between", " AND ", "$X", " + ", "-", "10s", "now",
    "MY_LOC", "HUGE",
    "12", "1e999", ".", "true", "'2008-08-12'", "'31-Feb-2008'", "\n", " ", "str-lt", "before", "\ud800",
    "\0", "é",
    "[class,eq,'c']", "[class,'c']", "9" * 1001, "\\ud800", "INF", "999999999 days",
]  # fmt: skip
soups = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def problems(parse, text):
    try:
        parse(text, environment=NAMES, now=NOW)
    except LanguageError as refused:
        return refused.problems
    return []


def read_or_refused(parse, text):
    found = problems(parse, text)
    assert len(found) <= PROBLEMS_MAX_PER_TEXT
    lines = text.split("\n")
    for problem in found:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert problem.pointing().startswith(f"line {problem.line}, column {problem.column}: ")


@settings(max_examples=300)
@given(st.sampled_from(PARSERS), soups | st.text(st.characters(), max_size=40))
def test_any_text_is_read_or_refused(parse, text):
    read_or_refused(parse, text)


@settings(max_examples=300)
@given(st.sampled_from(PARSERS), soups)
def test_any_operand_is_read_or_refused(parse, soup):
    read_or_refused(parse, f"[class,eq,{soup}]" if parse is not parse_publication else f"[class,{soup}]")


@settings(max_examples=300)
@given(st.sampled_from(PARSERS), st.data())
def test_a_damaged_message_is_read_or_refused(parse, data):
    valid = strategies.contents.map(print_publication) | strategies.subscriptions.map(print_subscription)
    text = data.draw(valid)
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 3))
    piece = data.draw(st.sampled_from(["", *PIECES]))
    read_or_refused(parse, text[:start] + piece + text[start + length :])


@given(st.text(max_size=20) | soups)
def test_any_duration_is_read_or_refused(text):
    with contextlib.suppress(LanguageError):
        parse_duration(text)


REPEATED = [
    "[", "]", "(", ")", "'", '"', "‘", "’", "\\", "'\\", ",", " ", "\n", "a", "a ", "a-", "-", "1", "1.",
    "1 s", "$", "$a+",
    "[a,", "[a,=,", "[a,=,'", "[class,eq,1],", "[class,in,{1,", "' ", "‘' ", "a and ", "now-",
    "now - 1h ", "&&", "é", ";",
    "[a,between,", "[a,in,[", "@", "@ ", "{", "<",
]  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "start", ["", "[class,eq,'c'],[a,=,", "[class,eq,'c'],[a,between,", "[class,'c'],[a,'", "[class,now-"]
)
@pytest.mark.parametrize("piece", REPEATED)
def test_a_hundred_kilobytes_of_anything_are_refused_at_once(parse, start, piece):
    text = start + piece * (100_000 // len(piece))
    began_s = time.process_time()
    read_or_refused(parse, text)
    assert time.process_time() - began_s < 1.0
