"""`--local`: every topology runs on this machine unchanged, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.deployment.panda import CHECKOUT, wait_until

TIMEOUT_S = 60.0
LEAVING_S = 10.0
TOPOLOGIES = CHECKOUT / "topologies"
PANDA = [sys.executable, "-c", "from panda.cli.main import main; main()"]


class Here:
    """`panda` in a folder of its own, without hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "HOME": str(folder / "home")}

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PANDA, *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **variables) as process:
            try:
                out, err = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def processes(self) -> list[int]:
        """Agents and processes that were started from here: they all work below this folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    folder = (entry / "cwd").readlink()
                except OSError:
                    continue
                if folder.is_relative_to(self.folder):
                    found.append(int(entry.name))
        return found

    def is_left_clean(self) -> None:
        """An agent that has said its last word is a moment away from its end."""
        wait_until(lambda: not self.processes(), "nothing works below the folder", LEAVING_S)

    def close(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    found = Here(tmp_path)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("name", ["stock-quotes.txt", "stock-quotes-uri.txt", "stock-quotes.yaml"])
def test_the_example_delivers_every_quote_though_its_link_breaks(here: Here, name: str) -> None:
    ended = here("run", "--no-analyze", str(TOPOLOGIES / name), "--local", "--json")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["summary"]["published"] == {"P0": 60}
    assert told["summary"]["delivered"] == {"S0": 60}
    assert told["summary"]["repeated"] == 0
    here.is_left_clean()
    assert not (here.folder / told["folder"] / "local").exists()
    assert not (here.folder / "home").exists(), "nothing is put into the home"


def test_a_template_with_variables_runs_too(here: Here) -> None:
    ended = here("run", "--no-analyze", str(TOPOLOGIES / "chain.txt"), "-D", "brokers=5", "--local", "--json")
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)["summary"]
    assert (summary["published"], summary["delivered"]) == ({"P0": 30}, {"S0": 30})


def test_two_runs_side_by_side_keep_out_of_each_others_way(here: Here) -> None:
    arguments = ("run", "--no-analyze", str(TOPOLOGIES / "papers.txt"), "--local", "--for", "2", "--json")
    with here.start(*arguments) as first, here.start(*arguments) as second:
        for process in (first, second):
            out, err = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, err
            assert json.loads(out)["result"] == "stopped"
    plans = [json.loads(path.read_text()) for path in here.folder.glob("runs/*/plan.json")]
    assert len({plan["processes"][0]["address"] for plan in plans}) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_running(here: Here, number: signal.Signals) -> None:
    with here.start(
        "run", "--no-analyze", str(TOPOLOGIES / "papers.txt"), "--local", "--for", "300"
    ) as process:
        wait_until(
            lambda: any(
                '"kind": "go"' in path.read_text() for path in here.folder.glob("runs/*/journal.jsonl")
            ),
            "phase 2 has begun",
        )
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert "Logs and records are in" in out
    here.is_left_clean()


def test_a_deployment_that_is_interrupted_after_go_goes_on_until_it_is_stopped(here: Here) -> None:
    with here.start("deploy", str(TOPOLOGIES / "papers.txt"), "--local", "--yes") as process:
        wait_until(
            lambda: any(
                '"kind": "go"' in path.read_text() for path in here.folder.glob("runs/*/journal.jsonl")
            ),
            "phase 2 has begun",
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 5, err
    assert "goes on" in out
    assert here.processes() != []
    assert here("stop").returncode == 0
    here.is_left_clean()
    assert "stopped" in here("ls").stdout


def test_what_has_no_end_is_refused_before_anything_is_done(here: Here) -> None:
    (here.folder / "t.txt").write_text(
        "0 ADD A 10.0.1.1 startbroker.sh -p 10000 -i A\n"
        "1 ADD P 10.0.1.1 startSQpublisher.sh -i P -s YHOO -b 10.0.1.1:10000\n"
    )
    ended = here("run", "--no-analyze", "t.txt", "--local")
    assert ended.returncode == 2
    assert "P would publish for ever" in ended.stderr
    assert list((here.folder / "runs").iterdir()) == []


def test_a_topology_that_starts_nothing_is_refused(here: Here) -> None:
    (here.folder / "t.txt").write_text("# nothing yet\n")
    ended = here("run", "--no-analyze", "t.txt", "--local")
    assert ended.returncode == 2
    assert "t.txt starts nothing" in ended.stderr


def test_a_place_where_no_run_can_be_kept_is_refused(here: Here) -> None:
    (here.folder / "file").write_text("")
    for verb in (
        ("run", "--no-analyze", str(TOPOLOGIES / "papers.txt"), "--local", "--for", "1"),
        ("ls",),
        ("status",),
    ):
        ended = here(*verb, "--runs", "file")
        assert ended.returncode == 2, verb
        assert "file" in ended.stderr
        assert "internal error" not in ended.stderr


def test_stop_without_a_name_means_the_newest_run_that_is_not_over(here: Here) -> None:
    papers = str(TOPOLOGIES / "papers.txt")
    assert here("deploy", papers, "--local", "--yes", "--detach", "--name", "first").returncode == 5
    assert here("run", "--no-analyze", papers, "--local", "--for", "1", "--name", "second").returncode == 0
    assert here.processes() != []
    ended = here("stop")
    assert ended.returncode == 0
    assert "first is stopped on 1 host" in ended.stdout
    here.is_left_clean()
    assert "is over" in here("step", "0 MARK late").stderr
    assert here("collect").returncode == 0


def test_without_a_terminal_a_deployment_wants_yes(here: Here) -> None:
    ended = here("deploy", str(TOPOLOGIES / "papers.txt"), "--local")
    assert ended.returncode == 2
    assert "--yes" in ended.stderr
    assert list((here.folder / "runs").iterdir()) == []


def test_the_words_of_old_do_a_whole_experiment_from_a_script(here: Here) -> None:
    script = (
        f"load {TOPOLOGIES / 'papers.txt'}\n"
        "sshtest\n"
        "deploy\n"
        "status\n"
        "0 MARK typed at the console\n"
        "0 ADD Bob 10.0.1.1 startbroker.sh -p 10001 -i Bob -n 10.0.1.1:10000\n"
        "get logs\n"
        "get errors\n"
        "stop Bob\n"
        "stop\n"
        "exit\n"
    )
    ended = subprocess.run(
        [*PANDA, "shell", "--local"],
        cwd=here.folder,
        env=here.environment,
        input=script,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 step added" in ended.stdout
    assert "nothing of it is left on 1 host" in ended.stdout
    run = max((here.folder / "runs").iterdir())
    journals = "".join(path.read_text() for path in run.glob("hosts/*/journal.jsonl"))
    assert "typed at the console" in journals
    assert {path.parent.name for path in run.glob("hosts/*/processes/*/log.jsonl")} == {"BrokerA", "Bob"}
    here.is_left_clean()


def test_a_word_that_fails_ends_a_script_with_its_code(here: Here) -> None:
    ended = subprocess.run(
        [*PANDA, "shell", "--local"],
        cwd=here.folder,
        env=here.environment,
        input="deploi\nls\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 2
    assert "did you mean deploy?" in ended.stderr


def test_a_token_is_used_and_seen_nowhere(here: Here) -> None:
    secret = "hush-6f2c4f05-nobody-may-see-this"
    with here.start(
        "run", "--no-analyze", str(TOPOLOGIES / "stock-quotes.txt"), "--local", "--json", PANDA_TOKEN=secret
    ) as process:
        wait_until(lambda: len(here.processes()) >= 5, "brokers run")
        for pid in here.processes():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            assert secret.encode() not in line
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert json.loads(out)["summary"]["delivered"] == {"S0": 60}
    assert secret not in out + err
    seen = [path for path in here.folder.rglob("*") if path.is_file() and secret in path.read_text()]
    assert seen == []


HOSTILE = st.sampled_from(
    [
        "-rf",
        "--help",
        "'; touch {canary}; '",
        '"; touch {canary}; "',
        "$(touch {canary})",
        "`touch {canary}`",
        "| touch {canary}",
        "&& touch {canary}",
        "../../../../{canary}",
        "..",
        "a/../../b",
        "%s%n",
        "x\ny",
        "x\0y",
        "ÿ😀",
        "~root",
        "*",
        "{{{{7*7}}}}",
    ]
)


@settings(max_examples=12)
@given(words=st.lists(st.tuples(HOSTILE, st.integers(0, 3)), min_size=1, max_size=3))
def test_hostile_fields_execute_nothing_and_write_nothing_outside(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    canary = folder / "canary"
    fields = ["A", "10.0.1.1", "/bin/echo", "hello"]
    for word, at in words:
        fields[at] += word.format(canary=canary)
    quoted = ['"' + field.replace("\\", "\\\\").replace('"', '\\"') + '"' for field in fields]
    (folder / "t.txt").write_text(f"0 ADD {' '.join(quoted)}\n1 REMOVE {quoted[0]} {quoted[1]}\n")
    here = Here(folder)
    before = set(folder.parent.iterdir())
    try:
        ended = here("run", "--no-analyze", "t.txt", "--local", "--for", "1", "--gate-timeout", "5")
    finally:
        here.close()
    assert ended.returncode in (0, 1, 2, 4), ended.stderr
    assert "Traceback" not in ended.stderr
    assert not canary.exists()
    assert set(folder.parent.iterdir()) == before
    assert {path.name for path in folder.iterdir()} <= {"t.txt", "runs"}
