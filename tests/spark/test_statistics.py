"""Intervals hold as often as they say, differences are the same from both sides, and nothing is made up."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda_spark.statistics import difference, estimate, holm

SIMULATED = 400
VALUES = st.lists(st.floats(0.001, 1000), min_size=2, max_size=8)


def covered(truth: float, interval: tuple[float, float] | None) -> bool:
    assert interval is not None
    return interval[0] <= truth <= interval[1]


def share_covered(seed: int, hits: list[bool]) -> float:
    assert len(hits) == SIMULATED, seed
    return sum(hits) / SIMULATED


@pytest.mark.parametrize("runs", [2, 5, 20])
def test_the_interval_of_the_mean_holds_in_95_percent_of_simulated_experiments(runs: int) -> None:
    rng = random.Random(runs)
    hits = [
        covered(3.0, estimate([rng.gauss(3.0, 1.0) for _ in range(runs)]).mean_interval)
        for _ in range(SIMULATED)
    ]
    assert 0.92 <= share_covered(runs, hits) <= 0.98


@pytest.mark.parametrize("runs", [10, 25])
def test_the_interval_of_the_median_holds_in_about_95_percent_also_of_skewed_values(runs: int) -> None:
    rng = random.Random(runs)
    hits = [
        covered(1.0, estimate([rng.lognormvariate(0, 1) for _ in range(runs)]).median_interval)
        for _ in range(SIMULATED)
    ]
    assert 0.91 <= share_covered(runs, hits) <= 0.99


@pytest.mark.parametrize(("runs_a", "runs_b", "noise_b"), [(5, 5, 1.0), (4, 12, 3.0), (20, 3, 0.2)])
def test_the_interval_of_a_difference_holds_though_the_groups_vary_differently(
    runs_a: int, runs_b: int, noise_b: float
) -> None:
    rng = random.Random(runs_a)
    found = [
        difference([rng.gauss(10, 1) for _ in range(runs_a)], [rng.gauss(12, noise_b) for _ in range(runs_b)])
        for _ in range(SIMULATED)
    ]
    assert 0.92 <= share_covered(runs_a, [covered(2.0, each.interval) for each in found]) <= 0.985
    assert 0.92 <= share_covered(runs_a, [covered(0.2, each.share_interval) for each in found]) <= 0.985


def test_groups_that_do_not_differ_are_called_different_in_5_percent_of_cases() -> None:
    rng = random.Random(4711)
    found = [
        difference([rng.gauss(1, 0.1) for _ in range(5)], [rng.gauss(1, 0.1) for _ in range(5)]).p_value
        for _ in range(SIMULATED)
    ]
    assert 0.025 <= sum(p is not None and p <= 0.05 for p in found) / SIMULATED <= 0.08


def test_twenty_metrics_that_do_not_differ_seldom_show_one_that_does() -> None:
    rng = random.Random(42)
    wrong = 0
    for _ in range(SIMULATED):
        p_values = [
            difference([rng.gauss(1, 0.1) for _ in range(5)], [rng.gauss(1, 0.1) for _ in range(5)]).p_value
            for _ in range(20)
        ]
        wrong += any(p is not None and p <= 0.05 for p in holm(p_values))
    assert wrong / SIMULATED <= 0.08


@given(VALUES, VALUES)
def test_a_difference_is_the_same_from_the_other_side(a: list[float], b: list[float]) -> None:
    there, back = difference(a, b), difference(b, a)
    assert there.difference is not None
    assert back.difference is not None
    assert math.isclose(there.difference, -back.difference, rel_tol=1e-9, abs_tol=1e-12)
    assert there.method == back.method
    assert (there.p_value is None) == (back.p_value is None)
    if there.p_value is not None and back.p_value is not None:
        assert math.isclose(there.p_value, back.p_value, rel_tol=1e-6, abs_tol=1e-12)
    if there.interval and back.interval:
        assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]), rel=1e-9, abs=1e-9)


@given(VALUES, VALUES)
def test_the_ratio_of_two_means_is_turned_upside_down_from_the_other_side(
    a: list[float], b: list[float]
) -> None:
    there, back = difference(a, b).share_interval, difference(b, a).share_interval
    if there and back and there[0] > -0.999 and back[0] > -0.999:
        assert 1 / (1 + there[0]) == pytest.approx(1 + back[1], rel=1e-6)
        assert 1 / (1 + there[1]) == pytest.approx(1 + back[0], rel=1e-6)


@given(VALUES, VALUES, st.sampled_from([1e-6, 1e-3, 60.0, 1e9]))
def test_shares_and_p_values_do_not_depend_on_the_unit(a: list[float], b: list[float], unit: float) -> None:
    plain, scaled = difference(a, b), difference([unit * v for v in a], [unit * v for v in b])
    assert plain.method == scaled.method
    for one, other in ((plain.share, scaled.share), (plain.p_value, scaled.p_value)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one == pytest.approx(other, rel=1e-5, abs=1e-9)
    if plain.share_interval and scaled.share_interval:
        assert plain.share_interval == pytest.approx(scaled.share_interval, rel=1e-4, abs=1e-6)


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(values: list[float], rng: random.Random) -> None:
    shuffled = values.copy()
    rng.shuffle(shuffled)
    assert estimate(values) == estimate(shuffled)


def test_known_values_give_the_numbers_of_the_textbook() -> None:
    of = estimate([4.0, 5.0, 6.0])
    assert of.mean == 5.0
    assert of.mean_interval == pytest.approx((5 - 4.302653 / math.sqrt(3), 5 + 4.302653 / math.sqrt(3)))
    apart = difference([27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5])
    from scipy.stats import ttest_ind

    theirs = ttest_ind(
        [27.1, 22.0, 20.8, 23.4, 23.4, 23.5], [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], equal_var=False
    )
    assert apart.p_value == pytest.approx(float(theirs.pvalue))
    interval = theirs.confidence_interval()
    assert apart.interval == pytest.approx((float(interval.low), float(interval.high)))


def test_the_interval_of_the_median_says_how_it_was_made() -> None:
    assert estimate([1.0, 2.0, 4.0, 7.0, 9.0, 12.0, 15.0]).median_method == "BCa"
    assert estimate([1.0, 1.0, 1.0, 1.0, 9.0, 1.0, 1.0]).median_method == "percentile"


def test_one_run_has_a_value_and_no_interval() -> None:
    of = estimate([0.25])
    assert (of.runs, of.mean, of.median) == (1, 0.25, 0.25)
    assert of.mean_interval is None
    assert of.median_interval is None
    apart = difference([0.25], [0.5, 0.6])
    assert apart.difference == pytest.approx(0.3)
    assert apart.share == pytest.approx(1.2)
    assert (apart.interval, apart.p_value) == (None, None)
    assert apart.method == "one value in A: chance cannot be judged"


def test_runs_that_all_say_the_same_claim_no_interval() -> None:
    of = estimate([0.1, 0.1, 0.1])
    assert of.mean == 0.1
    assert (of.mean_interval, of.median_interval) == (None, None)


def test_equal_groups_are_not_tested_at_all() -> None:
    apart = difference([0.1, 0.1, 0.1], [0.1, 0.1])
    assert (apart.difference, apart.share, apart.p_value) == (0.0, 0.0, None)
    assert difference([0, 0], [0, 0]).share is None


@pytest.mark.parametrize(("runs", "p_value"), [(3, 0.1), (5, 2 / 252)])
def test_two_constant_groups_are_told_apart_by_counting_permutations(runs: int, p_value: float) -> None:
    apart = difference([0] * runs, [7] * runs)
    assert apart.difference == 7
    assert apart.share is None
    assert apart.p_value == pytest.approx(p_value)
    assert apart.interval is None


def test_one_constant_group_leaves_the_chance_to_the_other() -> None:
    apart = difference([0, 0, 0, 0], [3, 4, 5, 6])
    assert apart.method == "Welch's t"
    assert apart.p_value is not None
    assert apart.p_value < 0.01


def test_no_share_has_an_interval_when_the_mean_of_a_may_be_zero() -> None:
    apart = difference([0, 0, 1], [5, 6, 7])
    assert apart.share == pytest.approx(17)
    assert apart.share_interval is None
    assert apart.interval is not None


def test_a_share_of_a_negative_mean_keeps_the_direction() -> None:
    apart = difference([-10, -11, -9], [-5, -6, -4])
    assert apart.share == pytest.approx(0.5)
    assert apart.share_interval is not None
    assert apart.share_interval[0] < 0.5 < apart.share_interval[1]


@pytest.mark.parametrize("hole", [None, math.nan, math.inf, -math.inf, 1e300])
def test_what_is_no_value_is_left_out_and_counted(hole: float | None) -> None:
    of = estimate([1.0, hole, 2.0])
    assert (of.runs, of.missing, of.mean) == (2, 1, 1.5)
    assert difference([hole], [1.0]).method == "no value in A"
    assert difference([1.0], [hole]).method == "no value in B"
    assert estimate([hole]).mean is None


@given(st.lists(st.none() | st.floats(), max_size=6), st.lists(st.none() | st.floats(), max_size=6))
def test_no_values_whatever_break_it(a: list[float | None], b: list[float | None]) -> None:
    apart = difference(a, b)
    assert apart.method
    assert apart.p_value is None or 0 <= apart.p_value <= 1
    assert apart.interval is None or apart.interval[0] <= apart.interval[1]


def test_holm_multiplies_by_how_many_are_left_and_never_goes_down() -> None:
    assert holm([0.25, 0.5, None, 0.375]) == [0.75, 0.75, None, 0.75]
    assert holm([0.01, 0.5]) == [0.02, 0.5]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
