"""What found its block full is kept in sheets, and every question is answered there as the scan does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language.messages import Subscription
from broker_runtime.language.predicates import Op, predicate
from broker_runtime.matching.advertisements import AdvertisementIndex
from broker_runtime.matching.bitrows import BitRowEngine
from broker_runtime.matching.partition import Partition, Sizes
from broker_runtime.matching.rows import CELL_SLOTS, SLOTS_SHOWN_FIRST
from broker_runtime.matching.scan import ScanEngine
from broker_runtime.matching.shelf import Shelf
from tests.matching.messages import advertisements, contents, subscriptions
from tests.matching.test_engines import ORDINARY, agreed, programs, run
from tests.matching.test_large_tables import DOMAINS, assert_same, conjunction

CLASS = predicate("class", Op.EQ, "C")

SHEETS = {
    "written one by one": Sizes(0, 0, 0, 128, 1000, 64),
    "cut by need": Sizes(0, 0, 0, 0, 1000, 64),
    "a few cuts, and some wait": Sizes(0, 1, 3, 2, 1000, 64),
}


def shelf_of(engine: BitRowEngine[int]) -> Shelf:
    partition: Partition = engine._classes["C"]
    assert partition.shelf is not None
    return partition.shelf


@pytest.mark.parametrize("name", SHEETS)
@ORDINARY
@given(program=programs(), content=st.lists(contents(), min_size=1, max_size=5))
def test_matching_in_sheets_is_the_scan(name: str, program: Any, content: Any) -> None:
    engine, scan = run(BitRowEngine(SHEETS[name]), program), run(ScanEngine(), program)
    for each in content:
        agreed(name, engine.match(each), scan.match(each))


@pytest.mark.parametrize("name", SHEETS)
@ORDINARY
@given(
    program=programs(),
    asked=st.lists(subscriptions, min_size=1, max_size=3),
    promised=st.lists(advertisements, min_size=1, max_size=3),
)
def test_relations_in_sheets_are_the_scan(name: str, program: Any, asked: Any, promised: Any) -> None:
    engine, scan = run(BitRowEngine(SHEETS[name]), program), run(ScanEngine(), program)
    for each in asked + [subscription for _, subscription in program[:3] if subscription]:
        agreed(f"{name} covering", engine.covering(each), scan.covering(each))
        agreed(f"{name} covered", engine.covered(each), scan.covered(each))
        agreed(f"{name} overlapping", engine.overlapping(each), scan.overlapping(each))
    for each in promised:
        agreed(name, engine.overlapping_advertisement(each), scan.overlapping_advertisement(each))


@ORDINARY
@given(stored=st.lists(advertisements, min_size=1, max_size=12), asked=subscriptions, promised=advertisements)
def test_advertisements_in_sheets_answer_as_each_of_them(stored: Any, asked: Any, promised: Any) -> None:
    index = AdvertisementIndex[int](SHEETS["a few cuts, and some wait"])
    for key, each in enumerate(stored):
        index.add(key, each)
    agreed("overlap", index.overlapping(asked), [n for n, each in enumerate(stored) if each.overlaps(asked)])
    agreed("cover", index.covering(promised), [n for n, each in enumerate(stored) if each.covers(promised)])
    agreed("covered", index.covered(promised), [n for n, each in enumerate(stored) if promised.covers(each)])


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("cuts_exact", [3, 128])
def test_full_cells_and_several_sheets_are_the_scan(domain: str, cuts_exact: int) -> None:
    r = random.Random(f"{domain} {cuts_exact}")
    draw, names = DOMAINS[domain], [f"a{i}" for i in range(6)]
    engine, scan = BitRowEngine[int](Sizes(0, 20, 15, cuts_exact, 1000, 128)), ScanEngine[int]()
    stored: list[int] = []
    for key in range(500):
        subscription = Subscription(conjunction(r, names, draw, 4))
        engine.add(key, subscription)
        scan.add(key, subscription)
        stored.append(key)
        if r.random() < 0.3:
            gone = stored.pop(r.randrange(len(stored)))
            engine.remove(gone)
            scan.remove(gone)
        if key % 125 == 124:
            assert_same(engine, scan, r, (names, draw, 4))
    assert len(shelf_of(engine).sheets) > 1


def test_more_slots_are_shown_as_they_come_into_use() -> None:
    engine, r = BitRowEngine[int](Sizes(0, 8)), random.Random(3)
    count = SLOTS_SHOWN_FIRST + 1000
    bounds = [r.randint(1, 1000) for _ in range(count)]
    for key, bound in enumerate(bounds):
        engine.add(key, Subscription([CLASS, predicate("t", Op.LT, bound)]))
    for t in (0, 1, 500.5, 999, 1000):
        expected = [key for key, bound in enumerate(bounds) if t < bound]
        assert sorted(engine.match({"class": "C", "t": t})) == expected
    (sheet,) = shelf_of(engine).sheets
    assert len(sheet.dead) * 64 == 2 * SLOTS_SHOWN_FIRST


def test_coming_and_going_does_not_take_ever_more_slots() -> None:
    engine, r = BitRowEngine[int](Sizes(0, 4, 15, 128, 1000, 4096)), random.Random(4)
    stored: dict[int, int] = {}
    for key in range(6000):
        stored[key] = r.randint(1, 50)
        engine.add(key, Subscription([CLASS, predicate("t", Op.GE, stored[key])]))
        if len(stored) > 300:
            gone = r.choice(list(stored))
            del stored[gone]
            engine.remove(gone)
    for t in (0, 1, 25, 25.5, 50):
        expected = [key for key, bound in stored.items() if t >= bound]
        assert sorted(engine.match({"class": "C", "t": t})) == expected
    (sheet,) = shelf_of(engine).sheets
    assert len(sheet.records) <= 3 * len(stored) + CELL_SLOTS


def test_who_waits_to_be_written_is_found_and_forgotten() -> None:
    engine = BitRowEngine[int](Sizes(0, 1, 15))
    for key in range(10):
        engine.add(key, Subscription([CLASS, predicate("t", Op.GT, key)]))
    assert len(shelf_of(engine).waiting) == 9
    assert engine.match({"class": "C", "t": 5}) == [0, 1, 2, 3, 4]
    engine.remove(3)
    assert engine.match({"class": "C", "t": 5}) == [0, 1, 2, 4]
    assert engine.covering(Subscription([CLASS, predicate("t", Op.GT, 2)])) == [0, 1, 2]


def test_relations_with_cuts_that_came_before_and_after_a_sheet() -> None:
    r = random.Random(6)
    engine, scan = BitRowEngine[int](Sizes(0, 200, 15, 240, 1000, 256)), ScanEngine[int]()
    names = ["a", "b"]
    for key in range(600):
        most = 50 if key < 300 else 120
        subscription = Subscription(conjunction(r, names, lambda q, most=most: q.randint(1, most), 2))
        engine.add(key, subscription)
        scan.add(key, subscription)
        if key % 50 == 49:
            assert_same(engine, scan, r, (names, lambda q: q.randint(0, 240) / 2, 2))
