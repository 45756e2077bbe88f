"""The agent's end of the line: processes that are started with one, what they report, orders to them."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.support.processes import TIMEOUT_S, Process, Processes

Report = dict[str, Any]


class AgentEnd:
    """Everything that was reported so far; whoever waits is woken by each report."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reports: list[Report] = []
        self.ended = False
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self.sock.makefile("rb") as lines:
            for line in lines:
                with self._changed:
                    self.reports.append(json.loads(line))
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait_for(self, **fields: object) -> Report:
        """The first report with these fields; it is taken, so that the next such report can be waited for."""

        def found() -> Report | None:
            return next((each for each in self.reports if fields.items() <= each.items()), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None or self.ended, TIMEOUT_S)
            report = found()
            assert report is not None, f"{fields} did not come, only {self.reports}"
            self.reports.remove(report)
        return report

    def wait_for_end(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended, TIMEOUT_S)

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def order(self, **fields: object) -> Report:
        """Give an order and take its answer."""
        number = next(self._numbers)
        self.say(json.dumps({**fields, "number": number}).encode() + b"\n")
        return self.wait_for(say="fault", number=number)

    def fault(self, kind: str, peer: str, value: float | None = None, for_s: float | None = None) -> None:
        answer = self.order(fault=kind, peer=peer, value=value, for_s=for_s)
        assert answer.get("ok") is True, answer

    def heal(self, peer: str = "*") -> None:
        assert self.order(heal=peer).get("ok") is True

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the process has gone first
            self.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT_S)
        self.sock.close()


class Lines:
    """Processes with a line each; the fixture ends them all."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.folder = processes.folder
        self.addresses = processes.addresses
        self._ends: list[AgentEnd] = []

    def start(self, *arguments: str, **environment: str) -> tuple[Process, AgentEnd]:
        """A process of the runtime, started with PANDA_LINE."""
        ours, theirs = socket.socketpair()
        with theirs:
            line = AgentEnd(ours)
            self._ends.append(line)
            number = theirs.fileno()
            process = self.processes.start(*arguments, kept=[number], PANDA_LINE=str(number), **environment)
        return process, line

    def broker(self, id_: str, *neighbours: str, options: tuple[str, ...] = ()) -> tuple[Process, AgentEnd]:
        """A broker that has reported that it is ready, with a log; its address is in `addresses`."""
        arguments = ["broker", "-i", id_, "-p", "0", "--log", f"{id_}.jsonl", *options]
        if neighbours:
            arguments += ["-n", ",".join(self.addresses[name] for name in neighbours)]
        process, line = self.start(*arguments)
        self.addresses[id_] = line.wait_for(say="ready", id=id_)["address"]
        return process, line

    def close(self) -> None:
        self.processes.close()
        for end in self._ends:
            end.close()


@pytest.fixture
def lines(processes: Processes) -> Iterator[Lines]:
    started = Lines(processes)
    try:
        yield started
    finally:
        started.close()
