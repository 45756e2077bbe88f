"""A run is followed while it happens: every line counts once, in its window or apart, whoever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from panda_spark.refusal import Refused
from panda_spark.session import Place, open_session
from panda_spark.streaming import Following, follow
from panda_spark.windows import Group, Windows

BEGIN = 1_790_000_000.0  # a multiple of 5 s
WAIT_S = 300.0

Row = dict[str, Any]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_session(Place(master="local[2]"))
    yield session
    session.stop()


class Run:
    """A run's folder as a controller makes it, with the stream that grows in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stream = path / "stream"
        self.stream.mkdir(parents=True)
        self.plan({"P0": "h1", "S0": "h2"})
        self._files = 0

    def plan(self, homes: dict[str, str]) -> None:
        processes = [{"id": name, "speaks": name, "host": host} for name, host in homes.items()]
        (self.path / "plan.json").write_text(
            json.dumps({"processes": [*processes, {"id": "top", "speaks": ""}]})
        )

    def clocks(self, **offsets: float) -> None:
        lines = [
            json.dumps({"host": host, "at": 0.0, "offset_s": offset}) for host, offset in offsets.items()
        ]
        (self.path / "clocks.jsonl").write_text("\n".join([*lines, '{"host": "h1", "offs']))

    def add(self, *lines: Row | str, host: str = "h2", process: str = "S0") -> None:
        folder = self.stream / host / process
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        part = folder / f".{self._files}.part"
        part.write_text(text)
        part.rename(folder / f"{self._files:020}.jsonl")
        self._files += 1

    def end(self) -> None:
        (self.stream / ".end").touch()


def line(at_s: float, kind: str, host: str = "h2", **fields: Any) -> Row:
    return {"v": 1, "t": BEGIN + at_s, "host": host, "run": "r", "proc": "x", "kind": kind, **fields}


def published(at_s: float, number: int = 1) -> Row:
    return line(at_s, "publish", "h1", id=f"P0:0:{number}", client="P0", time=BEGIN + at_s, ack_s=0.001)


def delivered(at_s: float, latency_s: float = 0.01, number: int = 1) -> Row:
    return line(at_s, "deliver", id=f"P0:0:{number}", client="S0", hops=1, latency_s=latency_s)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "a strange run, +1%")


def followed(spark: SparkSession, run: Run, **options: Any) -> list[Row]:
    """What one following up to now tells."""
    rows: list[Row] = []
    follow(spark, Following(run.path, once=True, **options), rows.append)
    return rows


def ended(spark: SparkSession, run: Run) -> list[Row]:
    """What the windows finally say when no more comes."""
    run.end()
    return [row for row in followed(spark, run) if row["final"]]


def last_rows(rows: list[Row]) -> dict[float, Row]:
    """What a reader keeps: of each window the last row."""
    return {row["window_s"][0] - BEGIN: row for row in rows}


def until(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up, "it never came true"
        threading.Event().wait(0.05)


def test_every_window_says_what_was_published_and_delivered_and_how_fast(
    spark: SparkSession, run: Run
) -> None:
    run.add(published(1), published(2), published(6), host="h1", process="P0")
    run.add(*(delivered(1 + i / 100, 0.001 * (i + 1)) for i in range(100)), delivered(7, 0.5))
    run.add(
        line(1, "publish", id="P0:0:1", client="P0", time=BEGIN),
        line(1, "deliver", id="P0:0:1", client="S0", hops=1),
        line(2, "ready", address="127.0.0.1:1"),
        process="_Broker",
    )
    rows = ended(spark, run)
    assert [row["window_s"] for row in rows] == [[BEGIN, BEGIN + 5], [BEGIN + 5, BEGIN + 10]]
    assert [(row["published"], row["delivered"], row["final"]) for row in rows] == [
        (2, 100, True),
        (1, 1, True),
    ]
    assert rows[0]["p50_s"] == pytest.approx(0.050, rel=0.011)
    assert rows[0]["p99_s"] == pytest.approx(0.099, rel=0.011)
    assert rows[1]["p50_s"] == rows[1]["p99_s"] == pytest.approx(0.5, rel=0.011)
    assert [(row["errors"], row["late_lines"], row["bad_lines"]) for row in rows] == [(0, 0, 0), (0, 0, 0)]


def test_times_and_latencies_are_corrected_by_the_first_offsets_known(spark: SparkSession, run: Run) -> None:
    run.clocks(h1=-100.0, h2=50.0)
    run.add(delivered(51, 150.02))
    (row,) = ended(spark, run)
    assert row["window_s"] == [BEGIN, BEGIN + 5]
    assert row["p50_s"] == pytest.approx(0.02, rel=0.011)


def test_what_went_wrong_is_counted_and_a_goodbye_is_not(spark: SparkSession, run: Run) -> None:
    wrong = [
        line(1, "error", peer="x", code="A", message="m"),
        line(1, "refuse", peer="x", id="i", code="A"),
        line(1, "refused", peer="x", id="i", code="A", message="m"),
        line(1, "notice", code="DROPPED", message="m", count=7),
        line(1, "link_down", peer="x", reason="reset", ended=False),
    ]
    run.add(*wrong, line(1, "link_down", peer="x", reason="SIGTERM", ended=True), line(1, "no such kind"))
    (row,) = ended(spark, run)
    assert row["errors"] == len(wrong)


BAD = [
    "{",
    "[]",
    '{"v":1,"t":"soon","host":"h2","kind":"deliver","latency_s":1}',
    '{"v":1,"t":"NaN","host":"h2","kind":"deliver","latency_s":1}',
    '{"v":1,"t":9e99,"host":"h2","kind":"deliver","latency_s":1}',
    '{"v":1,"t":-5,"host":"h2","kind":"deliver","latency_s":1}',
    '{"v":2,"t":1790000001,"host":"h2","kind":"deliver","latency_s":1}',
    '{"v":1,"t":1790000001,"host":"h2","latency_s":1}',
    '{"v":1,"t":1790000001,"kind":"deliver","latency_s":1}',
    '{"v":1,"t":1790000001,"host":"h2","kind":"deliver","latency_s":',
    "\ufffd\0",
    "",
]


def test_bad_lines_are_counted_apart_and_do_no_harm(spark: SparkSession, run: Run) -> None:
    run.add(delivered(1), *BAD, delivered(2))
    (row,) = ended(spark, run)
    assert (row["delivered"], row["bad_lines"], row["errors"]) == (2, len(BAD), 0)


def test_bad_lines_alone_are_told_too(spark: SparkSession, run: Run) -> None:
    run.add("{", "}")
    (row,) = ended(spark, run)
    assert (row["window_s"], row["bad_lines"], row["final"]) == (None, 2, True)


def test_a_window_is_final_when_the_watermark_has_passed_and_late_lines_are_counted(
    spark: SparkSession, run: Run
) -> None:
    run.add(delivered(1), delivered(6))
    rows = followed(spark, run)
    assert [row["final"] for row in rows] == [False, False]
    run.add(delivered(2), delivered(16))
    rows += followed(spark, run)
    assert last_rows(rows)[0]["delivered"] == 2
    assert {at: row["final"] for at, row in last_rows(rows).items()} == {0: True, 5: False, 15: False}
    run.add(delivered(3), published(4), delivered(7), delivered(17))
    run.end()
    kept = last_rows(rows + followed(spark, run))
    assert all(row["final"] for row in kept.values())
    assert {at: (row["delivered"], row["late_lines"]) for at, row in kept.items()} == {
        0: (2, 0),
        5: (2, 0),
        15: (2, 2),
    }


def test_it_is_told_again_what_was_told_last_and_nothing_is_counted_twice(
    spark: SparkSession, run: Run
) -> None:
    run.add(delivered(1))
    first = followed(spark, run)
    assert followed(spark, run) == first
    run.end()
    (row,) = followed(spark, run)[len(first) :]
    assert (row["delivered"], row["final"]) == (1, True)
    assert followed(spark, run) == [row]


def test_a_stream_that_has_ended_with_nothing_in_it_tells_nothing(spark: SparkSession, run: Run) -> None:
    run.end()
    rows: list[Row] = []
    follow(spark, Following(run.path), rows.append)
    assert rows == []


def test_new_files_are_seen_while_it_runs_until_the_stream_ends(spark: SparkSession, run: Run) -> None:
    rows: list[Row] = []
    thread = threading.Thread(target=follow, args=(spark, Following(run.path), rows.append))
    thread.start()
    for number in range(3):
        run.add(delivered(number), delivered(number + 10))
        until(lambda n=number: any(row["delivered"] == n + 1 for row in rows))  # type: ignore[misc]
    assert not any(row["final"] for row in rows)
    with pytest.raises(Refused, match="somebody else follows this run"):
        followed(spark, run)
    run.add(delivered(3))
    run.end()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert {at: (row["delivered"], row["final"]) for at, row in last_rows(rows).items()} == {
        0: (4, True),
        10: (3, True),
    }


class Reader:
    """Another process that follows, and what it tells."""

    def __init__(self, run: Run) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "panda_spark", "follow", "--run", str(run.path)],
            env={**os.environ, "SPARK_REMOTE": "sc://127.0.0.1:1"},  # which it must not ask
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.rows: list[Row] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.rows.extend(json.loads(text) for text in lines)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        """Killed, unless it has come to its end."""
        self._process.kill()
        self._process.wait()
        self._thread.join()

    def finish(self) -> None:
        assert self._process.wait(WAIT_S) == 0


def test_whoever_is_killed_goes_on_where_it_was_and_the_totals_are_the_truth(run: Run) -> None:
    with Reader(run) as killed:
        for number in range(3):
            at_s = number * 10
            run.add(*(delivered(at_s + i / 10) for i in range(20)), published(at_s), "bad")
            until(lambda at=at_s: any(_at(row) == at for row in killed.rows))  # type: ignore[misc]
        run.add(*(delivered(30) for _ in range(500)))  # perhaps in the middle of this
    run.add(*(delivered(50) for _ in range(30)), published(50))
    run.end()
    with Reader(run) as heir:
        heir.finish()
    told = killed.rows + heir.rows
    final = [row for row in told if row["final"]]
    kept = {row["window_s"][0]: row for row in final}
    assert all(row == kept[row["window_s"][0]] for row in final)
    assert set(last_rows(told)) == set(last_rows(final))
    assert [row["delivered"] for _, row in sorted(kept.items())] == [20, 20, 20, 500, 30]
    assert sum(row["published"] for row in kept.values()) == 4
    assert sum(row["bad_lines"] for row in kept.values()) == 3
    assert sum(row["late_lines"] for row in kept.values()) == 0


def test_a_batch_that_was_kept_and_not_told_is_told_the_next_time_and_counted_once(
    spark: SparkSession, run: Run
) -> None:
    def gone(row: Row) -> None:
        raise BrokenPipeError(row)

    run.add(delivered(1), delivered(2))
    with pytest.raises(BrokenPipeError):
        follow(spark, Following(run.path, once=True), gone)
    run.add(delivered(3))
    rows = followed(spark, run)
    assert [row["delivered"] for row in rows] == [2, 3]


def _at(row: Row) -> float:
    return float(row["window_s"][0] - BEGIN)


def test_a_folder_in_whose_name_spark_reads_a_pattern_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="would read a pattern in the name"):
        followed(spark, Run(tmp_path / "a [strange] run"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_s": 0.0}, "a window of 0.0 s"),
        ({"window_s": float("nan")}, "a window of nan s"),
        ({"watermark_s": -1.0}, "a watermark of -1.0 s"),
    ],
)
def test_windows_that_make_no_sense_are_refused(
    spark: SparkSession, run: Run, options: dict[str, float], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        followed(spark, run, **options)


def test_what_is_no_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not the folder of a run"):
        follow(spark, Following(tmp_path), print)
    assert not (tmp_path / "stream").exists()


def test_other_windows_than_before_are_refused_and_another_folder_begins_anew(
    spark: SparkSession, run: Run, tmp_path: Path
) -> None:
    run.add(delivered(1))
    first = followed(spark, run)
    with pytest.raises(Refused, match=r"has windows of 5\.0 s that wait 10\.0 s"):
        followed(spark, run, window_s=2.0)
    (row,) = followed(spark, run, window_s=2.0, checkpoint=tmp_path / "mine")
    assert row["delivered"] == first[0]["delivered"] == 1


def test_a_damaged_memory_is_refused_with_what_helps(spark: SparkSession, run: Run) -> None:
    run.add(delivered(1))
    followed(spark, run)
    kept = run.stream / ".checkpoint" / "windows.json"
    kept.write_text(kept.read_text()[:-5])
    with pytest.raises(Refused, match="cannot be read") as refused:
        followed(spark, run)
    assert "remove" in refused.value.hint
    kept.unlink()
    run.add(delivered(2))
    with pytest.raises(Refused, match="Spark is at batch 1, the windows at -1"):
        followed(spark, run)


LINES = st.lists(
    st.tuples(st.integers(-1, 12), st.integers(1, 3), st.booleans()), max_size=8
)  # window (-1: bad), lines, delivered


@given(st.lists(LINES, max_size=8))
def test_every_line_is_in_exactly_one_final_window(batches: list[list[tuple[int, int, bool]]]) -> None:
    windows = Windows(window_s=5.0, watermark_s=10.0)
    rows: list[Row] = []
    for number, batch in enumerate(batches):
        groups = [
            Group(None, None, lines, 0, 0, 0, None)
            if window < 0
            else Group(
                window, 7 if yes else None, lines, 0 if yes else lines, lines if yes else 0, 0, window * 5.0
            )
            for window, lines, yes in batch
        ]
        rows += windows.take(number, groups)
        windows = Windows.of(json.loads(json.dumps(windows.data())))
    rows += windows.close()
    final = [row for row in rows if row["final"]]
    counts = ("published", "delivered", "late_lines", "bad_lines")
    assert sum(row[name] for row in final for name in counts) == sum(
        n for batch in batches for _, n, _ in batch
    )
    assert len({str(row["window_s"]) for row in final}) == len(final)
    assert {str(row["window_s"]) for row in rows} == {str(row["window_s"]) for row in final}
