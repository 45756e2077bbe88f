"""Decides what each fault did to deliveries: who waited how long, what was lost, and when it was over."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

BEFORE_S: Final = 30.0  # how far back "as before" looks
DISTURBED: Final = 3.0  # times the median before: what took longer was disturbed
DISTURBED_S: Final = 0.01  # and by so much at least
CELL_S: Final = 0.05  # deliveries are looked at in cells of this length, with their first and last
FAULT: Final = ["run", "fault", "a", "b", "from_s", "until_s"]


def intervals(agents: DataFrame, schedule: DataFrame, processes: DataFrame, runs: DataFrame) -> DataFrame:
    """Every fault once, with beginning and end: of links, which both ends tell of, and of processes."""
    names = processes.where("speaks <> ''").groupBy("run", "process").agg(F.max("speaks").alias("name"))
    told = agents.where("kind IN ('fault', 'healed') AND peer IS NOT NULL").join(
        names, ["run", "process"], "left"
    )
    timed = told.join(runs.select("run", "t0", "last_s"), "run").withColumns(
        {"name": F.coalesce("name", "process"), "at_s": F.col("t") - F.col("t0")}
    )
    order = Window.partitionBy("run", "host", "process", "fault", "peer").orderBy("seq")
    following = F.lead("at_s").over(order)
    one_end = timed.withColumn("next_s", following).where("kind = 'fault'")
    until = F.coalesce("next_s", F.col("until") + F.col("shift_s") - F.col("t0"), "last_s")
    links = one_end.select(
        "run",
        "fault",
        F.least("name", "peer").alias("a"),
        F.greatest("name", "peer").alias("b"),
        "value",
        F.col("at_s").alias("from_s"),
        until.alias("until_s"),
    )
    return _merged(links).union(_of_processes(schedule, processes, runs))


def _merged(links: DataFrame) -> DataFrame:
    """What both ends tell of one fault overlaps, and becomes one."""
    same = Window.partitionBy("run", "fault", "a", "b").orderBy("from_s", "until_s")
    so_far = F.max("until_s").over(same.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.when(so_far.isNull() | (F.col("from_s") > so_far), 1).otherwise(0)
    grouped = links.withColumn("begins", begins).withColumn("number", F.sum("begins").over(same))
    return (
        grouped.groupBy("run", "fault", "a", "b", "number")
        .agg(
            F.max("value").alias("value"),
            F.min("from_s").alias("from_s"),
            F.max("until_s").alias("until_s"),
        )
        .select("run", "fault", "a", "b", "value", "from_s", "until_s")
    )


def _of_processes(schedule: DataFrame, processes: DataFrame, runs: DataFrame) -> DataFrame:
    """KILL, PAUSE and RESTART: until the process is ready again, or goes on."""
    names = processes.groupBy("run", "process").agg(F.max("speaks").alias("speaks"))
    done = schedule.where("error IS NULL AND actual_s IS NOT NULL AND process IS NOT NULL")
    begun = done.where("action IN ('kill', 'pause', 'restart') AND NOT lease")
    ready = processes.where("ready_s IS NOT NULL").select("run", "process", F.col("ready_s").alias("back_s"))
    resumed = done.where("action IN ('resume', 'pause') AND (action = 'resume' OR lease)").select(
        "run", "process", F.col("actual_s").alias("back_s")
    )
    keyed = begun.select(
        "run",
        "process",
        F.col("action").alias("fault"),
        F.col("actual_s").alias("from_s"),
    )
    returns = ready.withColumn("way", F.lit("ready")).union(resumed.withColumn("way", F.lit("resumed")))
    by = F.when(F.col("fault") == "pause", "resumed").otherwise("ready")
    after = keyed.withColumn("way", by).join(returns, ["run", "process", "way"], "left")
    later = F.when(F.col("back_s") > F.col("from_s"), F.col("back_s"))
    ended = after.groupBy("run", "process", "fault", "from_s").agg(F.min(later).alias("back_s"))
    killed = ended.where("fault = 'kill'").select(
        "run", "process", F.col("from_s").alias("killed_s"), F.col("back_s").alias("returned_s")
    )
    # What brings back a process that was killed is no fault of its own.
    again = ended.where("fault = 'restart'").join(killed, ["run", "process"])
    cures = again.where("from_s > killed_s AND from_s <= coalesce(returned_s, from_s)")
    faults_ = ended.join(cures.select("run", "process", "fault", "from_s"), [*ended.columns[:4]], "left_anti")
    named = faults_.join(names, ["run", "process"], "left").join(runs.select("run", "last_s"), "run")
    return named.select(
        "run",
        "fault",
        F.when(F.col("speaks") != "", F.col("speaks")).otherwise(F.col("process")).alias("a"),
        F.lit(None).cast("string").alias("b"),
        F.lit(None).cast("double").alias("value"),
        "from_s",
        F.coalesce("back_s", "last_s").alias("until_s"),
    )


def faults(intervals_: DataFrame, deliveries: DataFrame) -> DataFrame:
    """`intervals_` is small and goes to the deliveries; what is compared is decided by time alone."""
    numbered = intervals_.withColumn("fault_id", F.xxhash64(*FAULT))
    counted = _counted(numbered, deliveries)
    known = numbered.join(counted, "fault_id", "left")
    whole = known.join(_gaps(known, deliveries), "fault_id", "left")
    over = F.coalesce("last_delivered_s", "first_after_s")
    return whole.select(
        "run",
        "fault",
        "a",
        "b",
        "value",
        "from_s",
        "until_s",
        "gap_s",
        F.greatest(over - F.col("until_s"), F.lit(0.0)).alias("recover_s"),
        *(F.coalesce(name, F.lit(0)).alias(name) for name in ("published", "delivered", "late", "lost")),
        F.col("p50_before_s"),
        F.col("p50_during_s"),
    )


def _meanwhile() -> Column:
    return F.col("published_s").between(F.col("from_s"), F.col("until_s"))


def _counted(numbered: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Of each fault: what was usual before it, what was published meanwhile, when the first came after it."""
    met = deliveries.join(F.broadcast(numbered.select("fault_id", *FAULT)), "run")
    arrived, meanwhile = F.col("times") > 0, _meanwhile()
    before = F.col("published_s").between(F.col("from_s") - BEFORE_S, F.col("from_s"))
    undisturbed = arrived & before & (F.col("delivered_s") < F.col("from_s"))
    after = arrived & (F.col("delivered_s") >= F.col("until_s"))

    def count(which: Column) -> Column:
        return F.count(F.when(meanwhile & which, 1))

    return met.groupBy("fault_id").agg(
        F.median(F.when(undisturbed, F.col("latency_s"))).alias("p50_before_s"),
        count(F.lit(True)).alias("published"),
        count(arrived).alias("delivered"),
        count(F.col("late")).alias("late"),
        count(F.col("verdict") == "lost").alias("lost"),
        F.max(F.when(meanwhile, F.col("delivered_s"))).alias("last_delivered_s"),
        F.median(F.when(meanwhile, F.col("latency_s"))).alias("p50_during_s"),
        F.min(F.when(after, F.col("delivered_s"))).alias("first_after_s"),
    )


def _gaps(known: DataFrame, deliveries: DataFrame) -> DataFrame:
    """The longest time without a delivery, around each fault, of anybody it disturbed."""
    met = deliveries.join(F.broadcast(known.select("fault_id", *FAULT, "p50_before_s")), "run")
    limit = F.greatest(DISTURBED * F.coalesce("p50_before_s", F.lit(0.0)), F.lit(DISTURBED_S))
    disturbed = (F.col("verdict") == "lost") | (F.col("latency_s") > limit)
    concerned = (
        met.where(_meanwhile() & disturbed)
        .select("fault_id", "run", "subscriber", "from_s", "until_s")
        .distinct()
    )
    cell = F.floor(F.col("delivered_s") / CELL_S)
    cells = (
        deliveries.where("times > 0")
        .groupBy("run", "subscriber", cell.alias("cell"))
        .agg(F.min("delivered_s").alias("first_s"), F.max("delivered_s").alias("last_s"))
    )
    order = Window.partitionBy("run", "subscriber").orderBy("cell")
    silent = cells.select("run", "subscriber", F.lag("last_s").over(order).alias("quiet_s"), "first_s")
    heard = silent.where("quiet_s IS NOT NULL").join(F.broadcast(concerned), ["run", "subscriber"])
    around = heard.where((F.col("quiet_s") <= F.col("until_s")) & (F.col("first_s") >= F.col("from_s")))
    return around.groupBy("fault_id").agg(F.max(F.col("first_s") - F.col("quiet_s")).alias("gap_s"))
