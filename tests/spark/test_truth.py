"""The pipeline finds exactly the truth about generated runs, and agrees with the plain program row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from panda_spark.lake import Lake
from panda_spark.pipeline import Options as Analysis
from panda_spark.pipeline import analyze
from panda_spark.tables import TABLES
from tests.spark.generator import Options, Truth, everything, generate
from tests.spark.generator.strategies import small_options
from tests.spark.plain import analyze as analyze_plainly

Row = Mapping[str, Any]
CLOSE_S = 2e-6  # a rounding of microseconds may fall either way
RUNS_AT_ONCE = 10
SOON_S = 0.02  # between what a schedule says and what is done, clocks included
BACK_S = 1.0  # a process that is started again needs its time


def quiet(stage: str, done: int, of: int) -> None:
    pass


class Analysed:
    """The tables of some runs, as rows."""

    def __init__(self, spark: SparkSession, folder: Path, truths: Sequence[Truth]) -> None:
        self._lake = Lake(spark, str(folder / "tables"))
        self._known = analyze(spark, self._lake, [t.folder for t in truths], Analysis(), quiet).runs
        self._rows: dict[str, list[Row]] = {}

    def rows(self, table: str, run: str) -> list[Row]:
        if table not in self._rows:
            read = self._lake.table(table, TABLES[table], self._known).select(*TABLES[table].names)
            self._rows[table] = [row.asDict(recursive=True) for row in read.collect()]
        return [row for row in self._rows[table] if row["run"] == run]


def agree(analysed: Analysed, truth: Truth, width_s: float) -> None:
    """Every row of the plain program is there, and no other."""
    plain = analyze_plainly([Path(truth.folder)], bucket_s=width_s)
    for table, key in (
        ("publications", ("publication",)),
        ("subscriptions", ("subscription", "subscriber")),
        ("deliveries", ("publication", "subscription", "subscriber")),
        ("verdicts", ("subscriber", "class", "verdict")),
        ("latency", ("by", "key", "bucket_s")),
    ):
        wanted = {_key(row, key): row for row in map(_plain_row, getattr(plain, table))}
        found = {_key(row, key): row for row in analysed.rows(table, truth.run)}
        assert found.keys() == wanted.keys(), table
        for name, row in wanted.items():
            differing = {
                column: (value, found[name][column])
                for column, value in row.items()
                if column in found[name] and not _same(value, found[name][column])
            }
            assert not differing, (table, name, differing)


def _plain_row(row: Any) -> Row:
    return {name.rstrip("_"): value for name, value in row._asdict().items()}


def _key(row: Row, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(round(row[name], 3) if isinstance(row[name], float) else row[name] for name in names)


def _same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=CLOSE_S)
    return a == b


def check(spark: SparkSession, options: Sequence[Options]) -> tuple[Analysed, list[Truth]]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        truths = [generate(each, folder) for each in options]
        analysed = Analysed(spark, folder, truths)
        for truth in truths:
            [run] = analysed.rows("runs", truth.run)
            agree(analysed, truth, run["width_s"])
            facts(analysed, truth)
        return analysed, truths


def found_faults(analysed: Analysed, truth: Truth) -> list[Row]:
    """Without the clients that were killed for good, which the truth does not call faults."""
    brokers = {row["speaks"] for row in analysed.rows("processes", truth.run) if row["role"] == "broker"}
    return [
        row for row in analysed.rows("faults", truth.run) if row["fault"] != "kill" or row["a"] in brokers
    ]


def facts(analysed: Analysed, truth: Truth) -> None:
    """What was planted beside deliveries."""
    bad = Counter(
        (row["file"].partition(f"/{truth.run}/")[2], row["offset"], row["reason"])
        for row in analysed.rows("quarantine", truth.run)
    )
    assert bad == Counter((line.file, line.offset, line.reason) for line in truth.quarantine)
    counted = Counter(row["verdict"] for row in analysed.rows("deliveries", truth.run))
    assert counted == truth.counts()
    due = sorted(truth.faults, key=lambda fault: (fault.fault, fault.a, fault.b, fault.from_s))
    told = sorted(
        (
            (row["fault"], row["a"], row["b"] or "", row["from_s"], row["until_s"])
            for row in found_faults(analysed, truth)
        ),
    )
    assert [row[:3] for row in told] == [(fault.fault, fault.a, fault.b) for fault in due]
    for fault, (*_, from_s, until_s) in zip(due, told, strict=True):
        assert from_s - SOON_S <= fault.from_s <= from_s + SOON_S, fault
        assert until_s - BACK_S <= fault.until_s <= until_s + SOON_S, fault
    assert len(analysed.rows("detections", truth.run)) == len(truth.detections)
    traffic = {f"{row['broker']} {row['peer']}": row for row in analysed.rows("traffic", truth.run)}
    assert traffic.keys() == truth.traffic.keys()
    for name, totals in truth.traffic.items():
        assert {each: traffic[name][each] for each in totals} == totals, name
    load = {row["broker"]: row for row in analysed.rows("load", truth.run)}
    for name, totals in truth.load.items():
        assert {each: load[name][each] for each in totals} == totals, name
    hops: Counter[tuple[str, int]] = Counter()
    for row in analysed.rows("hops", truth.run):
        hops[row["subscriber"], row["hops"]] += row["count"]
    assert hops == truth.hops
    assert {row["host"] for row in analysed.rows("missing", truth.run) if row["what"] == "host"} == {
        host for what, host, _ in truth.missing if what == "host"
    }


def test_everything_that_is_planted_is_found_and_nothing_else(spark: SparkSession) -> None:
    check(spark, [everything(), everything(seed=8, name="zipped", missing_hosts=1, compressed=True)])


@given(st.lists(small_options(), min_size=RUNS_AT_ONCE, max_size=RUNS_AT_ONCE))
@settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_small_runs_of_any_kind_are_told_rightly(spark: SparkSession, options: list[Options]) -> None:
    check(spark, [replace(each, name=f"run-{number}") for number, each in enumerate(options)])
