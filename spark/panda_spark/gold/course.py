"""Decides how a run went: processes, links, clocks, steps and marks, by what plan, agents and brokers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from panda_spark.clocks import Offsets, corrected
from panda_spark.schema import TEXT, struct

WIDTHS_S: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
BUCKETS_MAX: Final = 300


def agent_events(agents: DataFrame, offsets: Offsets) -> DataFrame:
    """What the agents did, by the controller's clock; `shift_s` is what was added to an agent's times."""
    timed = corrected(agents.withColumnRenamed("t", "t_raw"), offsets, "t_raw", "host", "t", "clock_error_s")
    return timed.withColumn("shift_s", F.col("t") - F.col("t_raw"))


def beginnings(plans: DataFrame, controllers: DataFrame) -> DataFrame:
    """When the phase 2 of every run began, null if it never did, and when its controller did."""
    told = controllers.groupBy("run").agg(
        F.max(F.when(F.col("kind") == "go", F.col("t0"))).alias("go"), F.min("t").alias("begun")
    )
    return plans.select("run").join(told, "run", "left")


def starts(begun: DataFrame, times: DataFrame | None) -> DataFrame:
    """T0 of every run: when phase 2 began, or, if it never did, the first thing that was written."""
    if times is None:
        return begun.select("run", F.coalesce("go", "begun", F.lit(0.0)).alias("t0"))
    wrote = times.groupBy("run").agg(F.min("t").alias("first"))
    whole = begun.join(wrote, "run", "left")
    return whole.select("run", F.coalesce("go", "first", "begun", F.lit(0.0)).alias("t0"))


def runs(
    plans: DataFrame, versions: DataFrame, configurations: DataFrame, events: DataFrame, starts_: DataFrame
) -> DataFrame:
    spans = events.groupBy("run").agg(F.min("at_s").alias("first_s"), F.max("at_s").alias("last_s"))
    brokers = F.size(F.filter("processes", lambda each: each["word"] == "broker"))
    clients = F.size(F.filter("processes", lambda each: (each["speaks"] != "") & (each["word"] != "broker")))
    whole = (
        plans.join(versions, "run", "left")
        .join(configurations, "run", "left")
        .join(spans, "run", "left")
        .join(starts_, "run")
    )
    return whole.select(
        "run",
        "name",
        F.coalesce("config", F.lit("")).alias("config"),
        "t0",
        F.coalesce("first_s", F.lit(0.0)).alias("first_s"),
        F.coalesce("last_s", F.lit(0.0)).alias("last_s"),
        width().alias("width_s"),
        _number(F.size("hosts")).alias("hosts"),
        _number(brokers).alias("brokers"),
        _number(clients).alias("clients"),
        _number(F.size("links")).alias("links"),
        "panda",
        "python",
    )


def _number(size: Column) -> Column:
    """Of a plan that says nothing of them, none."""
    return F.greatest(size, F.lit(0)).cast("long")


def width() -> Column:
    """How long a bucket of the run's figures is, so that they have no more than a picture can show."""
    span = F.coalesce(F.col("last_s") - F.least(F.col("first_s"), F.lit(0.0)), F.lit(0.0))
    result = F.when(span <= WIDTHS_S[0] * BUCKETS_MAX, F.lit(float(WIDTHS_S[0])))
    for wide in WIDTHS_S[1:]:
        result = result.when(span <= wide * BUCKETS_MAX, F.lit(float(wide)))
    return result.otherwise(span / BUCKETS_MAX)  # one line with a mad time makes no more buckets


def logged(spark: SparkSession, logs: Sequence[tuple[str, str, str]]) -> DataFrame:
    """Whose log came home: run, folder of the host, process."""
    return spark.createDataFrame(list(logs), struct(run=TEXT, folder=TEXT, process=TEXT)).distinct()


def processes(
    plans: DataFrame, agents: DataFrame, logged_: DataFrame, folder: Column, starts_: DataFrame
) -> DataFrame:
    """Each life of each process; one that never began has one row and no times."""
    planned = plans.select("run", F.explode("processes").alias("each")).select(
        "run",
        F.col("each.id").alias("process"),
        F.col("each.speaks").alias("speaks"),
        F.col("each.host").alias("host"),
        F.col("each.word").alias("word"),
        F.when(F.col("each.word") == "broker", "broker")
        .when(F.col("each.kind") == "runtime", "client")
        .otherwise("command")
        .alias("role"),
    )
    lives = Window.partitionBy("run", "process").orderBy("seq")
    begun = F.sum(F.when(F.col("kind") == "started", 1).otherwise(0)).over(lives)
    numbered = agents.where("process IS NOT NULL AND kind IN ('started', 'ready', 'exited')").withColumn(
        "life", begun
    )

    def when(kind: str, name: str) -> Column:
        return F.min(F.when(F.col("kind") == kind, F.col(name)))

    lived = (
        numbered.where("life > 0")
        .groupBy("run", "process", "life")
        .agg(
            when("started", "t").alias("started_t"),
            when("ready", "t").alias("ready_t"),
            when("exited", "t").alias("ended_t"),
            when("exited", "code").alias("code"),
            when("exited", "signal").alias("signal"),
            F.bool_and(F.when(F.col("kind") == "exited", F.col("expected"))).alias("expected"),
        )
    )
    home = logged_.withColumn("logged", F.lit(True))
    whole = (
        planned.withColumn("folder", folder)
        .join(lived, ["run", "process"], "left")
        .join(home, ["run", "folder", "process"], "left")
        .join(starts_, "run")
    )
    return whole.select(
        "run",
        "process",
        "speaks",
        "host",
        "role",
        "word",
        F.coalesce("life", F.lit(0)).cast("long").alias("life"),
        *((F.col(f"{name}_t") - F.col("t0")).alias(f"{name}_s") for name in ("started", "ready", "ended")),
        "code",
        "signal",
        "expected",
        F.coalesce("logged", F.lit(False)).alias("logged"),
    )


def clocks(read: DataFrame, starts_: DataFrame) -> DataFrame:
    order = Window.partitionBy("run", "host").orderBy("at")
    gained = F.col("offset_s") - F.lag("offset_s").over(order)
    return read.join(starts_, "run").select(
        "run",
        "host",
        F.col("at").alias("t"),
        (F.col("at") - F.col("t0")).alias("at_s"),
        "offset_s",
        "error_s",
        (gained / (F.col("at") - F.lag("at").over(order))).alias("drift"),
    )


def schedule(plans: DataFrame, agents: DataFrame, starts_: DataFrame) -> DataFrame:
    """Every step that was planned or done, with both times."""
    steps = plans.select("run", F.explode("steps").alias("step")).select("run", "step.*")
    planned = steps.select(
        "run", "number", "line", "text", F.col("at_s").alias("said_s"), "action", "process"
    )
    done = agents.where("kind = 'done' AND number > 0").select(
        "run",
        "host",
        "number",
        F.col("action").alias("did"),
        F.col("process").alias("with"),
        F.coalesce("lease", F.lit(False)).alias("lease"),
        (F.col("planned") + F.col("shift_s")).alias("planned_t"),
        (F.col("actual") + F.col("shift_s")).alias("actual_t"),
        F.col("clock_error_s").alias("error_s"),
        "error",
    )
    whole = planned.join(done, ["run", "number"], "full").join(starts_, "run")
    planned_s = F.coalesce(F.col("planned_t") - F.col("t0"), F.col("said_s"))
    return whole.select(
        "run",
        "number",
        "line",
        F.coalesce("did", "action").alias("action"),
        F.coalesce("with", "process").alias("process"),
        "host",
        "text",
        F.coalesce("lease", F.lit(False)).alias("lease"),
        planned_s.alias("planned_s"),
        (F.col("actual_t") - F.col("t0")).alias("actual_s"),
        F.when(F.coalesce("said_s", planned_s) > 0, F.col("actual_t") - F.col("planned_t")).alias("late_s"),
        "error_s",
        "error",
    )


def marks(agents: DataFrame, starts_: DataFrame) -> DataFrame:
    return (
        agents.where("kind = 'mark'")
        .join(starts_, "run")
        .select("run", (F.col("t") - F.col("t0")).alias("at_s"), F.coalesce("text", F.lit("")).alias("text"))
    )


def links(events: DataFrame) -> DataFrame:
    """When the links between brokers were up at both ends, and when not."""
    told = events.where("kind IN ('link_up', 'link_down')").select(
        "run",
        F.least("proc", "peer").alias("a"),
        F.greatest("proc", "peer").alias("b"),
        (F.col("proc") < F.col("peer")).alias("by_a"),
        (F.col("kind") == "link_up").alias("up"),
        "at_s",
        "reason",
        "block",
        "row",
    )
    order = Window.partitionBy("run", "a", "b").orderBy("at_s", "block", "row")
    so_far = order.rowsBetween(Window.unboundedPreceding, 0)
    at_a = F.last(F.when(F.col("by_a"), F.col("up")), True).over(so_far)
    at_b = F.last(F.when(~F.col("by_a"), F.col("up")), True).over(so_far)
    both = told.withColumn("state", F.when(F.coalesce(at_a & at_b, F.lit(False)), "up").otherwise("down"))
    before = F.lag("state").over(order)
    turns = both.withColumn("before", before).where(
        (F.col("before").isNull() & (F.col("state") == "up")) | (F.col("before") != F.col("state"))
    )
    return turns.select(
        "run",
        "a",
        "b",
        F.col("at_s").alias("from_s"),
        F.lead("at_s").over(order).alias("until_s"),
        "state",
        F.when(F.col("state") == "down", F.col("reason")).alias("reason"),
    )


def missing(processes_: DataFrame) -> DataFrame:
    """What should have come home: the log of everything of ours that began, on every host of the plan."""
    ours = processes_.where("role IN ('broker', 'client') AND word <> 'client'")
    each = ours.groupBy("run", "host", "process").agg(F.max("logged").alias("logged"))
    hosts = each.groupBy("run", "host").agg(F.max("logged").alias("some"))
    lost = hosts.where("NOT some").select("run", F.lit("host").alias("what"), "host")
    logs = each.where("NOT logged").join(hosts, ["run", "host"]).where("some")
    return lost.withColumn("process", F.lit(None).cast("string")).union(
        logs.select("run", F.lit("log").alias("what"), "host", "process")
    )
