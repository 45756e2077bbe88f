"""Decides how tables are asked: every one as a view of all runs, SQL in, bounded rows out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panda_spark.lake import Lake, RunState
from panda_spark.refusal import Refused
from panda_spark.tables import TABLES


def open_views(lake: Lake, runs: Mapping[str, RunState]) -> None:
    """Every table as a view; what is not committed is in none of them."""
    for name, schema in TABLES.items():
        lake.table(name, schema, runs).createOrReplaceTempView(name)


def known_runs(lake: Lake) -> dict[str, RunState]:
    runs = lake.runs()
    if not runs:
        raise Refused(f"there are no tables in {lake.path}", "panda analyze makes them")
    return runs


def ask(spark: SparkSession, lake: Lake, sql: str, rows_max: int) -> dict[str, Any]:
    open_views(lake, known_runs(lake))
    try:
        answer = spark.sql(sql)
        rows = answer.limit(rows_max + 1).collect()
    except PySparkException as error:
        raise Refused(_first_line(error), "panda query --tables lists tables and columns") from None
    return {
        "columns": [
            {"name": each.name, "type": each.dataType.simpleString()} for each in answer.schema.fields
        ],
        "rows": [[plain(value) for value in row] for row in rows[:rows_max]],
        "more": len(rows) > rows_max,
    }


def listing(lake: Lake) -> dict[str, Any]:
    return {
        "tables": [
            {
                "name": name,
                "columns": [
                    {"name": each.name, "type": each.dataType.simpleString()} for each in schema.fields
                ],
            }
            for name, schema in TABLES.items()
        ],
        "runs": sorted(known_runs(lake)),
    }


def plain(value: object) -> object:
    """As JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if hasattr(value, "asDict"):
        return {key: plain(each) for key, each in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value)


def _first_line(error: PySparkException) -> str:
    text = str(error.getMessage() or error)
    return text.split("\n== SQL", maxsplit=1)[0].split("\n\nJVM", maxsplit=1)[0].splitlines()[0]
