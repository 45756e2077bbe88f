"""Spark does the work as intended: joins by key, a line parsed once, nothing handed to Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from panda_spark import ingest, pipeline
from panda_spark.lake import Lake
from panda_spark.pipeline import Options as Analysis
from panda_spark.pipeline import analyze
from panda_spark.tables import STORED
from tests.spark.generator import everything, generate


def quiet(stage: str, done: int, of: int) -> None:
    pass


def plan(rows: DataFrame, which: str = "executedPlan") -> str:
    execution: Any = rows._jdf.queryExecution()  # type: ignore[operator]
    return str(getattr(execution, which)().toString())


@pytest.fixture(scope="module")
def plans(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of every table, as it was about to be written."""
    folder = tmp_path_factory.mktemp("plans")
    truth = generate(everything(publications=300), folder / "runs")
    found: dict[str, str] = {}

    class Watched(pipeline._Maker):
        def _write(self, table: str, rows: DataFrame) -> None:
            found[table] = plan(rows)
            super()._write(table, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_Maker", Watched)
        analyze(spark, Lake(spark, str(folder / "tables")), [truth.folder], Analysis(), quiet)
    return found


def test_every_table_is_there_and_none_meets_all_rows_with_all(plans: dict[str, str]) -> None:
    assert plans.keys() == STORED.keys()
    for table, text in plans.items():
        for bad in ("CartesianProduct", "BroadcastNestedLoopJoin"):
            assert bad not in text, table


def test_nothing_is_handed_to_python(plans: dict[str, str]) -> None:
    for table, text in plans.items():
        for python in ("BatchEvalPython", "ArrowEvalPython", "MapInPandas", "PythonUDF", "pythonUDF"):
            assert python not in text, table


def test_subscriptions_go_to_the_publications_and_not_the_other_way(plans: dict[str, str]) -> None:
    text = plans["deliveries"]
    assert "BroadcastHashJoin [run" in text
    assert "BuildRight" in text


def test_a_line_is_parsed_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "r/hosts/h/processes/p/log.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    rows = ingest.bronze(ingest.lines(spark, [str(path)]))
    for which in ("optimizedPlan", "executedPlan"):
        assert plan(rows, which).count("from_json(") == 1
