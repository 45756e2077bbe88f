"""Decides how much brokers had to do: traffic by neighbour, load in all and over time, and how evenly."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

TRAFFIC: Final = ("records_in", "records_out", "bytes_in", "bytes_out", "dropped")
TOTALS: Final = ("publications", "unwanted", "matchings", "queueing_s", "matching_s", "cpu_s")
METRICS: Final = {"publications": "publications", "records": "records", "bytes": "bytes", "cpu_s": "cpu_s"}


def traffic(events: DataFrame) -> DataFrame:
    """A session counts from its beginning: where a count falls, another session has begun."""
    counts = events.where("kind = 'counts'")
    order = Window.partitionBy("run", "proc", "peer").orderBy("t_raw", "block", "row")
    following = [F.lead(name).over(order) < F.col(name) for name in TRAFFIC[:4]]
    last = F.lead("t").over(order).isNull() | _any(following)
    return (
        counts.withColumn("last", last)
        .where("last")
        .groupBy("run", F.col("proc").alias("broker"), "peer")
        .agg(
            F.max("role").alias("role"),
            F.count("*").alias("sessions"),
            *(F.sum(F.coalesce(name, F.lit(0))).alias(name) for name in TRAFFIC),
        )
        .select("run", "broker", "peer", "role", "sessions", *TRAFFIC)
    )


def samples(events: DataFrame) -> DataFrame:
    """What each broker said of itself, as rates and means since it last did."""
    told = events.where("kind = 'load'")
    order = Window.partitionBy("run", "proc").orderBy("t_raw", "block", "row")
    span = F.col("t") - F.lag("t").over(order)

    def since(name: str) -> Column:
        before = F.lag(name).over(order)
        return F.when(F.col(name) >= before, F.col(name) - before).otherwise(F.col(name))

    grown = told.withColumns({"span_s": span, **{f"d_{name}": since(name) for name in TOTALS}})
    rate = F.when(F.col("span_s") > 0, F.col("span_s"))
    return grown.select(
        "run",
        F.col("proc").alias("broker"),
        "at_s",
        (F.col("d_publications") / rate).alias("publications_per_s"),
        (F.col("d_unwanted") / rate).alias("unwanted_per_s"),
        "subscriptions",
        "advertisements",
        "queue_length",
        _mean("d_queueing_s", "d_publications", 1e3).alias("queueing_ms"),
        _mean("d_matching_s", "d_matchings", 1e6).alias("matching_us"),
        "memory_bytes",
        (F.col("d_cpu_s") / rate).alias("cpu_share"),
    )


def load(events: DataFrame, traffic_: DataFrame, processes: DataFrame) -> DataFrame:
    """What each broker did in all its lives."""
    brokers = (
        processes.where("role = 'broker'")
        .groupBy("run", F.col("speaks").alias("broker"))
        .agg(F.max("host").alias("host"))
    )
    told = events.where("kind = 'load'")
    order = Window.partitionBy("run", "proc").orderBy("t_raw", "block", "row")
    last = F.lead("t").over(order).isNull() | (F.lead("publications").over(order) < F.col("publications"))
    totals = (
        told.withColumn("last", last)
        .groupBy("run", F.col("proc").alias("broker"))
        .agg(
            *(F.sum(F.when(F.col("last"), F.col(name))).alias(name) for name in TOTALS),
            F.max("subscriptions").alias("subscriptions_max"),
            F.max("advertisements").alias("advertisements_max"),
            F.max("memory_bytes").alias("memory_max_bytes"),
        )
    )
    moved = traffic_.groupBy("run", "broker").agg(*(F.sum(name).alias(name) for name in TRAFFIC[:4]))
    whole = brokers.join(totals, ["run", "broker"], "left").join(moved, ["run", "broker"], "left")
    records = F.coalesce(F.col("records_in") + F.col("records_out"), F.lit(0))
    all_records = F.sum(records).over(Window.partitionBy("run"))
    return whole.select(
        "run",
        "broker",
        "host",
        "publications",
        "unwanted",
        *TRAFFIC[:4],
        _mean("matching_s", "matchings", 1e6).alias("matching_us"),
        _mean("queueing_s", "publications", 1e3).alias("queueing_ms"),
        "subscriptions_max",
        "advertisements_max",
        "memory_max_bytes",
        "cpu_s",
        F.when(all_records > 0, records / all_records).alias("share"),
    )


def spread(load_: DataFrame) -> DataFrame:
    """How unevenly the brokers were loaded: 0 when all alike, in `cv` and `gini`."""
    told = load_.withColumns(
        {
            "records": (F.col("records_in") + F.col("records_out")).cast("double"),
            "bytes": (F.col("bytes_in") + F.col("bytes_out")).cast("double"),
            "publications": F.col("publications").cast("double"),
        }
    )
    long = told.unpivot(["run", "broker"], list(METRICS), "metric", "value").where("value IS NOT NULL")
    rank = F.row_number().over(Window.partitionBy("run", "metric").orderBy("value", "broker"))
    summed = (
        long.withColumn("rank", rank)
        .groupBy("run", "metric")
        .agg(
            F.count("*").alias("brokers"),
            F.avg("value").alias("mean"),
            F.min("value").alias("min"),
            F.max("value").alias("max"),
            F.stddev_pop("value").alias("deviation"),
            F.sum(F.col("rank") * F.col("value")).alias("weighted"),
            F.sum("value").alias("total"),
        )
    )
    some = F.col("total") > 0
    gini = 2 * F.col("weighted") / (F.col("brokers") * F.col("total")) - (F.col("brokers") + 1) / F.col(
        "brokers"
    )
    return summed.select(
        "run",
        "metric",
        "brokers",
        "mean",
        "min",
        "max",
        F.when(some, F.col("deviation") / F.col("mean")).alias("cv"),
        F.when(some, F.col("max") / F.col("mean")).alias("peak"),
        F.when(some, gini).alias("gini"),
    )


def _mean(total: str, count: str, scale: float) -> Column:
    return F.when(F.col(count) > 0, F.col(total) / F.col(count) * scale)


def _any(conditions: list[Column]) -> Column:
    result = F.lit(False)
    for condition in conditions:
        result = result | F.coalesce(condition, F.lit(False))
    return result
