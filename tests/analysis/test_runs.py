"""`panda run` ends with the analysis, and a run can be followed while it goes on; the figures are made up."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from panda.cli.exits import Exit
from tests.analysis.desk import Desk
from tests.deployment.panda import wait_until

BROKERS = """\
0 ADD A 10.0.0.1 startbroker.sh -p 10000 -i A
0 ADD B 10.0.0.2 startbroker.sh -p 10000 -i B -n 10.0.0.1:10000
0 ADD S0 10.0.0.2 startSQsubscriber.sh -i S0 -s "[class,eq,'STOCK']" -b 10.0.0.2:10000 --quiet
"""
SHORT = (
    BROKERS + "0.2 ADD P0 10.0.0.1 startSQpublisher.sh -i P0 -s YHOO -r 6000 --count 20 -b 10.0.0.1:10000\n"
)
LONG = BROKERS + "0.2 ADD P0 10.0.0.1 startSQpublisher.sh -i P0 -s YHOO -r 600 --count 50 -b 10.0.0.1:10000\n"


def put(desk: Desk, text: str) -> str:
    (desk.folder / "t.txt").write_text(text)
    return "t.txt"


def test_a_run_ends_with_the_sentence_and_the_report(desk: Desk) -> None:
    ended = desk("run", put(desk, SHORT), "--local")
    assert ended.returncode == Exit.DONE, ended.stderr
    lines = ended.stdout.splitlines()
    run = next((desk.folder / "runs").glob("*-t")).name
    assert "P0 published 20" in lines
    assert lines[-4:-1] == [
        f"{run}: 60 publications, 57 of 60 deliveries arrived.",
        "  verdict: 3 lost, of 60 expected deliveries",
        f"  report: runs/{run}/report/report.html",
    ]
    assert desk.told[0]["arguments"][-1] == str(desk.folder / "runs" / run)


def test_a_program_finds_the_analysis_in_the_document_of_the_run(desk: Desk) -> None:
    ended = desk("run", put(desk, SHORT), "--local", "--json")
    told = json.loads(ended.stdout)
    assert told["summary"]["published"] == {"P0": 20}
    assert told["analysis"]["runs"][0]["summary"]["lost"] == 3


def test_an_analysis_that_fails_is_told_of_and_changes_nothing_for_the_run(desk: Desk) -> None:
    ended = desk("run", put(desk, SHORT), "--local", "--json", STAND_IN="die")
    assert ended.returncode == Exit.DONE, ended.stderr
    told = json.loads(ended.stdout)
    assert told["summary"]["delivered"] == {"S0": 20}
    assert "broke off" in told["analysis"]["error"]
    assert "java.lang.OutOfMemoryError" in ended.stderr
    refused = desk("run", "t.txt", "--local", JAVA_HOME="/nowhere")
    assert refused.returncode == Exit.DONE
    assert "panda: not analysed: JAVA_HOME is /nowhere" in refused.stderr


def test_an_interrupted_analysis_leaves_the_run_its_result(desk: Desk) -> None:
    process = desk.start("run", put(desk, SHORT), "--local", "--json", STAND_IN="hang")
    pids = desk.folder / "pids"
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the analysis runs")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == Exit.DONE, err
    assert json.loads(out)["analysis"] == {"error": "interrupted"}


def test_the_analysis_can_be_left_out(desk: Desk) -> None:
    ended = desk("run", put(desk, SHORT), "--local", "--no-analyze", "--json")
    assert ended.returncode == Exit.DONE, ended.stderr
    assert "analysis" not in json.loads(ended.stdout)
    assert desk.told == []


def windows_of(ended: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return [line for line in lines if "window_s" in line]


def test_a_run_is_followed_while_it_goes_on_and_until_everything_is_read(desk: Desk) -> None:
    run = desk.start("run", put(desk, LONG), "--local", "--no-analyze")
    wait_until(lambda: begun(desk.folder), "phase 2 has begun")
    ended = desk("analyze", "--follow", "--json")
    assert ended.returncode == Exit.DONE, ended.stderr
    windows = windows_of(ended)
    assert sum(window["published"] for window in windows) == 50
    assert sum(window["delivered"] for window in windows) == 50
    assert sum(bool(window["delivered"]) for window in windows) > 1, "while it goes on, not only at its end"
    assert json.loads(ended.stdout.splitlines()[-1])["runs"][0]["summary"]["lost"] == 3
    _, err = run.communicate(timeout=60)
    assert run.returncode == Exit.DONE, err

    slices = sorted(desk.folder.glob("runs/*/stream/*/*/*.jsonl"))
    again = desk("analyze", "--follow")
    assert again.returncode == Exit.DONE
    assert " s  published 0, delivered 0, p50 1.0 ms, p99 – ms" in again.stderr
    assert sorted(desk.folder.glob("runs/*/stream/*/*/*.jsonl")) == slices, "what was cut is not cut again"
    words = next(told["arguments"] for told in desk.told if told["arguments"][0] == "follow")
    folder = next((desk.folder / "runs").glob("*-t"))
    assert words[words.index("--checkpoint") + 1] == str(folder / "stream/.checkpoint")


def test_who_follows_may_leave_and_the_run_goes_on(desk: Desk) -> None:
    run = desk.start("run", put(desk, LONG), "--local", "--no-analyze")
    wait_until(lambda: begun(desk.folder), "phase 2 has begun")
    following = desk.start("analyze", "--follow")
    wait_until(lambda: list(desk.folder.glob("runs/*/stream/*/*/*.jsonl")), "something was cut")
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=60)
    assert following.returncode == Exit.INTERRUPTED, err
    out, err = run.communicate(timeout=60)
    assert run.returncode == Exit.DONE, err
    assert "S0 was notified 50 times" in out


def begun(folder: Path) -> bool:
    return any('"kind": "go"' in path.read_text() for path in folder.glob("runs/*/journal.jsonl"))
