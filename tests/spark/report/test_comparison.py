"""The report of two groups of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from panda_spark import report
from panda_spark.report import ComparisonData
from panda_spark.report.comparison import intervals, judged
from panda_spark.report.figure import Absent, Figure
from panda_spark.report.sentences import comparison_sentence
from tests.spark.report import runs
from tests.spark.report.markup import assert_inert


def test_a_comparison_has_sentence_intervals_runs_and_latencies(tmp_path: Path) -> None:
    text = report.write_comparison(runs.comparison(), tmp_path).read_text()
    assert "B differs from A by more than chance explains in latency_p50_s +25 %" in text
    assert "1 threshold crossed: latency_p50_s" in text
    names = {file.stem for file in (tmp_path / "figures").glob("*.png")}
    assert {"intervals", "latencies", "runs-latency_p50_s", "runs-delivered_per_s"} <= names
    assert json.loads((tmp_path / "figures" / "intervals.json").read_text())["datasets"]["rows"]


def test_the_callers_sentence_and_notes_go_before_ours(tmp_path: Path) -> None:
    given = runs.comparison()
    data = ComparisonData(given.name, given.metrics, sentence="B is slower.", notes=["One run only."])
    text = report.write_comparison(data, tmp_path).read_text()
    assert "B is slower." in text
    assert "One run only." in text


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"significant": True, "difference": 1.0, "better": "lower"}, "worse"),
        ({"significant": True, "difference": -1.0, "better": "lower"}, "better"),
        ({"significant": True, "difference": 1.0, "better": "higher"}, "better"),
        ({"significant": True, "difference": -1.0, "better": "higher"}, "worse"),
        ({"significant": True, "difference": 1.0, "better": ""}, "different"),
        ({"significant": False, "difference": 1.0, "better": "lower"}, "chance"),
        ({"significant": None, "difference": None, "better": "lower"}, "chance"),
    ],
)
def test_only_what_chance_does_not_explain_is_better_or_worse(row: dict[str, object], verdict: str) -> None:
    assert judged(row) == verdict


def test_an_interval_is_drawn_as_a_part_of_a_and_a_huge_one_at_the_edge() -> None:
    row: dict[str, object] = {"metric": "lost", "difference_share": 400.0, "a_mean": 1.0}
    row |= {"difference_low": 300.0, "difference_high": 500.0}
    figure = intervals(ComparisonData("x", [*runs.comparison().metrics[:1], row]))
    assert isinstance(figure, Figure)
    assert figure.rows[0]["low"] == pytest.approx(0.21)
    assert figure.rows[1]["high"] == 10.0


def test_nothing_to_compare_is_said(tmp_path: Path) -> None:
    empty = ComparisonData("", [])
    assert comparison_sentence(empty) == "There is nothing to compare: no metric is known of both groups."
    assert isinstance(intervals(empty), Absent)
    assert "Not shown:" in report.write_comparison(empty, tmp_path).read_text()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    row = {"metric": runs.HOSTILE, "difference_share": 0.1, "method": runs.HOSTILE, "threshold": runs.HOSTILE}
    assert_inert(report.write_comparison(ComparisonData(runs.HOSTILE, [row], notes=[runs.HOSTILE]), tmp_path))
