"""The `panda` command as a process of its own, with a home of its own."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0
COMMAND = [sys.executable, "-m", "tests.prepare.panda_command"]
CHECKOUT = Path(__file__).parents[2]


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(CHECKOUT), **more}


def panda(home: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=home,
        env=environment(home, **more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )


def answer_json(answer: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def panda_at_a_terminal(home: Path, typed: str, *arguments: str, **more: str) -> tuple[int, str, str]:
    """The exit code, stdout, and what the terminal showed."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=home,
            env=environment(home, **more),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        terminal.write(typed.encode())
        shown = b""
        try:
            while piece := terminal.read(4096):
                shown += piece
        except OSError:  # the other end is closed: the process has ended
            pass
        with process:
            stdout = process.communicate(timeout=TIMEOUT_S)[0]
    return process.returncode, stdout, shown.decode()


if __name__ == "__main__":
    from panda.cli.main import main

    main()
