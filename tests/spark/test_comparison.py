"""Groups of runs are compared metric by metric; thresholds say what is too bad; chance is not a result."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from panda_spark.comparison import compare
from panda_spark.metrics import BY_NAME, METRICS
from panda_spark.refusal import Refused
from panda_spark.thresholds import threshold_of, thresholds_of


def group(name: str, **columns: list[Any]) -> list[dict[str, Any]]:
    runs = len(next(iter(columns.values())))
    return [{"run": f"{name}{i}", **{key: values[i] for key, values in columns.items()}} for i in range(runs)]


def row_of(rows: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    return next(row for row in rows if row["metric"] == metric)


def test_every_figure_of_the_summary_can_be_compared() -> None:
    page = Path(__file__).parents[2] / "docs" / "tables.md"
    (columns,) = re.findall(r"^\| `summary` \|(.*)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [metric.name for metric in METRICS] == re.findall(r"`(\w+)`", columns)


SLOW = group("b", latency_p99_s=[0.030, 0.031, 0.029, 0.0305, 0.0295], lost=[0, 0, 0, 0, 0])
QUICK = group("a", latency_p99_s=[0.010, 0.011, 0.009, 0.0105, 0.0095], lost=[0, 0, 0, 0, 0])


def test_a_clear_difference_is_told_with_size_direction_and_certainty() -> None:
    comparison = compare(QUICK, SLOW)
    row = row_of(comparison.rows, "latency_p99_s")
    assert row["significant"]
    assert (row["a_runs"], row["b_runs"], row["unit"], row["better"]) == (5, 5, "s", "lower")
    assert row["difference"] == pytest.approx(0.02)
    assert row["difference_share"] == pytest.approx(2.0)
    assert row["difference_low"] < 0.02 < row["difference_high"]
    assert row["a_low"] < row["a_mean"] < row["a_high"]
    assert row["a_median_low"] <= row["a_median"] <= row["a_median_high"]
    assert row["method"] == "Welch's t; BCa bootstrap of A's median; BCa bootstrap of B's median"
    assert comparison.sentence.startswith(
        "B (5 runs) against A (5 runs): latency_p99_s is higher by 20 ms (+200.0 %), p = "
    )
    assert "worse. 1 of 1 metric that could be tested differs significantly" in comparison.sentence


def test_the_other_way_round_it_is_better_by_as_much() -> None:
    there = row_of(compare(QUICK, SLOW).rows, "latency_p99_s")
    back = row_of(compare(SLOW, QUICK).rows, "latency_p99_s")
    assert back["difference"] == pytest.approx(-there["difference"])
    assert back["p_value"] == pytest.approx(there["p_value"])
    assert (back["a_mean"], back["b_mean"]) == (there["b_mean"], there["a_mean"])
    assert "lower by 20 ms (-66.7 %)" in compare(SLOW, QUICK).sentence
    assert "better" in compare(SLOW, QUICK).sentence


def test_a_metric_that_never_differs_is_listed_and_not_tested() -> None:
    row = row_of(compare(QUICK, SLOW).rows, "lost")
    assert (row["difference"], row["p_value"], row["significant"]) == (0.0, None, False)
    assert row["method"] == "all values are equal"


def test_metrics_that_no_run_has_are_left_out_unless_a_threshold_asks_for_them() -> None:
    assert [row["metric"] for row in compare(QUICK, SLOW).rows] == ["lost", "latency_p99_s"]
    comparison = compare(QUICK, SLOW, thresholds=["bytes:+1%"])
    assert row_of(comparison.rows, "bytes")["crossed"] is None
    assert comparison.crossed == ["bytes:+1%"]
    assert comparison.sentence.endswith("Cannot be judged: bytes:+1%.")


def test_one_run_against_one_tells_the_difference_and_that_chance_cannot_be_judged() -> None:
    comparison = compare(QUICK[:1], SLOW[:1])
    row = row_of(comparison.rows, "latency_p99_s")
    assert row["difference"] == pytest.approx(0.02)
    assert (row["p_value"], row["significant"], row["a_low"]) == (None, False, None)
    assert "too few runs to tell a difference from chance" in comparison.sentence
    assert [note for note in comparison.notes if "one run" in note] == [
        "A is one run: no interval, and nothing can be called significant",
        "B is one run: no interval, and nothing can be called significant",
    ]


def test_twenty_metrics_of_the_same_experiment_show_no_significant_one() -> None:
    rng = random.Random(7)
    alarms = 0
    for _ in range(15):
        a, b = (
            group(name, **{metric.name: [rng.gauss(1, 0.1) for _ in range(5)] for metric in METRICS})
            for name in "ab"
        )
        alarms += any(row["significant"] for row in compare(a, b).rows)
    assert alarms <= 2


def test_a_run_without_the_figure_is_left_out_of_its_metric_and_counted() -> None:
    b = group("b", latency_p99_s=[0.03, None, float("nan"), "fast", True])
    row = row_of(compare(QUICK, b).rows, "latency_p99_s")
    assert (row["b_runs"], row["b_missing"]) == (1, 4)


def test_the_result_is_json_without_a_nan() -> None:
    b = group("b", latency_p99_s=[0.03, float("nan"), 0.04], lost=[0, 0, 0])
    json.dumps(compare(QUICK, b, thresholds=["lost:0"]).data(), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "a", "b", "crossed"),
    [
        ("latency_p99_s:+10%", 0.100, 0.1100, False),
        ("latency_p99_s:+10%", 0.100, 0.1101, True),
        ("latency_p99_s:10%", 0.100, 0.1101, True),
        ("latency_p99_s:+10%", 0.100, 0.020, False),
        ("latency_p50_s:+2ms", 0.010, 0.012, False),
        ("latency_p50_s:+2ms", 0.010, 0.0121, True),
        ("latency_p50_s : +500 µs", 0.010, 0.0104, False),
        ("latency_p50_s:0.5", 1.0, 1.6, True),
        ("delivered_per_s:-5%", 100.0, 95.0, False),
        ("delivered_per_s:-5%", 100.0, 94.0, True),
        ("delivered_per_s:-5%", 100.0, 200.0, False),
        ("delivered_per_s:-10/s", 100.0, 89.0, True),
        ("lost:0", 0, 0, False),
        ("lost:0", 0, 1, True),
        ("lost:0", 3, 3, False),
        ("lost:+10%", 0, 1, True),
        ("bytes:+1MB", 1e6, 2e6, False),
        ("bytes:+1MiB", 1e6, 2.1e6, True),
        ("published:1%", 100, 102, True),
        ("published:1%", 100, 98, True),
        ("published:-1%", 100, 102, False),
        ("lost:0", None, 1, None),
    ],
)
def test_a_threshold_is_crossed_when_b_is_worse_by_more(
    text: str, a: float | None, b: float | None, crossed: bool | None
) -> None:
    assert threshold_of(text).crossed(a, b) is crossed


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("latency", "is not METRIC:CHANGE", "latency_p99_s:+10%"),
        ("lost:many", "is not METRIC:CHANGE", "lost:0"),
        ("latency_p99:+10%", "is about an unknown metric", "latency_p99_s"),
        ("latency_p99_s:-10%", "lower is better here", "say latency_p99_s:+10%"),
        ("delivered_per_s:+5%", "higher is better here", "say delivered_per_s:-5%"),
        ("lost:+2ms", "has a unit that lost has not", "known here: %"),
        ("latency_p50_s:+2m", "has a unit that latency_p50_s has not", "%, s, ms, us"),
        (f"lost:{'9' * 400}", "is beyond every number", "lost:0"),
        ("", "is not METRIC:CHANGE", "lost:0"),
    ],
)
def test_a_threshold_that_says_nothing_is_refused_with_what_would_help(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(Refused) as refused:
        threshold_of(text)
    assert message in refused.value.message
    assert repr(text) in refused.value.message
    assert hint in refused.value.hint


def test_two_thresholds_for_one_metric_are_refused() -> None:
    with pytest.raises(Refused, match="two thresholds for lost"):
        thresholds_of(["lost:0", "lost:+5%"])


def test_crossed_and_held_thresholds_are_in_the_sentence() -> None:
    comparison = compare(QUICK, SLOW, thresholds=["latency_p99_s:+10%", "lost:0"])
    assert comparison.crossed == ["latency_p99_s:+10%"]
    assert comparison.sentence.endswith("Crossed: latency_p99_s:+10%. Held: lost:0.")


def test_groups_that_are_not_repetitions_of_one_experiment_are_named() -> None:
    configs = {"a0": "x", "a1": "x", "a2": "x", "a3": "x", "a4": "x", "b0": "y", "b1": "z", "b2": None}
    comparison = compare(QUICK, SLOW[:3], configs=configs)
    assert comparison.a.one_config
    assert not comparison.b.one_config
    assert any(
        "runs of B are not repetitions of one experiment, but of 2" in note for note in comparison.notes
    )
    assert comparison.data()["b"] == {
        "runs": ["b0", "b1", "b2"],
        "configs": ["y", "z", None],
        "one_config": False,
    }


def test_two_groups_of_the_same_experiment_are_told_to_be_so() -> None:
    configs = {row["run"]: "x" for row in [*QUICK, *SLOW]}
    assert any(
        "repetitions of the same experiment" in note for note in compare(QUICK, SLOW, configs=configs).notes
    )


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], SLOW, "group A has no run"),
        (QUICK, [], "group B has no run"),
        (QUICK, QUICK[:1], "the run a0 is in both groups"),
        ([QUICK[0], QUICK[0]], SLOW, "the run a0 is twice in A"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(
    a: list[dict[str, Any]], b: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        compare(a, b)


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        ("latency_p50_s", 0.0123456, "12.35 ms"),
        ("latency_p50_s", 0.0000042, "4.2 µs"),
        ("latency_p50_s", 2.5, "2.5 s"),
        ("latency_p50_s", 0.0, "0 s"),
        ("latency_p50_s", None, "unknown"),
        ("lost", 3, "3"),
        ("published", 1234567, "1,234,567"),
        ("bytes", 1_500_000, "1.5 MB"),
        ("bytes", 0, "0 B"),
        ("delivered_per_s", 99.5, "99.5/s"),
    ],
)
def test_figures_are_shown_in_a_unit_that_suits_their_size(
    metric: str, value: float | None, shown: str
) -> None:
    assert BY_NAME[metric].show(value) == shown
