"""The plain program finds exactly the truth about generated runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings

from broker_runtime.language import parse_subscription
from tests.spark.generator import Options, Pair, Truth, everything, generate, large
from tests.spark.generator.strategies import small_options
from tests.spark.plain import analyze
from tests.spark.plain.reading import Clock
from tests.spark.plain.rows import Delivery, Tables, percentile

ROUNDED_S = 1e-5


def compare(options: Options, truth: Truth, found: Tables) -> None:
    assert len(found.publications) == truth.publications
    assert len(found.subscriptions) == truth.subscriptions
    assert Counter({tuple(row[1:-1]): row.count for row in found.verdicts}) == truth.verdicts
    due = {(pair.publication, pair.subscription, pair.subscriber): pair for pair in truth.pairs}
    rows = {(row.publication, row.subscription, row.subscriber): row for row in found.deliveries}
    assert len(due) == len(truth.pairs)
    assert len(rows) == len(found.deliveries)
    assert due.keys() == rows.keys()
    for key, pair in due.items():
        compare_pair(options, pair, rows[key])


def compare_pair(options: Options, pair: Pair, row: Delivery) -> None:
    said = (row.verdict, row.times, row.publisher, row.class_, row.hops, row.in_order, row.late)
    assert said == (
        pair.verdict,
        pair.times,
        pair.publisher,
        pair.class_,
        pair.hops,
        pair.in_order,
        pair.late,
    ), (pair, row)
    assert (row.latency_s is None) == (pair.latency_s is None)
    if row.latency_s is not None and pair.latency_s is not None and row.error_s is not None:
        drifted_s = 2 * options.drift * pair.latency_s  # which on one host nothing corrects
        assert abs(row.latency_s - pair.latency_s) <= row.error_s + drifted_s + ROUNDED_S


@given(small_options())
@settings(max_examples=60)
@example(everything(publications=600))
@example(everything(publications=600, missing_hosts=1, compressed=True))
@example(Options(publishers=0, subscribers=0))
@example(Options(brokers=0, publishers=0, subscribers=0))
def test_the_plain_program_finds_what_was_planted_and_nothing_else(options: Options) -> None:
    with TemporaryDirectory() as folder:
        truth = generate(options, Path(folder))
        found = analyze([Path(truth.folder)])
    compare(options, truth, found)


def test_everything_that_can_be_planted_is_found(tmp_path: Path) -> None:
    options = everything()
    truth = generate(options, tmp_path)
    found = analyze([Path(truth.folder)])
    compare(options, truth, found)
    wanted = {"delivered", "late", "out of order", "twice", "lost", "unexpected", "unsettled"}
    assert {row.verdict for row in found.deliveries} == wanted
    verdicts = {(row.publication, row.subscriber): row.verdict for row in found.deliveries}
    for kind, verdict in (
        ("losses", "lost"),
        ("duplicates", "twice"),
        ("reorderings", "out of order"),
        ("unexpected", "unexpected"),
        ("strangers", "unexpected"),
    ):
        planted = truth.planted[kind]
        assert len(planted) == getattr(options, kind)
        assert {verdicts[each] for each in planted} == {verdict}


def test_what_went_to_or_came_from_a_lost_host_is_unknown(tmp_path: Path) -> None:
    options = everything(missing_hosts=2, publications=900)
    truth = generate(options, tmp_path)
    found = analyze([Path(truth.folder)])
    compare(options, truth, found)
    assert {row.verdict for row in found.deliveries} >= {"unknown", "delivered"}


def test_a_truth_of_counts_only_agrees_with_one_of_rows(tmp_path: Path) -> None:
    options = large(20_000)
    truth = generate(options, tmp_path)
    found = analyze([Path(truth.folder)])
    assert not truth.pairs
    assert Counter({tuple(row[1:-1]): row.count for row in found.verdicts}) == truth.verdicts
    (everybody,) = [row for row in found.latency if row.by == "all"]
    assert everybody.count == truth.latencies
    assert everybody.mean_s * everybody.count == pytest.approx(
        truth.latency_sum_s, abs=truth.latencies * 2e-3
    )


def test_a_registered_operator_is_not_judged_and_loses_nothing(tmp_path: Path) -> None:
    options = Options(unjudged=3, publications=300, losses=5, subscribers=3)
    truth = generate(options, tmp_path)
    found = analyze([Path(truth.folder)])
    compare(options, truth, found)
    unjudged = {row.subscription for row in found.subscriptions if not row.judged}
    assert len(unjudged) == 3
    mine = [row for row in found.deliveries if row.subscription in unjudged]
    assert mine
    assert all(row.times > 0 for row in mine)


def test_subscriptions_are_listed_with_what_they_asked_and_when(tmp_path: Path) -> None:
    options = Options(publications=100, starting=1, ending=1)
    truth = generate(options, tmp_path)
    found = analyze([Path(truth.folder)])
    last_s = max(row.published_s for row in found.publications)
    assert sum(row.from_s > options.settle_s + 1.5 for row in found.subscriptions) == 1
    assert sum(row.until_s < last_s for row in found.subscriptions) == 1
    for row in found.subscriptions:
        parse_subscription(row.text)
        assert row.judged
        assert row.why is None
        assert row.broker is not None


def test_several_runs_stay_apart(tmp_path: Path) -> None:
    truths = [generate(Options(seed=seed, publications=40), tmp_path) for seed in (1, 2)]
    found = analyze([Path(truth.folder) for truth in truths])
    for truth in truths:
        counted = Counter({tuple(row[1:-1]): row.count for row in found.verdicts if row.run == truth.run})
        assert counted == truth.verdicts


def test_latency_has_a_row_for_everybody_and_every_key(tmp_path: Path) -> None:
    truth = generate(Options(publications=200), tmp_path)
    found = analyze([Path(truth.folder)])
    rows = [row for row in found.deliveries if row.latency_s is not None]
    for by in ("class", "subscriber", "publisher", "broker", "time"):
        assert sum(row.count for row in found.latency if row.by == by) == len(rows)
    (everybody,) = [row for row in found.latency if row.by == "all"]
    values = [row.latency_s for row in rows if row.latency_s is not None]
    wanted = np.percentile(values, [50, 90, 95, 99])
    said = (everybody.p50_s, everybody.p90_s, everybody.p95_s, everybody.p99_s)
    assert said == pytest.approx(wanted, abs=1e-9)


def test_percentiles_are_those_of_numpy() -> None:
    values = sorted([3.0, 1.0, 4.0, 1.5, 9.0])
    for share in (0.0, 0.1, 0.5, 0.9, 0.99, 1.0):
        assert percentile(values, share) == pytest.approx(float(np.percentile(values, 100 * share)))


def test_a_clock_is_interpolated_between_measurements_and_held_outside() -> None:
    clock = Clock([(20.0, 3.0, 0.2), (10.0, 1.0, 0.1)])
    assert clock.at(15.0) == pytest.approx((2.0, 0.2))
    assert clock.at(5.0) == (1.0, 0.1)
    assert clock.at(30.0) == (3.0, 0.2)
    assert Clock([]).at(5.0) == (0.0, None)


def test_the_program_writes_a_line_for_every_row(tmp_path: Path) -> None:
    truth = generate(Options(publications=30), tmp_path)
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "tests.spark.plain", truth.folder, "--out", str(out)]
    subprocess.run(command, check=True, timeout=60, cwd=Path(__file__).parents[2])
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {row["table"] for row in rows} == set(Tables._fields)
    deliveries = [row for row in rows if row["table"] == "deliveries"]
    assert len(deliveries) == len(truth.pairs)
    assert all("class" in row for row in deliveries)
