"""Decides what is said of a run in one row."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

VERDICTS: Final = {
    "delivered": "delivered",
    "late": "late",
    "lost": "lost",
    "twice": "twice",
    "out of order": "out_of_order",
    "unexpected": "unexpected",
    "unsettled": "unsettled",
    "unknown": "unknown",
}


def summary(tables: dict[str, DataFrame]) -> DataFrame:
    """A column for each verdict; `expected` are the pairs of which something was asked for and due."""
    runs = tables["runs"]
    whole = runs.select("run", "first_s", "last_s")
    for part in (
        _published(tables["publications"]),
        _verdicts(tables["verdicts"]),
        _latency(tables["latency"]),
        _hops(tables["hops"]),
        _traffic(tables["traffic"]),
        _punctuality(tables["schedule"]),
        _counted(tables["faults"], "faults"),
        _failed(tables["processes"]),
        _counted(tables["quarantine"], "quarantined"),
        _counted(tables["missing"], "missing"),
    ):
        whole = whole.join(part, "run", "left")
    duration = F.col("last_s") - F.least(F.col("first_s"), F.lit(0.0))
    active = F.greatest(F.col("active_s"), F.lit(0.0))
    return whole.select(
        "run",
        *(_zero(name) for name in ("published", "expected")),
        *(_zero(name) for name in VERDICTS.values()),
        "latency_mean_s",
        "latency_p50_s",
        "latency_p95_s",
        "latency_p99_s",
        "latency_max_s",
        "latency_error_s",
        F.when(active > 0, F.col("published") / active).alias("published_per_s"),
        F.when(active > 0, F.col("arrived") / active).alias("delivered_per_s"),
        "hops_mean",
        *(_zero(name) for name in ("records", "bytes")),
        "schedule_p50_s",
        "schedule_p99_s",
        "schedule_max_s",
        *(_zero(name) for name in ("faults", "failed", "quarantined", "missing")),
        duration.alias("duration_s"),
    )


def _published(publications: DataFrame) -> DataFrame:
    span = F.max("published_s") - F.min("published_s")
    return publications.groupBy("run").agg(F.count("*").alias("published"), span.alias("active_s"))


def _verdicts(verdicts: DataFrame) -> DataFrame:
    def of(verdict: str) -> Column:
        return F.sum(F.when(F.col("verdict") == verdict, F.col("count")).otherwise(0))

    counted = verdicts.groupBy("run").agg(*(of(said).alias(f"n_{name}") for said, name in VERDICTS.items()))
    arrived = F.col("n_delivered") + F.col("n_late") + F.col("n_twice") + F.col("n_out_of_order")
    return counted.select(
        "run",
        arrived.alias("arrived"),
        (arrived + F.col("n_lost")).alias("expected"),
        *(F.col(f"n_{name}").alias(name) for name in VERDICTS.values()),
    )


def _latency(latency: DataFrame) -> DataFrame:
    names = ("mean_s", "p50_s", "p95_s", "p99_s", "max_s", "error_s")
    return latency.where("by = 'all'").select(
        "run", *(F.col(name).alias(f"latency_{name}") for name in names)
    )


def _hops(hops: DataFrame) -> DataFrame:
    mean = F.sum(F.col("hops") * F.col("count")) / F.sum("count")
    return hops.groupBy("run").agg(mean.alias("hops_mean"))


def _traffic(traffic: DataFrame) -> DataFrame:
    """What went over links between brokers and to clients, each counted where it left."""
    return traffic.groupBy("run").agg(
        F.sum("records_out").alias("records"), F.sum("bytes_out").alias("bytes")
    )


def _punctuality(schedule: DataFrame) -> DataFrame:
    done = schedule.where("late_s IS NOT NULL AND error IS NULL")
    return done.groupBy("run").agg(
        F.percentile("late_s", 0.5).alias("schedule_p50_s"),
        F.percentile("late_s", 0.99).alias("schedule_p99_s"),
        F.max("late_s").alias("schedule_max_s"),
    )


def _failed(processes: DataFrame) -> DataFrame:
    ended = processes.where("ended_s IS NOT NULL AND NOT coalesce(expected, true)")
    return ended.groupBy("run").agg(F.count_distinct("process").alias("failed"))


def _counted(rows: DataFrame, name: str) -> DataFrame:
    return rows.groupBy("run").agg(F.count("*").alias(name))


def _zero(name: str) -> Column:
    return F.coalesce(name, F.lit(0)).alias(name)
