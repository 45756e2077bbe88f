"""Real processes of the runtime: on free loopback ports, waited for by what they print, ended by pid."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

TIMEOUT_S = 20.0
# Should the tests themselves be killed, no fixture runs: then the kernel ends what they started.
END_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Lines:
    """What a pipe said so far; whoever waits is woken by each line."""

    def __init__(self, pipe: "os.PathLike[str] | object", changed: threading.Condition) -> None:
        self.seen: list[str] = []
        self.ended = False
        self._changed = changed
        self.thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self.thread.start()

    def _read(self, pipe: object) -> None:
        for line in pipe:  # type: ignore[attr-defined]
            with self._changed:
                self.seen.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()


class Process:
    def __init__(
        self, arguments: Sequence[str], cwd: Path, environment: dict[str, str], kept: Sequence[int] = ()
    ) -> None:
        self._changed = threading.Condition()
        self.popen = subprocess.Popen(
            [*END_WITH_US, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=cwd,
            env={**os.environ, **environment},
            pass_fds=kept,
            start_new_session=True,
        )
        self.stdout = Lines(self.popen.stdout, self._changed)
        self.stderr = Lines(self.popen.stderr, self._changed)

    def wait_for(self, wanted: Callable[[str], bool] | str, lines: Lines | None = None) -> str:
        """The first line, of stdout unless told otherwise, that is wanted."""
        lines = lines or self.stdout
        holds = (lambda line: wanted in line) if isinstance(wanted, str) else wanted

        def found() -> str | None:
            return next((line for line in lines.seen if holds(line)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None or lines.ended, TIMEOUT_S)
            line = found()
        assert line is not None, f"{wanted!r} did not come\n{self.said()}"
        return line

    def said(self) -> str:
        return "\n".join(["stdout:", *self.stdout.seen, "stderr:", *self.stderr.seen])

    def type(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def end_of_input(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def wait(self) -> int:
        """The exit code, with everything that was said read."""
        code = self.popen.wait(TIMEOUT_S)
        self.stdout.thread.join(TIMEOUT_S)
        self.stderr.thread.join(TIMEOUT_S)
        return code

    def terminate(self) -> int:
        self.popen.terminate()
        return self.wait()

    def close(self) -> None:
        """End the process, whatever it does."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Processes:
    """Everything a test started; the fixture ends it all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        self._all: list[Process] = []

    def start(
        self, *arguments: str, program: Sequence[str] = (), kept: Sequence[int] = (), **environment: str
    ) -> Process:
        command = [*(program or (sys.executable, "-m", "broker_runtime")), *arguments]
        process = Process(command, self.folder, {**self.environment, **environment}, kept)
        self._all.append(process)
        return process

    def run(self, *arguments: str, **environment: str) -> Process:
        """Start a process and wait for its end."""
        process = self.start(*arguments, **environment)
        process.end_of_input()
        process.wait()
        return process

    def code(self, process: Process) -> int:
        return process.popen.returncode

    def broker(self, id_: str, *neighbours: str, options: Sequence[str] = (), port: int = 0) -> Process:
        """A broker that is ready, with a log; its address is in `addresses`."""
        arguments = ["broker", "-i", id_, "-p", str(port), "--log", f"{id_}.jsonl", *options]
        if neighbours:
            arguments += ["-n", ",".join(self.addresses.get(name, name) for name in neighbours)]
        process = self.start(*arguments)
        self.addresses[id_] = process.wait_for(f"ready {id_} ").split()[2]
        return process

    def close(self) -> None:
        for process in self._all:
            process.close()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    try:
        yield started
    finally:
        started.close()
