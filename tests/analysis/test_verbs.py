"""The verbs of the analysis say what was answered, and refuse in one line with what would help."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from panda.cli.exits import Exit
from tests.analysis.desk import PANDA, Desk


def test_the_newest_run_is_analysed_into_a_sentence_a_verdict_and_a_report(desk: Desk) -> None:
    desk.run("20260101-000000-old")
    desk.run("20260102-000000-new")
    ended = desk("analyze")
    assert ended.returncode == Exit.DONE, ended.stderr
    assert ended.stdout.splitlines() == [
        "20260102-000000-new: 60 publications, 57 of 60 deliveries arrived.",
        "  verdict: 3 lost, of 60 expected deliveries",
        "  report: runs/20260102-000000-new/report/report.html",
        "1 line could not be read: they are in the table quarantine",
    ]
    assert ended.stderr.split("\n")[:3] == ["  starting Spark", "  reading logs", "  making tables"]


def test_spark_is_told_absolute_paths_as_a_server_works_elsewhere(desk: Desk) -> None:
    folder = desk.run("r1")
    desk("analyze", "r1", "--late", "0.5", "--settle", "2", "--no-report")
    assert desk.told[0]["arguments"] == [
        "analyze", "--lake", str(desk.folder / "runs/tables"), "--late", "0.5", "--settle", "2", str(folder)
    ]  # fmt: skip


def test_several_runs_are_named_by_parts_patterns_and_folders_each_once(desk: Desk) -> None:
    folders = [desk.run(name) for name in ("1-a", "2-b", "3-bb")]
    desk("analyze", "1-", "runs/2-b", "*-b*", "--no-report")
    assert desk.told[0]["arguments"][-3:] == [
        str(desk.folder / "runs/1-a"),
        str(desk.folder / "runs/2-b"),
        str(folders[2]),
    ]
    desk("analyze", "--all")
    assert desk.told[1]["arguments"][-3:] == [str(folder) for folder in folders]


def test_a_program_gets_one_document_and_nothing_else(desk: Desk) -> None:
    desk.run("r1")
    ended = desk("analyze", "--json")
    assert json.loads(ended.stdout)["runs"][0]["summary"]["lost"] == 3
    assert ended.stderr == ""


def test_losses_are_no_failure_unless_their_absence_was_expected(desk: Desk) -> None:
    desk.run("r1")
    assert desk("analyze").returncode == Exit.DONE
    met = desk("analyze", "--expect", "lost<=3", "--expect", "latency_p99_s < 0.5")
    assert met.returncode == Exit.DONE
    unmet = desk("analyze", "--expect", "lost=0", "--expect", "published=60", "--expect", "hops_mean<3")
    assert unmet.returncode == Exit.FAILED
    assert unmet.stderr.splitlines()[-2:] == [
        "panda: r1: lost=0 is expected, and lost is 3",
        "panda: r1: hops_mean<3 is expected, and hops_mean has no value",
    ]
    assert "57 of 60 deliveries arrived" in unmet.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze", "--expect", "latency_p9_s<1"], "metric 'latency_p9_s': did you mean latency_p99_s?"),
        (["analyze", "--expect", "lost"], "'lost' is no expectation: say METRIC=N"),
        (["analyze", "--late", "inf"], "--late and --settle are numbers"),
        (["analyze", "no-such-run"], "there is no run 'no-such-run' in runs/"),
        (["analyze", "--master", "mesos://x"], "'mesos://x' is no master of Spark: say local[N]"),
        (["analyze", "--remote", "http://x;token=secret"], "'http://x' is no Spark Connect server"),
        (["analyze", "--master", "yarn", "--remote", "sc://x"], "--master and --remote name two places"),
        (["compare", "r1", "x*"], "no run in runs/ fits the pattern 'x*'"),
        (["compare", "r1", "r1", "--threshold", "lots:1"], "there is no metric 'lots': did you mean lost?"),
        (["compare", "r1", "r1", "--threshold", "lost"], "'lost' is no threshold: say METRIC:+N%"),
        (["query", "SELECT 1"], "runs/tables: panda analyze makes them"),
        (["analyze", "--forget", "r1"], "runs/tables: panda analyze makes them"),
        (["analyze", "--lake", "plain-file/tables"], "plain-file/tables.log (File exists): say --lake PATH"),
        (["notebook", "--out", "no/such.ipynb"], "there is no folder no: make it first"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_spark_is_started(
    desk: Desk, arguments: list[str], said: str
) -> None:
    desk.run("r1")
    (desk.folder / "plain-file").write_text("")
    ended = desk(*arguments)
    assert ended.returncode == Exit.REFUSED
    assert ended.stdout == ""
    assert said in ended.stderr
    assert "secret" not in ended.stderr
    assert desk.told == []


def test_tables_of_a_run_are_forgotten_also_when_its_folder_is_gone(desk: Desk) -> None:
    desk.run("20260101-000000-old")
    desk.tables()
    ended = desk("analyze", "--forget", "old")
    assert ended.stdout == "the tables hold nothing of 20260101-000000-old any more\n"
    desk("analyze", "--forget", "19990101-000000-gone")
    assert [told["arguments"][-1] for told in desk.told] == ["20260101-000000-old", "19990101-000000-gone"]


def test_groups_are_compared_as_a_table_with_intervals(desk: Desk) -> None:
    for name in ("1-slow", "2-slow", "3-fast"):
        desk.run(name)
    ended = desk("compare", "*-slow", "3-fast")
    assert ended.returncode == Exit.DONE, ended.stderr
    head, _, row, note, sentence = ended.stdout.splitlines()
    assert head.split() == ["metric", "A", "B", "difference"]
    assert row.split(maxsplit=1)[1] == "0.25 [0.2, 0.3]  0.5  +0.25 (+100.0 %)  significant"
    assert (note, sentence) == ("note: B is one run", "B is slower.")
    arguments = desk.told[0]["arguments"]
    assert arguments[arguments.index("--a") :][:5] == ["--a", "1-slow", "2-slow", "--b", "3-fast"]
    assert arguments[arguments.index("--folders") + 1 :] == [
        str(desk.folder / "runs" / name) for name in ("1-slow", "2-slow", "3-fast")
    ]


def test_a_crossed_threshold_is_a_failure_with_its_figures(desk: Desk) -> None:
    desk.run("1-a")
    desk.run("2-b")
    ended = desk("compare", "1-a", "2-b", "--threshold", "latency_p99_s:+10%", "--json")
    assert ended.returncode == Exit.FAILED
    assert json.loads(ended.stdout)["metrics"][0]["b_mean"] == 0.5
    assert ended.stderr == "panda: crossed: latency_p99_s:+10%\n"


def test_runs_of_which_a_named_lake_knows_need_no_folder(desk: Desk) -> None:
    desk.run("2-b")
    ended = desk("compare", "1-gone,0-gone", "2-b", "--lake", "hdfs://lake/tables")
    assert ended.returncode == Exit.DONE, ended.stderr
    arguments = desk.told[0]["arguments"]
    assert arguments[:6] == ["compare", "--lake", "hdfs://lake/tables", "--a", "1-gone", "0-gone"]


def test_rows_come_as_a_table_as_csv_and_as_json(desk: Desk) -> None:
    desk.tables()
    plain = desk("query", "SELECT 1")
    assert plain.stdout.splitlines() == [
        "run            lost",
        "-------------  ----",
        "r1                3",
        "r2 �[31m, red",
    ]
    rows = list(csv.reader(io.StringIO(desk("query", "SELECT 1", "--csv").stdout)))
    assert rows == [["run", "lost"], ["r1", "3"], ["r2 \x1b[31m, red", ""]]
    assert json.loads(desk("query", "SELECT 1", "--json").stdout)["rows"][0] == ["r1", 3]
    cut = desk("query", "--limit", "1", "--", "-- a comment\nSELECT 1")
    assert "there are more than 1 row" in cut.stderr
    assert desk.told[-1]["arguments"][-2:] == ["--", "-- a comment\nSELECT 1"]


def test_tables_are_listed_with_their_columns(desk: Desk) -> None:
    desk.tables()
    assert desk("query", "--tables").stdout.splitlines()[-1].split() == ["summary", "lost", "bigint"]
    assert desk("query").returncode == Exit.REFUSED


def test_a_notebook_runs_from_top_to_bottom_and_is_not_written_over(desk: Desk) -> None:
    desk.run("r1")
    desk.tables()
    assert desk("notebook").returncode == Exit.DONE
    path = desk.folder / "panda.ipynb"
    made = json.loads(path.read_text())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    code = "\n".join("".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == f"r1 {desk.folder / 'runs/tables'}\n"
    again = desk("notebook")
    assert again.returncode == Exit.REFUSED
    assert "panda.ipynb is there already" in again.stderr
    assert desk("notebook", "--force").returncode == Exit.DONE


def at_a_terminal(desk: Desk, *arguments: str) -> tuple[int, str, str]:
    """Exit code, what stdout got, and what the terminal showed."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*PANDA, *arguments],
            cwd=desk.folder,
            env={**desk.environment, "TERM": "xterm", "COLUMNS": "100"},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        while data := _read(ours):
            seen += data
        out, _ = process.communicate()
    finally:
        os.close(ours)
    return process.returncode, out.decode(), seen.decode()


def test_at_a_terminal_the_stage_is_seen_on_stderr_and_the_result_on_stdout(desk: Desk) -> None:
    desk.run("r1")
    code, out, seen = at_a_terminal(desk, "analyze")
    assert code == Exit.DONE, seen
    assert "starting Spark" in seen
    assert out.startswith("r1: 60 publications")


def test_at_a_terminal_a_run_is_followed_in_a_table(desk: Desk) -> None:
    log = desk.run("r1") / "hosts/h1/processes/P0/log.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text('{"kind": "publish", "ack_s": 0.1}\n' * 42)
    code, _, seen = at_a_terminal(desk, "analyze", "--follow")
    assert code == Exit.DONE, seen
    assert "published" in seen
    assert " 42 " in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize(
    "words", ["analyze", "compare", "query", "notebook", "spark up", "spark down", "spark status"]
)
def test_every_verb_explains_itself_with_an_example(desk: Desk, words: str) -> None:
    said = desk(*words.split(), "--help")
    assert said.returncode == Exit.DONE
    assert f"Example: panda {words}" in " ".join(said.stdout.split())
    assert "--json" in said.stdout


def test_metrics_are_the_columns_of_the_table_summary() -> None:
    from panda.analysis.expectations import METRICS

    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `summary` |"))
    columns = row.split("`")[3::2]
    assert list(METRICS) == columns
