"""What a host wrote is corrected by the offsets that were measured; a bound says how wrong that may be."""

from __future__ import annotations

import math
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from panda_spark.clocks import SLICES_MAX, Offsets, corrected, ends, measurements, slices
from panda_spark.schema import CLOCK, TEXT, struct
from tests.spark.plain.reading import Clock

CLOCKS = StructType([StructField("run", TEXT), *CLOCK.fields])
Measured = list[tuple[str, str, float, float, float]]
MOMENT = 1_795_000_000.0
EXACT_S = 1e-6

# Host, and what was measured of it: when, by how much it is ahead, how wrong that may be.
HOSTS: dict[str, list[tuple[float, float, float]]] = {
    "never": [],
    "once": [(MOMENT, 0.25, 0.001)],
    "steady": [(MOMENT + 7 * n, 0.5 + 1e-4 * n, 0.001 * (n % 5 + 1)) for n in range(20)],
    "behind": [(MOMENT, -3600.0, 0.01), (MOMENT + 300, -3599.0, 0.02)],
    "far ahead": [(MOMENT, 4e9, 0.01), (MOMENT + 60, 4e9 + 1, 0.02)],
    "set by years": [(MOMENT, -MOMENT + 100, 0.01), (MOMENT + 10, 0.0, 0.02), (MOMENT + 20, 0.001, 0.03)],
    "at one time": [(MOMENT, 0.1, 0.001), (MOMENT, 0.1, 0.001), (MOMENT + 5, 0.2, 0.001)],
}


def moments(host: str) -> list[float]:
    """Times of the host's own around and between its measurements, and on them."""
    own = sorted(at + offset for at, offset, _ in HOSTS[host]) or [MOMENT]
    random = Random(host)
    between = [random.uniform(own[0], own[-1]) for _ in range(20)]
    return [own[0] - 1e5, own[0] - 1e-3, *own, *between, own[-1] + 1e-3, own[-1] + 1e5]


def offsets(clocks: DataFrame) -> Offsets:
    measured = measurements(clocks)
    return Offsets(slices(measured), ends(measured))


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[tuple[str, float], tuple[float, float | None]]:
    measured: Measured = [("r", host, *each) for host, all_ in HOSTS.items() for each in all_]
    other: Measured = [
        ("another", host, MOMENT, 77.0, 7.0) for host in HOSTS
    ]  # of the same hosts, another run's
    clocks = spark.createDataFrame([*measured, *other], CLOCKS)
    rows = [("r", host, at) for host in HOSTS for at in moments(host)]
    frame = spark.createDataFrame(rows, "run string, host string, t_raw double")
    answer = corrected(frame, offsets(clocks), "t_raw", "host", "t", "error_s")
    assert answer.columns == ["run", "host", "t_raw", "t", "error_s"]
    given = answer.collect()
    assert len(given) == len(rows)
    return {(row.host, row.t_raw): (row.t, row.error_s) for row in given}


Found = dict[tuple[str, float], tuple[float, float | None]]


@pytest.mark.parametrize("host", HOSTS)
def test_times_are_those_of_the_plain_program(found: Found, host: str) -> None:
    clock = Clock([(at + offset, offset, error) for at, offset, error in HOSTS[host]])
    for at in moments(host):
        offset, error = clock.at(at)
        t, bound = found[host, at]
        assert math.isclose(t, at - offset, abs_tol=EXACT_S)
        assert bound == error


def test_a_clock_that_was_never_measured_is_taken_as_it_is_without_a_bound(found: Found) -> None:
    for at in moments("never"):
        assert found["never", at] == (at, None)


def test_before_the_first_and_after_the_last_measurement_the_offset_is_theirs(found: Found) -> None:
    first, last = HOSTS["behind"]
    own = moments("behind")
    assert found["behind", own[0]] == (own[0] + 3600.0, first[2])
    assert found["behind", own[-1]] == (own[-1] + 3599.0, last[2])


def test_a_row_without_a_time_or_host_stays_and_gets_none(spark: SparkSession) -> None:
    clocks = spark.createDataFrame([("r", "h", MOMENT, 0.5, 0.001)], CLOCKS)
    rows = [("r", "h", None), ("r", None, MOMENT), (None, "h", MOMENT)]
    frame = spark.createDataFrame(rows, "run string, host string, t_raw double")
    answer = corrected(frame, offsets(clocks), "t_raw", "host", "t", "error_s").collect()
    assert sorted((row.t, row.error_s) for row in answer if row.t is not None) == [(MOMENT, None)] * 2
    assert [(row.t, row.error_s) for row in answer if row.t is None] == [(None, None)]


def test_a_clock_that_was_set_by_years_makes_no_more_slices_than_others(spark: SparkSession) -> None:
    clocks = spark.createDataFrame([("r", "set by years", *each) for each in HOSTS["set by years"]], CLOCKS)
    assert slices(measurements(clocks)).count() <= SLICES_MAX + len(HOSTS["set by years"])


def test_of_measurements_at_one_time_the_best_counts(spark: SparkSession) -> None:
    said = [("r", "h", MOMENT, 0.5, 0.009), ("r", "h", MOMENT + 0.25, 0.25, 0.001)]
    clocks = spark.createDataFrame(
        [*said, *reversed(said)], struct(run=TEXT, **{f.name: f.dataType for f in CLOCK})
    )
    (row,) = measurements(clocks).collect()
    assert (row.offset_s, row.error_s) == (0.25, 0.001)
