"""Every example of the reference of the language is run."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker_runtime.language import (
    LanguageError,
    limits,
    parse_advertisement,
    parse_duration,
    parse_publication,
    parse_subscription,
)

REFERENCE = (Path(__file__).parents[2] / "docs" / "message-language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", REFERENCE, re.MULTILINE | re.DOTALL)
PROSE = re.sub(r"^```.*?^```$", "", REFERENCE, flags=re.MULTILINE | re.DOTALL)
PARSERS = {
    "publication": parse_publication,
    "advertisement": parse_advertisement,
    "subscription": parse_subscription,
}
KNOWN = {"environment": {"MY_LOC": 25}, "now": datetime(2008, 8, 12, tzinfo=UTC)}

# `[x, 1]` and `[x, >, 1]`, but not the two templates that the reference opens with.
SNIPPETS = [code for code in re.findall(r"`(\[[^`]*\])`", PROSE) if not code.startswith("[attribute")]


def blocks(kind):
    return [text for name, text in BLOCKS if name == kind]


def test_the_reference_has_no_block_that_nobody_runs():
    assert {name for name, _ in BLOCKS} == {*PARSERS, "relations", "refused", "python"}
    assert len(SNIPPETS) > 30


@pytest.mark.parametrize(("kind", "text"), [block for block in BLOCKS if block[0] in PARSERS])
def test_a_message_is_read(kind, text):
    PARSERS[kind](text, **KNOWN)


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_bracket_is_read(code):
    is_pair = re.fullmatch(r"\[\s*('[^']*'|[\w.-]+)\s*,\s*('.*'(@\w+)?|\".*\"|‘.*’|[^,]*)\]", code)
    if is_pair:
        parse_publication(f"[class,c],{code}", **KNOWN)
    else:
        parse_subscription(f"[class,eq,c],{code}", **KNOWN)


def relations():
    return [
        re.fullmatch(r"(.*\]) (covers|does not cover|overlaps|does not overlap) (\[.*)", line).groups()
        for text in blocks("relations")
        for line in text.splitlines()
    ]


@pytest.mark.parametrize(("a", "relation", "b"), relations())
def test_a_relation_holds(a, relation, b):
    a, b = parse_subscription(a), parse_subscription(b)
    holds = a.covers(b) if "cover" in relation else a.overlaps(b)
    assert holds == ("not" not in relation)


@pytest.mark.parametrize("block", blocks("refused"))
def test_a_refusal_reads_as_shown(block):
    text, _, told = block.partition("\nline ")
    with pytest.raises(LanguageError) as refused:
        parse_subscription(text)
    assert "\n".join(map(str, refused.value.problems)) == "line " + told.rstrip("\n")


@pytest.mark.parametrize("code", blocks("python"))
def test_a_program_runs(code):
    exec(compile(code, "message-language.md", "exec"), {})


def test_the_table_of_limits_is_complete():
    shown = dict(re.findall(r"^\| ([A-Z_]+) \| (\d+) \|$", PROSE, re.MULTILINE))
    named = {name: str(value) for name, value in vars(limits).items() if name.isupper()}
    del named["SOURCE_LINE_MAX_CHARACTERS"]  # how an error is shown, not what may be written
    assert shown == named


@pytest.mark.parametrize(
    "text", re.findall(r"`([^`]*)`", PROSE[PROSE.index("**Durations**") :].split("The units")[0])
)
def test_a_duration_is_read(text):
    parse_duration(text)


@pytest.mark.parametrize("date", ["12-Aug-2008", "12-Aug-08", "2008-08-12"])
@pytest.mark.parametrize("clock", ["", "14:30", "14:30:05", "14:30:05.123456"])
@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_every_form_of_a_date_in_the_reference_is_a_date(date, clock, zone):
    assert date in PROSE
    assert clock in PROSE
    text = f"{date} {clock}{zone}" if clock else date
    assert isinstance(parse_publication(f"[class,c],[x,'{text}']")["x"], datetime)
