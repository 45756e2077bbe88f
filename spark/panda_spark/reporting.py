"""Decides which rows of the tables a report gets, and fetches no others: one job for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from panda_spark.lake import Lake, RunState
from panda_spark.pipeline import RunFiles
from panda_spark.report import WANTED, RunData, Wanted
from panda_spark.tables import TABLES

DOCUMENTS = ("plan.json", "versions.json", "lines.txt")
BRIEF = [each for each in WANTED if each.table in {"summary", "runs", "faults"}]


def gather(
    lake: Lake, runs: Mapping[str, RunState], wanted: Sequence[Wanted] = WANTED
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What is wanted of each run, each table's rows in the order they are wanted in."""
    slices = [_slice(lake, place, each, runs) for place, each in enumerate(wanted)]
    found: dict[str, dict[str, list[dict[str, Any]]]] = {run: {} for run in runs}
    # A union keeps its parts behind each other, and each part is one partition in its order.
    for place, run, text in reduce(DataFrame.union, slices).collect():
        found[run].setdefault(wanted[place].table, []).append(json.loads(text))
    return found


def _slice(lake: Lake, place: int, wanted: Wanted, runs: Mapping[str, RunState]) -> DataFrame:
    """At most so many rows in their order, as JSON, so that tables of all shapes come together.

    Sorting with a limit needs no shuffle where a table is one file, and keeps no more than the limit where it
    is many. A window for each slice would take twice as long for all of them.
    """
    schema = TABLES[wanted.table]
    rows = lake.table(wanted.table, schema, runs).where(wanted.where)
    if wanted.evenly or wanted.per:
        among = Window.partitionBy("run", *([wanted.per] if wanted.per else []))
        place_ = F.row_number().over(among.orderBy(*map(_ordered, wanted.order)))
        rows = rows.coalesce(1).withColumn("_place", place_)
        if wanted.evenly:
            step = F.ceil(F.count("*").over(among) / wanted.rows_max)
            rows = rows.withColumn("_step", step).where("_place % _step = 0 OR _place = 1")
        else:
            rows = rows.where(F.col("_place") <= wanted.rows_max)
    else:
        rows = rows.orderBy(*map(_ordered, wanted.order)).limit(wanted.rows_max * len(runs))
    text = F.to_json(F.struct(*schema.names))
    return rows.select(F.lit(place).alias("slice"), "run", text.alias("text"))


def _ordered(by: str) -> Column:
    column = by.removesuffix(" DESC")
    return F.expr(column).asc() if column == by else F.expr(column).desc()


def provenance(spark: SparkSession, files: RunFiles, state: RunState) -> dict[str, Any]:
    """Versions, hosts, commands and the topology, as the run's folder has them."""
    texts = documents(spark, files)
    plan = _object(texts.get("plan.json", ""))
    return {
        "versions": _object(texts.get("versions.json", "")),
        "hosts": [
            {"name": each.get("name"), "address": each.get("address")} for each in plan.get("hosts") or ()
        ],
        "commands": {
            str(each.get("id")): " ".join(
                [str(each.get("word") or ""), *map(str, each.get("arguments") or ())]
            )
            for each in plan.get("processes") or ()
        },
        "analysis": dict(state.options),
        "topology": texts.get("lines.txt", ""),
    }


def documents(spark: SparkSession, files: RunFiles) -> dict[str, str]:
    paths = {name: files.files[name].path for name in DOCUMENTS if name in files.files}
    if all("://" not in path for path in paths.values()):
        return {name: Path(path).read_text("utf-8", "replace") for name, path in paths.items()}
    read = spark.read.text(list(paths.values()), wholetext=True)
    rows = read.select(F.col("_metadata.file_name").alias("name"), "value").collect()
    return {row["name"]: row["value"] for row in rows}


def data_of(spark: SparkSession, lake: Lake, files: RunFiles, state: RunState) -> RunData:
    tables = gather(lake, {files.run: state})[files.run]
    return RunData(files.run, tables, provenance(spark, files, state))


def briefs(lake: Lake, runs: Mapping[str, RunState]) -> dict[str, RunData]:
    """As much of each run as a sentence needs."""
    found = gather(lake, runs, BRIEF) if runs else {}
    return {run: RunData(run, tables) for run, tables in found.items()}


def summary_of(data: RunData) -> dict[str, Any]:
    """The row of `summary` with all of its columns, also those that are null; empty where there is none."""
    row = data.first("summary")
    return {name: row.get(name) for name in TABLES["summary"].names} if row else {}


def quantiles(lake: Lake, runs: Mapping[str, RunState], steps: int = 100) -> list[dict[str, Any]]:
    """The distribution of latencies of each run, as a comparison draws it."""
    shares = [step / steps for step in range(steps + 1)]
    cuts = F.percentile_approx("latency_s", shares, 10_000).alias("cuts")
    rows = lake.table("deliveries", TABLES["deliveries"], runs).where("latency_s IS NOT NULL")
    found = rows.groupBy("run").agg(cuts).collect()
    return [
        {"run": row["run"], "quantile": share, "latency_s": value}
        for row in found
        for share, value in zip(shares, row["cuts"] or (), strict=False)
    ]


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
