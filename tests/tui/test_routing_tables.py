"""Tables are read whatever they hold, searched by text or by publication, and say which covers which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language import LanguageError
from panda_tui.model import Load
from panda_tui.routing import (
    COVER_ALL_MAX,
    Entry,
    Tables,
    covered,
    covering,
    first_covering,
    search,
    tables_of,
)
from panda_tui.sparks import BARS, KEPT, METRICS, History, queueing_of, spark

ALL = "[class,eq,'STOCK']"
DEAR = "[class,eq,'STOCK'],[price,>,100]"
DEARER = "[class,eq,'STOCK'],[price,>,200]"
OTHER = "[class,eq,'WEATHER']"


def entries(*texts: str) -> tuple[Entry, ...]:
    return tables_of(
        {"subscriptions": [{"id": f"s{i}", "hop": "B", "text": t} for i, t in enumerate(texts)]}
    ).subscriptions


def test_what_covers_which() -> None:
    table = entries(ALL, DEAR, DEARER, OTHER)
    assert [each.id for each in covering(table[2], table)] == ["s0", "s1"]
    assert [each.id for each in covered(table[0], table)] == ["s1", "s2"]
    assert first_covering(table) == {"s1": "s0", "s2": "s0"}


def test_of_two_equal_ones_the_first_covers_the_other() -> None:
    assert first_covering(entries(ALL, ALL)) == {"s1": "s0"}


def test_of_too_many_nothing_is_said_at_once() -> None:
    assert first_covering(entries(*[ALL] * (COVER_ALL_MAX + 1))) == {}


@given(st.lists(st.sampled_from([ALL, DEAR, DEARER, OTHER, "[class,eq,'STOCK'],[price,<,50]"]), max_size=12))
def test_whoever_is_covered_is_covered_by_one_that_is_not(texts: list[str]) -> None:
    table = entries(*texts)
    found = first_covering(table)
    by_id = {entry.id: entry for entry in table}
    for covered_id, covering_id in found.items():
        assert by_id[covering_id].covers(by_id[covered_id])
    for entry in table:
        if entry.id not in found:
            strict = [other for other in covering(entry, table) if not entry.covers(other)]
            assert strict == []


def test_a_part_of_anything_finds_an_entry() -> None:
    table = entries(ALL, DEAR, OTHER)
    assert [each.id for each in search(table, "weather")] == ["s2"]
    assert [each.id for each in search(table, "s1")] == ["s1"]
    assert search(table, "") == list(table)


def test_a_publication_finds_what_it_matches() -> None:
    table = entries(ALL, DEAR, DEARER, OTHER)
    assert [each.id for each in search(table, "[class,'STOCK'],[price,150]")] == ["s0", "s1"]
    with pytest.raises(LanguageError):
        search(table, "[class,'STOCK'],[price")


def test_what_is_not_understood_is_shown_and_covers_nothing() -> None:
    table = entries("[class,eq,", ALL)
    assert table[0].meaning is None
    assert covering(table[0], table) == covered(table[0], table) == []


def test_entries_that_stay_keep_what_was_found_out() -> None:
    answer = {
        "subscriptions": [{"id": "s", "hop": "B", "text": ALL}],
        "links": [{"peer": "B", "role": "broker"}],
    }
    first = tables_of(answer)
    again = tables_of(answer, first)
    assert again.subscriptions[0] is first.subscriptions[0]
    assert again.links[0].peer == "B"
    assert not again.links[0].up


def test_what_concerns_brokers_themselves_is_known_as_such() -> None:
    control, stock, open_to_all = entries("[class,eq,'BROKER_INFO'],[x,eq,1]", ALL, "[class,isPresent,*]")
    assert [each.is_control for each in (control, stock, open_to_all)] == [True, False, False]


def test_an_empty_answer_is_an_empty_table() -> None:
    assert tables_of({}) == Tables()


# Bars


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=40), st.integers(0, 60))
def test_bars_are_as_wide_as_asked(values: list[float | None], width: int) -> None:
    bars = spark(values, width)
    assert len(bars) == width
    assert set(bars) <= {*BARS, " "}


def test_the_highest_value_has_the_highest_bar() -> None:
    assert spark([0.0, None, 7.0, 3.5], 6) == "  ▁ █▅"
    assert spark([0.0, 0.0], 3) == " ▁▁"


def test_queueing_is_taken_between_two_times() -> None:
    loads = [
        Load(publications=10, queueing_ms=1.0),
        Load(publications=20, queueing_ms=2.0),
        Load(publications=20, queueing_ms=2.0),
    ]
    assert queueing_of(loads) == [1.0, 3.0, 0.0]
    assert queueing_of([Load(publications=9), None, Load(publications=3, queueing_ms=4.0)]) == [
        0.0,
        None,
        4.0,
    ]


def test_a_history_takes_each_time_once_and_forgets() -> None:
    history = History()
    assert history.take(Load(rate_in=1), 1.0)
    assert not history.take(Load(rate_in=1), 1.0)
    assert not history.take(Load(), None)
    for at in range(2, KEPT + 50):
        history.take(Load(rate_in=at), float(at))
    values = history.values(METRICS[0])
    assert len(values) == KEPT
    assert values[-1] == KEPT + 49
