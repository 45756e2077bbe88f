"""Decides what a host's time was by the controller's clock, and how wrong that may be; measures nothing.

Offsets were measured now and then. Between two measurements the offset is taken from the line through them,
before the first and after the last it is theirs. The stretches between them are filed under the slices of
time that they touch, so that an event meets only the one or two of its own: an equi-join, however long a run.
A clock that was set by years has wider slices, not more of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

SLICE_S: Final = 10
SLICES_MAX: Final = 10_000  # of a host


class Offsets(NamedTuple):
    """What is known of the clocks of all hosts, as rows of lines look it up."""

    stretches: DataFrame
    ends: DataFrame


def measurements(clocks: DataFrame) -> DataFrame:
    """Each measurement with its place on the host's own clock, and the one after it."""
    placed = clocks.select("run", "host", "offset_s", "error_s", (F.col("at") + F.col("offset_s")).alias("x"))
    order = Window.partitionBy("run", "host").orderBy("x")
    following = [F.lead(name).over(order).alias(f"next_{name}") for name in ("x", "offset_s", "error_s")]
    numbered = F.row_number().over(order).alias("number")
    whole = Window.partitionBy("run", "host")
    span = F.max("x").over(whole) - F.min("x").over(whole)
    width = F.greatest(F.lit(float(SLICE_S)), span / SLICES_MAX).alias("width_s")
    at_once = Window.partitionBy("run", "host", "x").orderBy("error_s", "offset_s")
    best = placed.withColumn("_best", F.row_number().over(at_once)).where("_best = 1").drop("_best")
    return best.select("*", *following, numbered, width)


def slices(measured: DataFrame) -> DataFrame:
    """The stretches between measurements, once for every slice of time that they touch."""
    between = measured.where("next_x IS NOT NULL")
    first, last = (F.floor(F.col(name) / F.col("width_s")) for name in ("x", "next_x"))
    slope = (F.col("next_offset_s") - F.col("offset_s")) / (F.col("next_x") - F.col("x"))
    return between.select(
        "run",
        "host",
        F.explode(F.sequence(first, last)).alias("slice"),
        F.col("x").alias("slice_from"),
        F.col("next_x").alias("slice_until"),
        F.col("offset_s").alias("slice_offset_s"),
        slope.alias("slice_slope"),
        F.greatest("error_s", "next_error_s").alias("slice_error_s"),
    )


def ends(measured: DataFrame) -> DataFrame:
    """The first and the last measurement of each host."""
    first, last = F.col("number") == 1, F.col("next_x").isNull()
    return measured.groupBy("run", "host").agg(
        *(F.max(F.when(first, F.col(name))).alias(f"first_{name}") for name in ("x", "offset_s", "error_s")),
        *(F.max(F.when(last, F.col(name))).alias(f"last_{name}") for name in ("x", "offset_s", "error_s")),
        F.max("width_s").alias("width_s"),
    )


def corrected(
    rows: DataFrame, offsets_: Offsets, time: str, host: str, into: str, error_into: str
) -> DataFrame:
    """The rows with the time corrected; where a host's clock was never measured it stays, without a bound."""
    at = F.col(time)
    # A row without a time looks nothing up.
    keyed = rows.withColumns({"_host": F.when(at.isNotNull(), F.col(host)), "_at": at})
    here = offsets_.stretches.withColumnsRenamed({"run": "_run", "host": "_there"})
    near = offsets_.ends.withColumnsRenamed({"run": "_run", "host": "_there"})
    same_host = (F.col("rows.run") == F.col("side._run")) & (F.col("_host") == F.col("side._there"))
    in_stretch = (
        (F.col("_slice") == F.col("side.slice"))
        & (F.col("_at") >= F.col("side.slice_from"))
        & (F.col("_at") < F.col("side.slice_until"))
    )
    joined = keyed.alias("rows").join(F.broadcast(near.alias("side")), same_host, "left")
    joined = joined.drop("_run", "_there").withColumn("_slice", F.floor(F.col("_at") / F.col("width_s")))
    joined = joined.alias("rows").join(F.broadcast(here.alias("side")), same_host & in_stretch, "left")
    offset, error = _offset()
    named = {into: at - F.coalesce(offset, F.lit(0.0)), error_into: F.when(at.isNotNull(), error)}
    return joined.withColumns(named).select(*rows.columns, into, error_into)


def _offset() -> tuple[Column, Column]:
    within = F.col("slice_offset_s") + F.col("slice_slope") * (F.col("_at") - F.col("slice_from"))
    before = F.col("_at") < F.col("first_x")
    outside = F.when(before, F.col("first_offset_s")).otherwise(F.col("last_offset_s"))
    error = F.when(before, F.col("first_error_s")).otherwise(F.col("last_error_s"))
    return F.coalesce(within, outside), F.coalesce("slice_error_s", error)
