"""Laws: what is printed is read back the same, and printing settles after one round."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language import (
    LanguageError,
    parse_advertisement,
    parse_duration,
    parse_publication,
    parse_subscription,
    print_advertisement,
    print_publication,
    print_subscription,
    write_duration,
)
from tests.language import strategies

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)


def typed(content):
    """A form in which a NaN equals a NaN, and 1, 1.0 and true are three different values."""
    return [(name, type(value), repr(value)) for name, value in content.items()]


@given(strategies.contents)
def test_a_printed_publication_is_read_back(content):
    assert typed(parse_publication(print_publication(content))) == typed(content)


@given(strategies.subscriptions)
def test_a_printed_subscription_is_read_back(subscription):
    assert parse_subscription(print_subscription(subscription)) == subscription


@given(strategies.advertisements)
def test_a_printed_advertisement_is_read_back(advertisement):
    assert parse_advertisement(print_advertisement(advertisement)) == advertisement


@given(strategies.contents, st.data())
def test_names_known_to_the_reader_do_not_change_what_was_printed(content, data):
    names = data.draw(st.dictionaries(strategies.texts, st.just("wrong"), max_size=5))
    again = parse_publication(print_publication(content), environment=names, now=NOW)
    assert typed(again) == typed(content)


@given(strategies.subscriptions | strategies.advertisements)
def test_printed_messages_stay_on_one_line_and_show_every_character(message):
    assert print_subscription(message).isprintable()


@given(st.lists(st.sampled_from(strategies.AWKWARD), max_size=3))
def test_printing_is_stable_for_every_text_that_is_read(pieces):
    text = f"[class,eq,c],[x,eq,{' '.join(pieces)}]"
    try:
        printed = print_subscription(parse_subscription(text, now=NOW))
    except LanguageError:
        return
    assert print_subscription(parse_subscription(printed)) == printed


@given(st.timedeltas(timedelta(), timedelta(days=10_000)))
def test_a_written_duration_is_read_back(duration):
    assert parse_duration(write_duration(duration)) == duration
