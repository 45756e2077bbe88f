"""A controller for tests: it speaks to a real agent through a real relay, and never waits for ever."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_runtime.agent.identity import lives, marker_of, snapshot
from broker_runtime.agent.protocol import PREAMBLE, FrameReader, PreambleReader, encode, request, result

TIMEOUT_S = 20.0
REPOSITORY = Path(__file__).parents[2]


class Closed(Exception):
    """The relay ended."""


class Controller:
    def __init__(
        self, root: Path, run: str, *options: str, environment: dict[str, str] | None = None
    ) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "broker_runtime.agent", "relay", "--root", root, "--run", run, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
        )
        self.events: list[dict[str, Any]] = []
        self._frames = FrameReader()
        self._preamble: PreambleReader | None = PreambleReader()
        self._messages: list[dict[str, Any]] = []
        self._number = 0

    def receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT_S
        assert self.popen.stdout is not None
        while not self._messages:
            readable, _, _ = select.select([self.popen.stdout], [], [], deadline - time.monotonic())
            assert readable, f"nothing came\n{self.story()}"
            data = os.read(self.popen.stdout.fileno(), 1 << 16)
            if not data:
                raise Closed
            if self._preamble is not None:
                rest = self._preamble.feed(data)
                if rest is None:
                    continue
                self._preamble, data = None, rest
            self._messages += self._frames.feed(data)
        return self._messages.pop(0)

    def send(self, data: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        self.send(encode(request(self._number, do, fields)))
        while True:
            message = self.receive()
            if "event" in message:
                self.events.append(message["event"])
            else:
                assert message["id"] in (self._number, None)
                return result(message)

    def steer(self, **fields: Any) -> dict[str, Any]:
        return self.ask("hello", controller="test", mode="steer", **fields)

    def wait_for(self, kind: str, count: int = 1, **fields: Any) -> dict[str, Any]:
        """The event of a kind with these fields; the last of so many."""

        def found() -> list[dict[str, Any]]:
            return [
                event
                for event in self.events
                if event["kind"] == kind and all(event.get(name) == value for name, value in fields.items())
            ]

        while len(found()) < count:
            message = self.receive()
            assert "event" in message, message
            self.events.append(message["event"])
        return found()[count - 1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def run(self, spec: dict[str, Any], *, go: bool = True) -> None:
        """Load, start, follow; everything of phase 1 is started when this returns."""
        self.ask("load", spec=spec)
        self.ask("events", since=0)
        self.ask("start")
        for step in spec["steps"]:
            if step["at_s"] == 0.0:
                self.wait_for("done", number=step["number"])
        if go:
            self.ask("go", t0=time.time())

    def story(self) -> str:
        return "\n".join(json.dumps(event) for event in self.events[-50:])

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Host:
    """A folder on this machine that stands for a host; whatever was started in it is ended with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.controllers: list[Controller] = []

    def connect(self, run: str = "demo", *options: str, **environment: str) -> Controller:
        controller = Controller(self.root, run, *options, environment=environment)
        self.controllers.append(controller)
        return controller

    def folder(self, run: str = "demo") -> Path:
        return self.root / "runs" / run

    def supervisor(self, run: str = "demo") -> tuple[int, int]:
        """Pid and start of the supervisor, as it wrote them into its lock."""
        pid, ticks = (self.folder(run) / "lock").read_text().split()
        return int(pid), int(ticks)

    def journal(self, run: str = "demo") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder(run) / "journal.jsonl").read_text().splitlines()]

    def close(self) -> None:
        for controller in self.controllers:
            controller.close()
        for folder in (self.root / "runs").glob("*"):
            with contextlib.suppress(FileNotFoundError, ValueError):
                end(*self.supervisor(folder.name))
            with contextlib.suppress(FileNotFoundError, IndexError):
                part = f"/{self.journal(folder.name)[0]['nonce']}."
                for entry in snapshot().values():
                    if part in marker_of(entry.pid):
                        end(entry.pid, entry.ticks)


def end(pid: int, ticks: int) -> None:
    """Kill this very process and wait until it is gone."""
    if lives(pid, ticks):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid, ticks))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.005)


__all__ = ["PREAMBLE", "Closed", "Controller", "Host", "end", "until"]
