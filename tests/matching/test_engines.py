"""Every engine answers every question as the scan does, whatever was added and removed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_runtime.language.messages import Subscription
from broker_runtime.matching import default_engine
from broker_runtime.matching.bitrows import BitRowEngine
from broker_runtime.matching.counting import CountingEngine
from broker_runtime.matching.engine import MatchingEngine
from broker_runtime.matching.partition import Sizes
from broker_runtime.matching.scan import ScanEngine
from tests.matching.messages import advertisements, contents, subscriptions

Engine = MatchingEngine[int]

ENGINES: dict[str, Callable[[], Engine]] = {
    "counting": CountingEngine,
    "default": default_engine,
    "rows at once": lambda: BitRowEngine(Sizes(list_records_max=0)),
    "tiny blocks": lambda: BitRowEngine(Sizes(0, 2, 1, 2, 1000, 3)),
    "no exact cells": lambda: BitRowEngine(Sizes(0, 4, 1, 0, 1000, 1)),
    "everything hashed": lambda: BitRowEngine(Sizes(1, 3, 1, 1, 1, 2)),
    "some hashed": lambda: BitRowEngine(Sizes(2, 3, 1, 3, 3, 1)),
    "hashed late, moved one by one": lambda: BitRowEngine(Sizes(0, 12, 1, 3, 3, 2, moves_per_addition=1)),
}

ORDINARY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, Subscription | None]]:
    """Additions and removals; None removes."""
    pool = draw(st.lists(subscriptions, min_size=1, max_size=14))
    steps: list[tuple[int, Subscription | None]] = [(n, each) for n, each in enumerate(pool)]
    stored = list(range(len(pool)))
    for _ in range(draw(st.integers(0, 8))):
        if stored and draw(st.booleans()):
            steps.append((stored.pop(draw(st.integers(0, len(stored) - 1))), None))
        else:
            key = len(steps) + 100
            stored.append(key)
            steps.append((key, draw(st.sampled_from(pool))))
    return steps


def run(engine: Engine, program: list[tuple[int, Subscription | None]]) -> Engine:
    for key, subscription in program:
        if subscription is None:
            engine.remove(key)
        else:
            engine.add(key, subscription)
    return engine


def agreed(name: str, found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(set(found)), name
    assert sorted(found) == sorted(expected), name


@pytest.mark.parametrize("name", ENGINES)
@ORDINARY
@given(program=programs(), content=st.lists(contents(), min_size=1, max_size=5))
def test_matching_is_the_scan(name: str, program: Any, content: Any) -> None:
    engine, scan = run(ENGINES[name](), program), run(ScanEngine(), program)
    assert len(engine) == len(scan)
    for each in content:
        agreed(name, engine.match(each), scan.match(each))


@pytest.mark.parametrize("name", ENGINES)
@ORDINARY
@given(program=programs(), asked=st.lists(subscriptions, min_size=1, max_size=3))
def test_relations_are_the_scan(name: str, program: Any, asked: Any) -> None:
    engine, scan = run(ENGINES[name](), program), run(ScanEngine(), program)
    stored = [subscription for _, subscription in program[:3] if subscription]
    for each in asked + stored:
        agreed(f"{name} covering", engine.covering(each), scan.covering(each))
        agreed(f"{name} covered", engine.covered(each), scan.covered(each))
        agreed(f"{name} overlapping", engine.overlapping(each), scan.overlapping(each))


@pytest.mark.parametrize("name", ENGINES)
@ORDINARY
@given(program=programs(), asked=st.lists(advertisements, min_size=1, max_size=4))
def test_overlap_with_advertisements_is_the_scan(name: str, program: Any, asked: Any) -> None:
    engine, scan = run(ENGINES[name](), program), run(ScanEngine(), program)
    for each in asked:
        agreed(name, engine.overlapping_advertisement(each), scan.overlapping_advertisement(each))


@pytest.mark.parametrize("name", ["scan", *ENGINES])
@ORDINARY
@given(one=subscriptions, other=subscriptions)
def test_keys_are_taken_once_and_removed_once(name: str, one: Subscription, other: Subscription) -> None:
    engine: Engine = ScanEngine() if name == "scan" else ENGINES[name]()
    engine.add(1, one)
    with pytest.raises(ValueError, match="stored already"):
        engine.add(1, other)
    assert engine.get(1) is one
    assert 1 in engine
    engine.remove(1)
    with pytest.raises(KeyError):
        engine.remove(1)
    assert (engine.get(1), 1 in engine, len(engine)) == (None, False, 0)
    engine.add(1, other)
    assert engine.get(1) is other
