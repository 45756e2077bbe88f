"""Decides what became of every publication for every subscription that it concerned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from panda_spark.gold.matching import CONTENT, class_satisfies, of_attributes, of_class, satisfies, unjudged

PAIR = ["run", "subscription", "source", "number"]
NOBODY = ":?"  # in place of a subscription's number, for what came and matches none
STREAM = PAIR[:3]  # what one subscription gets from one publisher, in one order


def split_id(id_: str) -> dict[str, Column]:
    """`P0:6f2c4f05:3` is message 3 of incarnation 6f2c4f05 of client P0."""
    return {
        "source": F.regexp_extract(id_, r"^(.*):\d+$", 1),
        "number": F.regexp_extract(id_, r":(\d+)$", 1).try_cast("long"),
        "publisher": F.split_part(F.col(id_), F.lit(":"), F.lit(1)),
    }


def publish_lines(events: DataFrame) -> DataFrame:
    """One line for each publication: its client's own, or, where that is missing, its first broker's."""
    lines = events.where("kind = 'publish'")
    own = lines.where("ack_s IS NOT NULL").dropDuplicates(["run", "id"])
    taken = lines.where("ack_s IS NULL").dropDuplicates(["run", "id"])
    sole = taken.join(own.select("run", "id"), ["run", "id"], "left_anti")
    kept = ["run", "id", "client", "host", "proc", "time", "time_t", "time_error_s", "ack_s", *CONTENT]
    return own.select(*kept).union(sole.select(*kept)).withColumns(split_id("id"))


def first_brokers(events: DataFrame) -> DataFrame:
    """Where each client was: by the word of the broker that took something from it, else by its own."""
    took = events.where("kind IN ('publish', 'subscribe') AND ack_s IS NULL").select(
        "run", "client", F.col("proc").alias("broker"), F.lit(0).alias("rank"), "t"
    )
    said = events.where("kind = 'connected'").select(
        "run", F.col("proc").alias("client"), "broker", F.lit(1).alias("rank"), "t"
    )
    return (
        took.union(said)
        .groupBy("run", "client")
        .agg(F.min_by("broker", F.struct("rank", "t")).alias("broker"))
    )


def publications(lines: DataFrame, brokers: DataFrame, processes: DataFrame, starts: DataFrame) -> DataFrame:
    homes = processes.groupBy("run", F.col("speaks").alias("client")).agg(F.max("host").alias("home"))
    placed = (
        lines.join(F.broadcast(starts), "run")
        .join(F.broadcast(brokers), ["run", "client"], "left")
        .join(F.broadcast(homes), ["run", "client"], "left")
    )
    return placed.select(
        "run",
        F.col("id").alias("publication"),
        "publisher",
        "source",
        "number",
        "class",
        "broker",
        F.coalesce("home", "host").alias("host"),
        F.col("time_t").alias("t"),
        (F.col("time_t") - F.col("t0")).alias("published_s"),
        F.col("time_error_s").alias("error_s"),
        "ack_s",
    )


def expected(lines: DataFrame, subscriptions: DataFrame, settle_s: float) -> DataFrame:
    """Which publications concern which subscriptions, by content; and how their times lie to each other.

    A subscription meets only publications of classes that it can match, so that the join has a key.
    """
    classes = lines.select("run", "class").distinct()
    judged = subscriptions.where("judged").select(
        "run",
        "subscription",
        "from_t",
        "until_t",
        of_class(F.col("filter")).alias("on_class"),
        of_attributes(F.col("filter")).alias("on_attributes"),
    )
    keyed = judged.join(classes, "run").where(class_satisfies(F.col("on_class"), F.col("class")))
    held = keyed.drop("on_class")
    at = F.col("time_t")
    met = lines.join(F.broadcast(held), ["run", "class"])
    return met.where(satisfies(F.col("on_attributes"))).select(
        *PAIR,
        "class",
        F.col("time").alias("published_raw"),
        F.col("time_t").alias("published_t"),
        F.col("time_error_s").alias("published_error_s"),
        ((at >= F.col("from_t") - settle_s) & (at <= F.col("until_t") + settle_s)).alias("near"),
        ((at >= F.col("from_t")) & (at <= F.col("until_t"))).alias("due"),
        ((at >= F.col("from_t") + settle_s) & (at <= F.col("until_t") - settle_s)).alias("settled"),
    )


def received(events: DataFrame) -> DataFrame:
    """The clients' own words on what they got."""
    own = events.where("kind = 'deliver' AND latency_s IS NOT NULL")
    id_ = {name: column for name, column in split_id("id").items() if name != "publisher"}
    return own.withColumns(id_).select(
        "run",
        F.col("client").alias("subscriber"),
        "source",
        "number",
        "to",
        "t",
        "t_raw",
        "error_s",
        "hops",
        "block",
        "row",
    )


def unaddressed(received_: DataFrame) -> DataFrame:
    """What does not say for which subscriptions it came: older logs do not."""
    return received_.where("coalesce(size(to), 0) <= 0")


def addressed(received_: DataFrame, expected_: DataFrame | None, subscriptions: DataFrame) -> DataFrame:
    """One row for each subscription that something came for.

    What does not say for which was for those of the client that match it; `expected_` is needed for that, and
    left out where everything says it.
    """
    single = received_.withColumn("subscription", F.explode("to")).drop("to")
    if expected_ is None:
        return single
    holders = subscriptions.select("run", "subscription", "subscriber")
    fitting = expected_.select(*PAIR).join(F.broadcast(holders), ["run", "subscription"])
    found = unaddressed(received_).drop("to").join(fitting, ["run", "subscriber", "source", "number"], "left")
    nobody = F.concat("subscriber", F.lit(NOBODY))
    named = found.withColumn("subscription", F.coalesce("subscription", nobody))
    return single.unionByName(named)


def arrivals(addressed_: DataFrame) -> DataFrame:
    """What each subscription got: how often, when first, and whether in the order of the publisher.

    A message that is newer than all before it has come for the first time and in order; any other is a
    repetition or came too late.
    """
    before = (
        Window.partitionBy(*STREAM)
        .orderBy("t_raw", "block", "row")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    newest = F.max("number").over(before)
    fresh = newest.isNull() | (F.col("number") > newest)
    return (
        addressed_.withColumn("fresh", fresh)
        .groupBy(*PAIR)
        .agg(
            F.count("*").alias("times"),
            F.max("fresh").alias("in_order"),
            F.min("t").alias("delivered_t"),
            F.min("t_raw").alias("delivered_raw"),
            F.min_by("error_s", "t").alias("delivered_error_s"),
            F.min_by("hops", "t").alias("hops"),
        )
    )


def pairs(expected_: DataFrame, arrivals_: DataFrame) -> DataFrame:
    """What should have been delivered beside what was; `met` where the first is known."""
    return expected_.withColumn("met", F.lit(True)).join(arrivals_, PAIR, "full")


def deliveries(
    pairs_: DataFrame,
    lines: DataFrame,
    subscriptions: DataFrame,
    processes: DataFrame,
    starts: DataFrame,
    late_s: float,
) -> DataFrame:
    """A row for each pair, with its verdict. What nobody asked for is few, and looks for its publication."""
    strays = pairs_.where("met IS NULL").drop("class", "published_raw", "published_t", "published_error_s")
    told_of = lines.select(
        "run",
        "source",
        "number",
        "class",
        F.col("time").alias("published_raw"),
        F.col("time_t").alias("published_t"),
        F.col("time_error_s").alias("published_error_s"),
    )
    traced = told_of.join(F.broadcast(strays), ["run", "source", "number"], "right").select(*pairs_.columns)
    told = _told(pairs_.where("met").union(traced), subscriptions, processes, starts)
    return _judged(told, late_s)


def _told(pairs: DataFrame, subscriptions: DataFrame, processes: DataFrame, starts: DataFrame) -> DataFrame:
    """With who it was from and for, and how long it took."""
    holders = subscriptions.select(
        "run", "subscription", "subscriber", "broker", F.col("host").alias("there"), "judged", "logged"
    )
    writers = processes.groupBy("run", F.col("speaks").alias("publisher")).agg(
        F.max("host").alias("here"), F.max("logged").alias("publisher_logged")
    )
    who = F.split_part(F.col("source"), F.lit(":"), F.lit(1))
    named = (
        pairs.withColumn("publisher", who)
        .join(F.broadcast(holders), ["run", "subscription"], "left")
        .join(F.broadcast(writers), ["run", "publisher"], "left")
        .join(F.broadcast(starts), "run", "left")
    )
    one_clock = (F.col("here") == F.col("there")) & F.col("published_raw").isNotNull()
    latency = F.when(one_clock, F.col("delivered_raw") - F.col("published_raw")).otherwise(
        F.col("delivered_t") - F.col("published_t")
    )
    error = F.when(one_clock, F.lit(0.0)).otherwise(F.col("published_error_s") + F.col("delivered_error_s"))
    return named.withColumns(
        {"latency_s": F.round(latency, 6), "error_s": F.when(latency.isNotNull(), error)}
    )


def _judged(told: DataFrame, late_s: float) -> DataFrame:
    times = F.coalesce("times", F.lit(0))
    judged = F.coalesce("judged", F.lit(False))
    late = F.coalesce(F.col("latency_s") > late_s, F.lit(False))
    nobody_knows = F.col("published_t").isNull()
    for_nobody = F.col("subscription").endswith(NOBODY)
    absent = (
        F.when(~F.coalesce("logged", F.lit(True)), "unknown")
        .when(F.col("due") & F.col("settled"), "lost")
        .otherwise("unsettled")
    )
    verdict = (
        F.when(times == 0, absent)
        .when(nobody_knows & ~F.coalesce("publisher_logged", F.lit(False)), "unknown")
        .when(nobody_knows | for_nobody | (judged & ~F.coalesce("near", F.lit(False))), "unexpected")
        .when(times > 1, "twice")
        .when(~F.col("in_order"), "out of order")
        .when(late, "late")
        .otherwise("delivered")
    )
    publication = F.concat("source", F.lit(":"), F.col("number").cast("string"))
    subscriber = F.coalesce("subscriber", F.split_part(F.col("subscription"), F.lit(":"), F.lit(1)))
    given = told.withColumns({"times": times, "late": late, "verdict": verdict})
    # Outside its time a subscription may get something or not: what it did not get is no matter.
    concerned = given.where((F.col("times") > 0) | F.col("due"))
    return concerned.select(
        "run",
        publication.alias("publication"),
        F.when(~for_nobody, F.col("subscription")).alias("subscription"),
        subscriber.alias("subscriber"),
        "publisher",
        "class",
        "broker",
        (F.col("published_t") - F.col("t0")).alias("published_s"),
        (F.col("delivered_t") - F.col("t0")).alias("delivered_s"),
        "latency_s",
        "error_s",
        "hops",
        F.col("times").cast("long").alias("times"),
        "late",
        F.coalesce("in_order", F.lit(True)).alias("in_order"),
        "verdict",
    )


def subscriptions(
    events: DataFrame, brokers: DataFrame, agents: DataFrame, processes: DataFrame, starts: DataFrame
) -> DataFrame:
    """Every subscription with the time for which it held."""
    lines = events.where("kind = 'subscribe'")
    own = F.col("ack_s").isNotNull()
    begun = lines.groupBy("run", F.col("id").alias("subscription")).agg(
        F.first("client").alias("subscriber"),
        F.coalesce(F.min(F.when(own, F.col("t"))), F.min("t")).alias("from_t"),
        F.max("text").alias("text"),
        F.any_value("filter", True).alias("filter"),
        F.max(F.when(~own, F.col("proc"))).alias("took"),
        F.max(F.when(own, F.col("host"))).alias("own_host"),
    )
    ended = (
        events.where("kind = 'unsubscribe'")
        .groupBy("run", F.col("id").alias("subscription"))
        .agg(F.min("t").alias("withdrawn_t"))
    )
    gone = _ends(begun, events, agents, processes)
    lasts = events.groupBy("run").agg(F.max("t").alias("last_t"))
    who = processes.groupBy("run", F.col("speaks").alias("subscriber")).agg(
        F.max("host").alias("home"), F.max("logged").alias("logged")
    )
    whole = (
        begun.join(ended, ["run", "subscription"], "left")
        .join(gone, ["run", "subscription"], "left")
        .join(brokers.withColumnRenamed("client", "subscriber"), ["run", "subscriber"], "left")
        .join(lasts, "run")
        .join(who, ["run", "subscriber"], "left")
        .join(starts, "run")
    )
    until = F.least("withdrawn_t", "gone_t", "last_t")
    why = unjudged(F.col("filter"))
    only_class = F.filter(of_class(F.col("filter")), lambda each: each["op"] == "eq")
    return whole.select(
        "run",
        "subscription",
        "subscriber",
        F.coalesce("took", "broker").alias("broker"),
        F.coalesce("home", "own_host").alias("host"),
        F.get(F.get(only_class, F.lit(0))["texts"], F.lit(0)).alias("class"),
        "text",
        (F.col("from_t") - F.col("t0")).alias("from_s"),
        (until - F.col("t0")).alias("until_s"),
        why.isNull().alias("judged"),
        why.alias("why"),
        "from_t",
        until.alias("until_t"),
        "filter",
        F.coalesce("logged", F.col("own_host").isNotNull()).alias("logged"),
    )


def _ends(begun: DataFrame, events: DataFrame, agents: DataFrame, processes: DataFrame) -> DataFrame:
    """When a subscription's client was closed or its process ended, first of all after it had subscribed."""
    names = processes.select("run", "process", F.col("speaks").alias("subscriber")).distinct()
    exits = agents.where("kind = 'exited'").join(names, ["run", "process"])
    closed = events.where("kind = 'disconnected' AND reason = 'closed'")
    ends = exits.select("run", "subscriber", "t").union(
        closed.select("run", F.col("proc").alias("subscriber"), "t")
    )
    after = begun.select("run", "subscription", "subscriber", "from_t").join(ends, ["run", "subscriber"])
    return after.where("t >= from_t").groupBy("run", "subscription").agg(F.min("t").alias("gone_t"))


def verdicts(deliveries_: DataFrame) -> DataFrame:
    return deliveries_.groupBy("run", "subscriber", "class", "verdict").agg(F.count("*").alias("count"))
