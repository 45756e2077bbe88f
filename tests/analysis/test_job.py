"""However the analysis ends, it is said in words, and nothing of it is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from panda.analysis.family import end_family
from panda.analysis.protocol import Progress, answer_of, progress_of
from panda.analysis.refusals import AnalysisRefused
from panda.cli.exits import Exit
from panda.prepare.offspring import Identity, identity_of, lives
from tests.analysis.desk import Desk
from tests.deployment.panda import wait_until


def test_a_refusal_comes_with_what_would_help(desk: Desk) -> None:
    desk.run("r1")
    ended = desk("analyze", STAND_IN="refuse")
    assert ended.returncode == Exit.REFUSED
    assert ended.stderr.splitlines()[-1] == "panda: there are no logs: collect them first"
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("behaviour", "code", "said", "last"),
    [
        ("bug", Exit.BUG, "by a bug (please report)", "Traceback: our bug"),
        ("die", Exit.FAILED, "ended by signal 9", "java.lang.OutOfMemoryError: Java heap space"),
        ("babble", Exit.FAILED, "exit code 0", "Spark talks to itself"),
    ],
)
def test_a_failure_shows_sparks_last_words_and_where_the_rest_is(
    desk: Desk, behaviour: str, code: int, said: str, last: str
) -> None:
    desk.run("r1")
    ended = desk("analyze", STAND_IN=behaviour)
    assert ended.returncode == code
    assert ended.stdout == ""
    assert said in ended.stderr
    assert last in ended.stderr.splitlines()[-2]
    log = desk.folder / "runs/tables.log"
    assert ended.stderr.splitlines()[-1] == f"all that Spark said is in {log}"
    assert last in log.read_text()


def test_sparks_own_words_are_kept_and_not_shown(desk: Desk) -> None:
    desk.run("r1")
    ended = desk("analyze")
    assert "talks to itself" not in ended.stderr + ended.stdout
    assert "talks to itself" in (desk.folder / "runs/tables.log").read_text()
    assert "PANDA-SPARK" not in (desk.folder / "runs/tables.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_analysis_and_what_it_started(desk: Desk, number: signal.Signals) -> None:
    desk.run("r1")
    process = desk.start("analyze", STAND_IN="hang")
    pids = desk.folder / "pids"
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the analysis runs")
    found = [identity_of(int(pid)) for pid in pids.read_text().split()]
    assert all(found)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED, err
    assert not any(lives(each) for each in found if each is not None)
    assert "Traceback" not in err


def test_what_does_not_listen_is_ended_all_the_same() -> None:
    code = """
import signal, subprocess, sys, threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
print(child.pid, flush=True)
threading.Event().wait()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        child, leader = identity_of(int(process.stdout.readline())), identity_of(process.pid)
        assert child is not None
        assert leader is not None
        end_family(leader, grace_s=0.1)
        process.wait(10)
        wait_until(lambda: not lives(child), "the child has ended")


def test_a_process_that_has_the_number_of_one_that_is_gone_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        end_family(Identity(process.pid, "1"), grace_s=0.1)
        process.communicate(b"\n")
    assert process.returncode == 0


def test_only_progress_is_taken_for_progress() -> None:
    line = b'PANDA-SPARK {"stage": "reading logs", "done": 3, "of": 10}\n'
    assert progress_of(line) == Progress("reading logs", 3, 10)
    assert progress_of(b'PANDA-SPARK {"stage": "x\\u001b[31m", "done": true, "of": -1}') == Progress("x�[31m")
    for other in (b"", b"26/11/18 WARN x", b"PANDA-SPARK {", b'PANDA-SPARK {"stage": 1}', b"PANDA-SPARK []"):
        assert progress_of(other) is None


def test_an_answer_is_an_object_with_a_code_that_means_it() -> None:
    assert answer_of(0, b'{"runs": []}') is not None
    unmet = answer_of(1, b'{"crossed": ["lost:0"]}')
    assert unmet is not None
    assert not unmet.met
    for code, out in ((0, b""), (0, b"[]"), (70, b"{}"), (-9, b"{}"), (2, b""), (0, b"[" * 100_000)):
        assert answer_of(code, out) is None
    with pytest.raises(AnalysisRefused, match=r"no\. luck: try again"):
        answer_of(2, json.dumps({"error": {"message": "no. luck", "hint": "try again"}}).encode())


def test_a_module_in_the_users_folder_stands_in_for_none(desk: Desk) -> None:
    desk.run("r1")
    (desk.folder / "panda_spark").mkdir()
    (desk.folder / "panda_spark" / "__main__.py").write_text("raise SystemExit('not this one')")
    assert desk("analyze").returncode == Exit.DONE


def test_two_at_once_keep_out_of_each_others_way(desk: Desk) -> None:
    desk.run("r1")
    ended: list[subprocess.CompletedProcess[str]] = []
    threads = [threading.Thread(target=lambda: ended.append(desk("analyze"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.returncode for each in ended] == [0, 0], [each.stderr for each in ended]
    assert (Path(desk.folder) / "runs/tables.log").read_text().count("talks to itself") == 2
