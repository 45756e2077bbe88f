"""Decides how the tables of a lake are compared: every row of every table, whoever wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from panda_spark.lake import Lake
from panda_spark.tables import TABLES

TIMEOUT_S = 300.0
DIGITS = 9
# Lines are numbered as they are read, and blocks are cut to fit the readers.
PLACES = ("row", "block")


def quiet(stage: str, done: int, of: int) -> None:
    pass


def rows_of(spark: SparkSession, lake: str, *, only: str = "") -> dict[str, list[str]]:
    """The rows of every table in a form that sorts."""
    tables = Lake(spark, lake)
    runs = {run: state for run, state in tables.runs().items() if only in ("", run)}
    found: dict[str, list[str]] = {}
    slices = []
    for name, schema in TABLES.items():
        rows = tables.table(name, schema, runs)
        kept = [each for each in schema.names if each not in PLACES]
        slices.append(rows.select(F.lit(name).alias("table"), F.to_json(F.struct(*kept)).alias("row")))
        found[name] = []
    whole = slices[0]
    for part in slices[1:]:
        whole = whole.union(part)
    for row in whole.collect():
        said = json.loads(row["row"])
        if "file" in said:  # wherever the run lies
            said["file"] = said["file"].split("/hosts/")[-1]
        found[row["table"]].append(json.dumps(_rounded(said), sort_keys=True))
    return {name: sorted(rows) for name, rows in found.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value


def files_of(lake: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with the moment of its last change and its bytes."""
    return {
        str(path.relative_to(lake)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in lake.rglob("*")
        if path.is_file()
    }


class Said:
    """What a process of the analysis answered."""

    def __init__(self, ended: subprocess.CompletedProcess[str]) -> None:
        self.code = ended.returncode
        self.noise = ended.stderr
        self.answer: dict[str, Any] = json.loads(ended.stdout)


def command(*words: str, master: str = "local[2]") -> list[str]:
    place = ["--master", master, "--memory", "1g"] if master else []
    return [sys.executable, "-m", "panda_spark", words[0], *place, *words[1:]]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    package = str(Path(__file__).parents[2] / "spark")
    return {**kept, "PYTHONPATH": package, "SPARK_LOCAL_IP": "127.0.0.1", **variables}


def said(*words: str, master: str = "local[2]", **variables: str) -> Said:
    """`python -m panda_spark` with these words."""
    return Said(
        subprocess.run(
            command(*words, master=master),
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    )
