"""What a report gets of the tables: what was asked for, no more of it, and in that order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from pyspark.sql import SparkSession

from panda_spark.lake import Lake, RunState
from panda_spark.report import WANTED, Wanted
from panda_spark.reporting import briefs, gather, summary_of
from panda_spark.tables import TABLES

RUNS = {"one": RunState("1-a", "1-a", {}), "two": RunState("1-a", "1-a", {})}
ONE = {"one": RUNS["one"]}


def marks(run: str, amount: int) -> list[dict[str, object]]:
    return [{"at_s": float(7 * at % amount), "text": f"{run} {at}", "run": run} for at in range(amount)]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = Lake(spark, str(tmp_path_factory.mktemp("tables")))
    latency = [
        {"by": by, "key": f"{by}{place}", "p99_s": p99, "run": "one"}
        for by in ("class", "broker")
        for place, p99 in enumerate((0.2, None, 0.4, 0.4, 0.1))
    ]
    rows: Mapping[str, Sequence[Mapping[str, object]]] = {
        "marks": [*marks("one", 20), *marks("two", 20)],
        "latency": latency,
        "summary": [{"published": 3, "run": "one"}, {"published": 4, "run": "two"}],
        "runs": [{"config": "c", "run": "one"}],
        "faults": [{"fault": "cut", "from_s": at, "run": "two"} for at in (2.0, 1.0)],
    }
    for name, schema in TABLES.items():
        cells = [tuple(row.get(column) for column in schema.names) for row in rows.get(name, ())]
        made = spark.createDataFrame(cells, schema)
        made.coalesce(1).write.partitionBy("run").parquet(found.place(name, "1-a"))
    return found


def test_a_table_too_long_is_cut_after_it_was_sorted(lake: Lake) -> None:
    got = gather(lake, ONE, [Wanted("marks", 5, ("at_s", "text"))])["one"]["marks"]
    assert [row["at_s"] for row in got] == [0, 1, 2, 3, 4]
    assert {row["run"] for row in got} == {"one"}


def test_what_is_null_is_last_where_the_greatest_come_first(lake: Lake) -> None:
    got = gather(lake, ONE, [Wanted("latency", 9, ("p99_s DESC", "key"), "by = 'class'")])["one"]["latency"]
    assert [row["key"] for row in got] == ["class2", "class3", "class0", "class4", "class1"]


def test_each_value_of_a_column_has_its_own_share(lake: Lake) -> None:
    got = gather(lake, ONE, [Wanted("latency", 2, ("p99_s DESC", "key"), per="by")])["one"]["latency"]
    assert [row["key"] for row in got] == ["broker2", "broker3", "class2", "class3"]


def test_of_too_many_rows_every_nth_is_taken_from_beginning_to_end(lake: Lake) -> None:
    got = gather(lake, ONE, [Wanted("marks", 5, ("at_s",), evenly=True)])["one"]["marks"]
    assert [row["at_s"] for row in got] == [0, 3, 7, 11, 15, 19]


def test_slices_of_one_table_come_one_after_the_other(lake: Lake) -> None:
    wanted = [
        Wanted("marks", 2, ("at_s DESC",)),
        Wanted("summary", 1, ("run",)),
        Wanted("marks", 2, ("at_s",)),
    ]
    got = gather(lake, ONE, wanted)["one"]
    assert [row["at_s"] for row in got["marks"]] == [19, 18, 0, 1]
    assert [row["published"] for row in got["summary"]] == [3]


def test_everything_that_a_report_wants_can_be_asked_for(lake: Lake) -> None:
    got = gather(lake, ONE)["one"]
    assert {name: len(rows) for name, rows in got.items()} == {
        "summary": 1,
        "runs": 1,
        "latency": 10,
        "marks": 20,
    }
    assert {each.table for each in WANTED} <= set(TABLES)


def test_a_few_words_on_many_runs_are_one_question(lake: Lake) -> None:
    got = briefs(lake, RUNS)
    assert [got[run].first("summary")["published"] for run in RUNS] == [3, 4]
    assert [row["from_s"] for row in got["two"].rows("faults")] == [1.0, 2.0]
    assert not got["one"].rows("faults")


def test_a_summary_has_every_column_also_without_a_value(lake: Lake) -> None:
    summary = summary_of(briefs(lake, ONE)["one"])
    assert list(summary) == TABLES["summary"].names
    assert summary["lost"] is None
