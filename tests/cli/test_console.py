"""`panda console`: what is refused before a screen is opened, and that it opens one."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.consoles import kept_run

PANDA = [sys.executable, "-c", "from panda.cli.main import main; main()", "console"]


def refused(folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [*PANDA, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended
    assert ended.stdout == ""
    return ended.stderr


def test_it_needs_a_terminal(tmp_path: Path) -> None:
    assert "panda shell is for pipes and scripts" in refused(tmp_path)


def test_a_run_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    kept_run(tmp_path / "runs")
    assert "there is no run 'other'" in refused(tmp_path, "other")


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "--broker" in refused(tmp_path, "--broker", "nowhere")


def test_it_is_a_program_of_its_own_at_a_terminal_and_gives_it_back(tmp_path: Path) -> None:
    kept_run(tmp_path / "runs", name="mine")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        [*PANDA, "--light"], cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            read_until(ours, b"-mine")
            os.write(ours, b"\x11")  # ^Q
            read_until(ours, b"\x1b[?1049l")
            assert process.wait(timeout=20) == 0
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            os.close(ours)


def read_until(terminal: int, wanted: bytes, timeout_s: float = 30.0) -> None:
    seen, end = b"", time.monotonic() + timeout_s
    while wanted not in seen:
        assert time.monotonic() < end, seen[-2000:]
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536)
