"""Decides which rows of the tables a report gets, and fetches no others: one job for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from panda_spark.lake import Lake, RunState
from panda_spark.pipeline import RunFiles
from panda_spark.report import WANTED, RunData, Wanted
from panda_spark.tables import TABLES

DOCUMENTS = ("plan.json", "versions.json", "lines.txt")


def gather(lake: Lake, run: str, state: RunState) -> dict[str, list[dict[str, Any]]]:
    """What the report wants of a run, each table's rows in the order it wants them in."""
    slices = [_slice(lake, place, wanted, {run: state}) for place, wanted in enumerate(WANTED)]
    found: dict[str, list[dict[str, Any]]] = {}
    rows = sorted(reduce(DataFrame.union, slices).collect())
    for place, _, text in rows:
        found.setdefault(WANTED[place].table, []).append(json.loads(text))
    return found


def _slice(lake: Lake, place: int, wanted: Wanted, runs: Mapping[str, RunState]) -> DataFrame:
    """At most so many rows, numbered in their order, as JSON, so that tables of all shapes come together."""
    schema = TABLES[wanted.table]
    rows = lake.table(wanted.table, schema, runs).select(*schema.names).where(wanted.where)
    numbered = rows.withColumn("_place", F.expr(f"row_number() OVER (ORDER BY {wanted.order})"))
    if wanted.evenly:
        step = F.ceil(F.count("*").over(Window.partitionBy(F.lit(1))) / wanted.rows_max)
        numbered = numbered.withColumn("_step", step).where("_place % _step = 0 OR _place = 1").drop("_step")
    else:
        numbered = numbered.where(F.col("_place") <= wanted.rows_max)
    text = F.to_json(F.struct(*schema.names))
    return numbered.select(F.lit(place).alias("slice"), "_place", text.alias("text"))


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
    return RunData(files.run, gather(lake, files.run, state), provenance(spark, files, state))


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


def rows_of(lake: Lake, table: str, runs: Mapping[str, RunState]) -> list[dict[str, Any]]:
    """All rows of a table that has one for each run."""
    schema = TABLES[table]
    return [row.asDict() for row in lake.table(table, schema, runs).select(*schema.names).collect()]


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
