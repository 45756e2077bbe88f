"""Decides what an event is: a good line with its times by the controller's clock, counted from T0."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panda_spark.clocks import corrected
from panda_spark.schema import EVENTS, KINDS, OTHER

WITH_TIME: Final = ("publish",)  # kinds whose `time` is by the clock of the publisher's host


def events(bronze: DataFrame, clocks: DataFrame, homes: DataFrame, beginnings: DataFrame) -> DataFrame:
    """`homes` says which host a client is on, `beginnings` the T0 of each run."""
    good = bronze.where("reason_bad IS NULL").withColumnsRenamed({"t": "t_raw", "kind": "kind_said"})
    known = F.col("kind_said").isin(*sorted(KINDS))
    named = good.withColumn("kind", F.when(known, F.col("kind_said")).otherwise(OTHER))
    timed = corrected(named, clocks, "t_raw", "host", "t", "error_s")
    placed = timed.join(F.broadcast(homes), ["run", "client"], "left").withColumns(
        {
            "_home": F.coalesce("home", "host"),
            "_time": F.when(F.col("kind").isin(*WITH_TIME), F.col("time")),
        }
    )
    published = corrected(placed, clocks, "_time", "_home", "time_t", "time_error_s")
    counted = published.join(F.broadcast(beginnings), "run", "left")
    return counted.withColumn("at_s", F.col("t") - F.col("t0")).select(*EVENTS.names)


def homes(plans: DataFrame) -> DataFrame:
    """On which host the plan has each broker and client."""
    process = plans.select("run", F.explode("processes").alias("process"))
    named = process.select(
        "run", F.col("process.speaks").alias("client"), F.col("process.host").alias("home")
    )
    return named.where("client <> ''").dropDuplicates(["run", "client"])
