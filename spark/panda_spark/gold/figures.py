"""Decides what latency, hops and throughput were, over all and by who, where and when."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SHARES: Final = {"p50_s": 0.5, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99}
STEPS_PER_DECADE: Final = 10
BY: Final = ("class", "subscriber", "publisher", "broker")


def arrived(deliveries: DataFrame) -> DataFrame:
    return deliveries.where("latency_s IS NOT NULL AND times > 0")


def latency(deliveries: DataFrame, runs: DataFrame) -> DataFrame:
    """Latencies are whole microseconds, so equal ones are counted before they are ranked: far fewer rows."""
    us = F.round(F.col("latency_s") * 1e6).cast("long").alias("us")
    timed = arrived(deliveries).join(F.broadcast(runs.select("run", "width_s")), "run")
    bucket = F.floor(F.col("published_s") / F.col("width_s")) * F.col("width_s")
    keyed = timed.select("run", *BY, bucket.alias("bucket_s"), us, "error_s")
    groups = F.array(
        _group("all", F.lit("")),
        *(_group(name, F.coalesce(name, F.lit(""))) for name in BY),
        _group("time", F.lit(""), F.col("bucket_s")),
    )
    spread = keyed.select("run", F.explode(groups).alias("group"), "us", "error_s").select(
        "run", "group.*", "us", "error_s"
    )
    counted = spread.groupBy("run", "by", "key", "at", "us").agg(
        F.count("*").alias("n"), F.max("error_s").alias("error_s")
    )
    cuts = F.percentile("us", F.array(*(F.lit(share) for share in SHARES.values())), F.col("n"))
    ranked = counted.groupBy("run", "by", "key", "at").agg(
        F.sum("n").alias("count"),
        (F.sum(F.col("us") * F.col("n")) / F.sum("n") / 1e6).alias("mean_s"),
        (F.min("us") / 1e6).alias("min_s"),
        cuts.alias("cuts"),
        (F.max("us") / 1e6).alias("max_s"),
        F.max("error_s").alias("error_s"),
    )
    return ranked.select(
        "run",
        "by",
        "key",
        F.col("at").alias("bucket_s"),
        "count",
        "mean_s",
        "min_s",
        *((F.get("cuts", F.lit(place)) / 1e6).alias(name) for place, name in enumerate(SHARES)),
        "max_s",
        "error_s",
    )


def _group(by: str, key: Column, at: Column | None = None) -> Column:
    nowhere = F.lit(None).cast("double")
    return F.struct(F.lit(by).alias("by"), key.alias("key"), (nowhere if at is None else at).alias("at"))


def histogram(deliveries: DataFrame) -> DataFrame:
    """Counts in steps of a tenth of a decade; what clocks make zero or less is in the lowest."""
    at_least = F.greatest("latency_s", F.lit(1e-6))
    step = F.floor(F.log10(at_least) * STEPS_PER_DECADE).cast("long")
    counted = arrived(deliveries).groupBy("run", step.alias("step")).agg(F.count("*").alias("count"))
    return counted.select(
        "run",
        F.pow(F.lit(10.0), F.col("step") / STEPS_PER_DECADE).alias("lower_s"),
        F.pow(F.lit(10.0), (F.col("step") + 1) / STEPS_PER_DECADE).alias("upper_s"),
        "count",
    )


def hops(deliveries: DataFrame) -> DataFrame:
    return (
        deliveries.where("times > 0 AND hops IS NOT NULL")
        .groupBy("run", "subscriber", "hops")
        .agg(F.count("*").alias("count"))
    )


def throughput(publications: DataFrame, deliveries: DataFrame, runs: DataFrame) -> DataFrame:
    """How much was published and delivered in each bucket of the run, also where that is nothing."""
    widths = runs.select("run", "width_s")

    def counted(rows: DataFrame, at: str, name: str) -> DataFrame:
        timed = rows.where(F.col(at).isNotNull()).join(F.broadcast(widths), "run")
        number = F.floor(F.col(at) / F.col("width_s")).alias("number")
        return timed.groupBy("run", number).agg(F.count("*").alias(name))

    published = counted(publications, "published_s", "published")
    delivered = counted(deliveries.where("times > 0"), "delivered_s", "delivered")
    first, last = (F.floor(F.col(name) / F.col("width_s")) for name in ("first_s", "last_s"))
    every = runs.select(
        "run", "width_s", F.explode(F.sequence(F.least(first, F.lit(0)), last)).alias("number")
    )
    whole = every.join(published, ["run", "number"], "left").join(delivered, ["run", "number"], "left")
    return whole.select(
        "run",
        (F.col("number") * F.col("width_s")).alias("bucket_s"),
        "width_s",
        *(F.coalesce(name, F.lit(0)).alias(name) for name in ("published", "delivered")),
    )


def detections(events: DataFrame, starts: DataFrame) -> DataFrame:
    """What composite subscriptions detected, by the clients' own lines."""
    own = events.where("kind = 'detect' AND latency_s IS NOT NULL")
    return own.join(F.broadcast(starts), "run").select(
        "run",
        F.col("id").alias("detection"),
        "subscription",
        F.col("client").alias("subscriber"),
        "at_s",
        F.coalesce(F.size("events"), F.lit(0)).cast("long").alias("events"),
        "latency_s",
    )
