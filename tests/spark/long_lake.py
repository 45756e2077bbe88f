"""Tables follow their runs: what is new is read, what is not is left alone, whoever else writes or dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from panda_spark.lake import ABANDONED_S, Lake
from panda_spark.pipeline import Done, analyze
from panda_spark.pipeline import Options as Analysis
from panda_spark.refusal import Refused
from panda_spark.store import LocalStore, SparkStore
from panda_spark.tables import TABLES
from tests.spark.generator import Options, Truth, generate
from tests.spark.tabled import command, environment, files_of, quiet, rows_of

SMALL = {"hosts": 2, "brokers": 2, "publishers": 1, "subscribers": 1, "publications": 20, "losses": 1}
WAIT_S = 300.0


def made(folder: Path, seed: int, **changes: Any) -> Truth:
    return generate(Options(seed=seed, **{**SMALL, **changes}), folder)


def brought(spark: SparkSession, lake: str | Path, *folders: str | Path, **options: float) -> Done:
    return analyze(spark, Lake(spark, str(lake)), [str(each) for each in folders], Analysis(**options), quiet)


@pytest.fixture(scope="module")
def first(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run of seed 1 and its tables, for tests to copy."""
    folder = tmp_path_factory.mktemp("first")
    truth = made(folder / "runs", 1, bad_lines=("not JSON",), compressed=True)
    done = brought(spark, folder / "tables", truth.folder)
    assert (done.new, done.files_read) == ({truth.run}, 5 - 1)
    return folder


Both = tuple[list[Path], dict[str, list[str]]]


@pytest.fixture(scope="module")
def both(spark: SparkSession, first: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """The run of seed 1 and another, and the tables of both, made together."""
    folder = tmp_path_factory.mktemp("both")
    folders = [run_of(first), Path(made(folder, 2).folder)]
    brought(spark, folder / "tables", *folders)
    return folders, rows_of(spark, str(folder / "tables"))


@pytest.fixture
def house(first: Path, tmp_path: Path) -> Path:
    """The same, under a path that is hard to read; nothing in it is newer for that."""
    folder = tmp_path / "a größe +1% [x]"
    shutil.copytree(first, folder)
    return folder


def run_of(house: Path) -> Path:
    (found,) = (house / "runs").iterdir()
    return found


def test_what_was_read_is_not_read_again_and_nothing_is_written(spark: SparkSession, house: Path) -> None:
    before = files_of(house / "tables")
    done = brought(spark, house / "tables", run_of(house))
    assert (done.new, done.files_read) == (set(), 0)
    assert files_of(house / "tables") == before


def test_a_log_that_grew_is_read_alone_and_the_tables_are_as_if_made_anew(
    spark: SparkSession, house: Path
) -> None:
    log = next(run_of(house).glob("hosts/*/processes/*/log.jsonl"))
    line = json.loads(log.read_text().splitlines()[-1])
    with log.open("a") as file:
        file.write(json.dumps({**line, "kind": "pause"}) + "\noops\n")
    done = brought(spark, house / "tables", run_of(house))
    assert (len(done.new), done.files_read) == (1, 1)
    brought(spark, house / "anew", run_of(house))
    assert rows_of(spark, str(house / "tables")) == rows_of(spark, str(house / "anew"))
    log.unlink()  # and one that went is forgotten
    brought(spark, house / "tables", run_of(house))
    assert not [
        row for row in rows_of(spark, str(house / "tables"))["bronze"] if f"/{log.parent.name}/" in row
    ]


def test_another_run_is_added_without_touching_the_first_and_both_can_be_forgotten(
    spark: SparkSession, both: Both, house: Path
) -> None:
    run, lake = run_of(house), house / "tables"
    before, rows = files_of(lake), rows_of(spark, str(lake))
    other = both[0][1]
    done = brought(spark, lake, run, other)
    assert done.new == {other.name}
    assert {name: files_of(lake)[name] for name in before} == before
    assert rows_of(spark, str(lake), only=run.name) == rows
    tables = Lake(spark, str(lake))
    tables.forget([run.name])
    assert tables.runs().keys() == {other.name}
    assert not any(run.name in row for rows_ in rows_of(spark, str(lake)).values() for row in rows_)
    assert brought(spark, lake, run).new == {run.name}
    assert rows_of(spark, str(lake), only=run.name) == rows


def test_other_options_make_the_tables_anew_from_lines_that_were_read(
    spark: SparkSession, house: Path
) -> None:
    done = brought(spark, house / "tables", run_of(house), late_s=1e-6)
    assert (len(done.new), done.files_read) == (1, 0)
    late = [row for row in rows_of(spark, str(house / "tables"))["verdicts"] if '"late"' in row]
    assert late


def test_two_writers_at_once_both_leave_what_they_made(
    spark: SparkSession, both: Both, tmp_path: Path
) -> None:
    folders, rows = both
    writers = [threading.Thread(target=brought, args=(spark, tmp_path / "tables", each)) for each in folders]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(WAIT_S)
    assert Lake(spark, str(tmp_path / "tables")).runs().keys() == {each.name for each in folders}
    assert rows_of(spark, str(tmp_path / "tables")) == rows


def until(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def killed(lake: Path, folder: Path, table: str) -> None:
    """A writer that dies, with its Java, when it has begun to write a table."""
    before = set((lake / table).iterdir())
    writer = subprocess.Popen(
        command("analyze", "--lake", str(lake), str(folder)),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: set((lake / table).iterdir()) - before or writer.poll() is not None)
        assert writer.poll() is None
    finally:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait(WAIT_S)


def test_writers_that_are_killed_leave_the_old_tables_and_the_next_completes(
    spark: SparkSession, both: Both, house: Path
) -> None:
    lake, first_rows = house / "tables", rows_of(spark, str(house / "tables"))
    (_, other), rows = both
    for dead, table in enumerate(("lines", "deliveries", "summary"), 1):
        killed(lake, other, table)
        assert rows_of(spark, str(lake)) == first_rows
        assert len(list((lake / "lines").iterdir())) == 1 + dead
    assert brought(spark, lake, other).new == {other.name}
    assert rows_of(spark, str(lake), only=other.name) == {
        table: [row for row in found if other.name in row] for table, found in rows.items()
    }
    tables = Lake(spark, str(lake))
    tables.tidy(time.time())
    assert len(list((lake / "lines").iterdir())) == 5  # their writers may be alive
    tables.tidy(time.time() + 2 * ABANDONED_S)
    assert len(list((lake / "lines").iterdir())) == 2
    assert rows_of(spark, str(lake), only=run_of(house).name) == first_rows


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 1, "runs": {}}', '{"format": 2}', '{"format": 2, "runs": {"r": 5}}'],
)
def test_a_broken_commit_is_refused_by_name(spark: SparkSession, house: Path, text: str) -> None:
    (commit,) = (house / "tables" / "commits").glob("*.json")
    commit.write_text(text)
    with pytest.raises(Refused) as refused:
        brought(spark, house / "tables", run_of(house))
    assert commit.name in refused.value.message
    assert "analyse the runs again" in refused.value.hint


def test_folders_that_are_no_runs_or_have_one_name_are_refused(spark: SparkSession, house: Path) -> None:
    run = run_of(house)
    twin = house / "twin" / run.name
    shutil.copytree(run, twin)
    (house / "empty").mkdir()
    for folders, said in (
        ([run, twin], "two folders are called"),
        ([house / "empty"], "no folder of a run"),
        ([house / "nowhere"], "cannot be read"),
    ):
        with pytest.raises(Refused, match=said):
            brought(spark, house / "tables", *folders)


def test_a_run_is_known_by_its_own_name_however_it_is_reached(
    spark: SparkSession, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(house)
    (house / "latest").symlink_to(run)
    monkeypatch.chdir(run)
    for way in (f"{run}/", house / "latest", ".", f"../{run.name}"):
        done = brought(spark, house / "tables", way)
        assert (done.runs.keys(), done.new) == ({run.name}, set())


def test_below_a_folder_called_hosts_a_run_is_the_same(spark: SparkSession, house: Path) -> None:
    (house / "hosts").mkdir()
    moved = shutil.copytree(run_of(house), house / "hosts" / run_of(house).name)
    brought(spark, house / "there", moved)
    here, there = rows_of(spark, str(house / "tables")), rows_of(spark, str(house / "there"))
    for table in TABLES.keys() - {"bronze", "events", "quarantine"}:
        assert here[table] == there[table], table


def test_paths_of_hadoop_give_the_same_tables(spark: SparkSession, house: Path) -> None:
    run = run_of(house)
    uri, lake = f"file://{run}", f"file://{house}/elsewhere"
    here, there = LocalStore().files(str(run)), SparkStore(spark).files(uri)
    assert [(each.relative, each.size) for each in here if each.size] == [
        (each.relative, each.size) for each in there if each.size
    ]
    assert brought(spark, lake, uri).new == {run.name}
    before = files_of(house / "elsewhere")
    assert brought(spark, lake, uri).new == set()
    assert files_of(house / "elsewhere") == before
    assert rows_of(spark, lake) == rows_of(spark, str(house / "tables"))
    tables = Lake(spark, lake)
    tables.forget([run.name])
    assert tables.runs() == {}
    tables.tidy(time.time() + 2 * ABANDONED_S)
    assert not list((house / "elsewhere" / "lines").glob("generation=*"))
