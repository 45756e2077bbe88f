"""Decides what is kept of a line: all that it said, its times by the controller's clock, counted from T0."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from panda_spark.clocks import Offsets, corrected
from panda_spark.schema import (
    AS_READ,
    BAD,
    COMMON,
    FIELDS,
    KINDS,
    LINE,
    LINES,
    NO_LINE,
    OTHER,
    PLACE,
    WHOLE,
)

WITH_TIME: Final = ("publish",)  # kinds whose `time` is by the clock of the publisher's host


def lines(bronze: DataFrame, offsets: Offsets, homes: DataFrame, starts: DataFrame) -> DataFrame:
    """Every line, bad ones too. `homes` says which host a client is on, `starts` the T0 of each run.

    A line stays in one piece until it has met the clocks: eighty columns carried through the joins would make
    code too long to be compiled well.
    """
    said = F.col("line.kind")
    kind = (
        F.when(F.col("reason_bad").isNotNull(), NO_LINE)
        .when(said.isin(*sorted(KINDS)), said)
        .otherwise(OTHER)
    )
    named = bronze.withColumns({"kind": kind, "t_raw": F.col("line.t"), "host": F.col("line.host")})
    timed = corrected(named, offsets, "t_raw", "host", "t", "error_s")
    placed = timed.withColumn("client", F.col("line.client")).join(
        F.broadcast(homes), ["run", "client"], "left"
    )
    published = placed.withColumns(
        {
            "_home": F.coalesce("home", "host"),
            "_time": F.when(F.col("kind").isin(*WITH_TIME), F.col("line.time")),
        }
    )
    both = corrected(published, offsets, "_time", "_home", "time_t", "time_error_s")
    counted = both.join(F.broadcast(starts), "run", "left")
    here = {"at_s": F.col("t") - F.col("t0"), "kind_said": said}
    return counted.select(*(_kept(name, here) for name in LINES.names))


def _kept(name: str, here: dict[str, Column]) -> Column:
    if name in here:
        return here[name].alias(name)
    in_line = name in FIELDS.names or name in ("v", "proc")
    return F.col(f"line.{name}").alias(name) if in_line else F.col(name)


def as_read(lines_: DataFrame) -> DataFrame:
    """Bronze again, out of what was kept of it."""
    as_kept = {new: old for old, new in AS_READ.items()}
    absent = F.lit(None).cast("string")
    said = {name: F.col(as_kept.get(name, name)) for name in (*COMMON.names, *FIELDS.names)}
    fields = [said.get(name, absent).cast(LINE[name].dataType).alias(name) for name in LINE.names]
    line = F.when(F.col("reason_bad").isNull(), F.struct(*fields)).alias("line")
    return lines_.select("run", *PLACE.names, line, *BAD.names).select(*WHOLE.names)


def homes(plans: DataFrame) -> DataFrame:
    """On which host the plan has each broker and client."""
    process = plans.select("run", F.explode("processes").alias("process"))
    named = process.select(
        "run", F.col("process.speaks").alias("client"), F.col("process.host").alias("home")
    )
    return named.where("client <> ''").dropDuplicates(["run", "client"])
