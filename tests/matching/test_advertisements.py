"""The index of advertisements answers as the scan does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_runtime.language.messages import Advertisement
from broker_runtime.matching import default_advertisement_table
from broker_runtime.matching.advertisements import AdvertisementIndex
from broker_runtime.matching.engine import AdvertisementTable
from broker_runtime.matching.partition import Sizes
from broker_runtime.matching.scan import AdvertisementScan
from tests.matching.messages import advertisements, contents, subscriptions

Table = AdvertisementTable[int]

TABLES: dict[str, Callable[[], Table]] = {
    "default": default_advertisement_table,
    "sheets at once": lambda: AdvertisementIndex(Sizes(0, 3, 1, 2, 1000, 1)),
    "everything hashed": lambda: AdvertisementIndex(Sizes(0, 3, 1, 0, 1, 1)),
}


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, Advertisement | None]]:
    stored = draw(st.lists(advertisements, min_size=1, max_size=12))
    steps: list[tuple[int, Advertisement | None]] = list(enumerate(stored))
    gone = draw(st.lists(st.integers(0, len(stored) - 1), unique=True, max_size=4))
    again = draw(st.lists(st.sampled_from(stored), max_size=3))
    return steps + [(key, None) for key in gone] + [(100 + n, each) for n, each in enumerate(again)]


def run(table: Table, program: list[tuple[int, Advertisement | None]]) -> Table:
    for key, advertisement in program:
        if advertisement is None:
            table.remove(key)
        else:
            table.add(key, advertisement)
    return table


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=100)
@given(
    program=programs(),
    asked=st.lists(advertisements, min_size=1, max_size=3),
    wanted=st.lists(subscriptions, min_size=1, max_size=3),
    content=st.lists(contents(), min_size=1, max_size=4),
)
def test_the_index_is_the_scan(name: str, program: Any, asked: Any, wanted: Any, content: Any) -> None:
    table, scan = run(TABLES[name](), program), run(AdvertisementScan(), program)
    assert len(table) == len(scan)
    for each in wanted:
        assert sorted(table.overlapping(each)) == sorted(scan.overlapping(each))
    for each in asked + [advertisement for _, advertisement in program[:2] if advertisement]:
        assert sorted(table.covering(each)) == sorted(scan.covering(each))
        assert sorted(table.covered(each)) == sorted(scan.covered(each))
    for each in content:
        assert sorted(table.inducing(each)) == sorted(scan.inducing(each))


def test_many_advertisements_are_found_by_what_they_induce() -> None:
    from broker_runtime.language.predicates import Op, predicate

    table, scan = AdvertisementIndex[int](), AdvertisementScan[int]()
    for n in range(700):
        advertisement = Advertisement(
            [
                predicate("class", Op.EQ, f"C{n % 3}"),
                predicate("x", Op.GE, n % 50),
                predicate("x", Op.LT, n % 50 + 10),
                predicate("y", Op.EQ, n % 300),
            ]
        )
        table.add(n, advertisement)
        scan.add(n, advertisement)
    for content in ({"class": "C1", "x": 12.5, "y": 61}, {"class": "C1", "x": 30}, {"class": "C1", "z": 1}):
        assert sorted(table.inducing(content)) == sorted(scan.inducing(content))
    assert table.inducing({"x": 30}) == []


def test_keys_are_taken_once() -> None:
    from broker_runtime.language.predicates import Op, predicate

    table: Table = default_advertisement_table()
    advertisement = Advertisement([predicate("class", Op.EQ, "A")])
    table.add(1, advertisement)
    with pytest.raises(ValueError, match="stored already"):
        table.add(1, advertisement)
    assert (1 in table, table.get(1), len(table)) == (True, advertisement, 1)
    table.remove(1)
    with pytest.raises(KeyError):
        table.remove(1)
