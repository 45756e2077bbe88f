"""What is typed is read, completed, recalled and refused at its place."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language import LanguageError, parse_publication, parse_subscription
from panda_tui.messages.arrivals import SHOWN_AT_ONCE_MAX, Arrivals
from panda_tui.messages.completion import VALUES_MAX, Names, Vocabulary, offers
from panda_tui.messages.desk import promise_of
from panda_tui.messages.line import problem_of
from panda_tui.messages.recall import Recall, batch_of
from panda_tui.messages.words import WORDS, read

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = Names(["Alice", "Bob"], ["a1"], ["s1", "s2"])


def vocabulary() -> Vocabulary:
    known = Vocabulary()
    known.learn_predicates(parse_subscription("[class,eq,'STOCK'],[symbol,in,{'IBM','YHOO'}],[price,>,$P]"))
    known.learn(parse_publication("[class,'WEATHER'],[city,'Oslo']"))
    return known


def offered(line: str) -> list[str]:
    return [line[: each.start] + each.text for each in offers(line, len(line), vocabulary(), NAMES)]


# Reading


@pytest.mark.parametrize("word", WORDS)
def test_every_words_example_is_read(word: object) -> None:
    found = read(word.usage, NOW)  # type: ignore[attr-defined]
    assert found.word is word


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("subscrib [class,eq,'X']", 1, "unknown word"),
        ("  s [class,eqq,'X']", 12, "unknown operator 'eqq'"),
        ("s [class,eq,'X'],[price,>>,1]", 26, "expected"),
        ("p", 2, "the publication is missing"),
        ("p [price,20]", 3, "no class"),
        ("inject B dance [class,'X']", 10, "unknown kind 'dance'"),
        ("inject B publish [class", 18, "expected"),
        ("cut B", 5, "broker and its peer"),
        ("s [class,eq,'X'] && [class,eq,'Y']", 18, "composite"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(line: str, column: int, message: str) -> None:
    with pytest.raises(LanguageError) as refused:
        read(line, NOW)
    problem = refused.value.problems[0]
    assert problem.column == column or message in ("expected", "composite")
    assert message in str(problem) or message in ("expected", "composite")
    assert problem.source_line == line
    assert problem_of(line) == problem


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_within_reach_of_the_line(line: str) -> None:
    problem = problem_of(line)
    assert problem is None or problem.line > 1 or 1 <= problem.column <= len(line) + 1


def test_an_empty_line_and_a_comment_are_no_problem() -> None:
    assert problem_of("") is None
    assert problem_of("# a comment") is None


# Completing


def test_words_are_completed() -> None:
    assert offered("tr") == ["trace "]
    assert "subscribe " in offered("s")


def test_a_message_begins_with_its_class() -> None:
    assert offered("s ") == ["s [class,eq,"]
    assert offered("p ") == ["p [class,"]
    assert offered("s [class,eq,'STOCK']") == ["s [class,eq,'STOCK'],["]


def test_attributes_operators_types_and_values_are_completed() -> None:
    assert offered("s [class,eq,'STOCK'],[p") == ["s [class,eq,'STOCK'],[price,"]
    assert "s [price,str-prefix," in offered("s [price,str")
    assert offered("a [price,isPresent,@F") == ["a [price,isPresent,@FLOAT]"]
    assert offered("s [symbol,eq,'Y") == ["s [symbol,eq,'YHOO']"]
    assert offered("p [class,") == ["p [class,'WEATHER']", "p [class,'STOCK']"]
    assert offered("inject Bob publish [class,'S") == ["inject Bob publish [class,'STOCK']"]


def test_an_attribute_is_offered_once_in_a_message() -> None:
    assert not any(text.endswith("[class,") for text in offered("p [class,'X'],["))


def test_names_are_completed() -> None:
    assert offered("unsub s") == ["unsub s1", "unsub s2"]
    assert offered("connect A") == ["connect Alice"]
    assert offered("inject B") == ["inject Bob"]
    assert "inject Bob publish" in offered("inject Bob p")
    assert offered("foo ") == []


def test_brackets_in_strings_do_not_confuse_it() -> None:
    assert offered("p [city,'[a,b") == []
    assert "p [city,'O]x'],[price," in offered("p [city,'O]x'],[pr")


@given(st.text("sp [],'\"classxeq>1", max_size=30), st.integers(0, 30))
def test_offers_begin_before_the_cursor(line: str, cursor: int) -> None:
    cursor = min(cursor, len(line))
    for each in offers(line, cursor, vocabulary(), NAMES):
        assert 0 <= each.start <= cursor


def test_whatever_is_learned_is_bounded() -> None:
    known = Vocabulary()
    for number in range(1000):
        known.learn({"class": "X", "n": number})
    assert list(known.values["n"]) == [str(n) for n in range(1000 - VALUES_MAX, 1000)]


# Recalling


def test_arrows_go_back_and_come_forward_to_what_was_being_written() -> None:
    recall = Recall()
    for line in ("one", "two", "two", " "):
        recall.add(line)
    assert recall.lines == ["one", "two"]
    assert [recall.back("draft"), recall.back("two"), recall.back("one")] == ["two", "one", "one"]
    assert [recall.forward("one"), recall.forward("two"), recall.forward("draft")] == [
        "two",
        "draft",
        "draft",
    ]


def test_nothing_to_recall() -> None:
    assert Recall().back("x") == "x"
    assert Recall().forward("x") == "x"


def test_a_batch_passes_over_comments_and_knows_where_it_is() -> None:
    batch = batch_of("f.txt", "# first\n\ns [class,eq,'X']\np [class,'X']\n")
    assert batch.next == (3, "s [class,eq,'X']")
    assert batch.caption() == "f.txt, line 3 of 4"
    batch.step()
    batch.step()
    assert batch.next is None
    assert batch.caption() == "f.txt is done"


def test_of_a_flood_the_latest_are_shown_and_the_rest_counted() -> None:
    arrivals = Arrivals()
    for number in range(SHOWN_AT_ONCE_MAX + 7):
        arrivals.add(str(number))
    left_out, shown = arrivals.take()
    assert left_out == 7
    assert shown[-1] == str(SHOWN_AT_ONCE_MAX + 6)
    assert arrivals.take() == (0, [])
    assert arrivals.total == SHOWN_AT_ONCE_MAX + 7


def test_a_promise_induces_what_it_was_made_for() -> None:
    content = parse_publication("[class,'X'],[n,1],[s,'t'],[d,'12-Aug-08']")
    assert promise_of(content).induces(content)
