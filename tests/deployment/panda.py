"""`panda` as a process of its own, on the hosts of the bed: what it said, and what it left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.bed import Bed, BedHost

TIMEOUT_S = 60.0
OURS = re.compile(r"broker_runtime|startbroker|\bpanda \w+ \S+ of ")  # the last: forked by a warm parent
CHECKOUT = Path(__file__).resolve().parents[2]

DIALECTS = {
    "options": (
        "0 ADD BrokerA {0} startbroker.sh -Xms 64 -Xmx 128 -hostname {0} -p {port} -i BrokerA\n"
        "0 ADD BrokerB {1} startbroker.sh -Xms 64 -Xmx 128 -hostname {1} -p {port} -i BrokerB -n {0}:{port}\n"
        "0 ADD BrokerC {2} startbroker.sh -p {port} -i BrokerC -n {1}:{port}\n"
    ),
    "uri": (
        "0 ADD BrokerA {0} bin/startbroker -uri socket://{0}:{port}/BrokerA\n"
        "0 ADD BrokerB {1} bin/startbroker -uri socket://{1}:{port}/BrokerB -n socket://{0}:{port}/BrokerA\n"
        "0 ADD BrokerC {2} bin/startbroker -uri socket://{2}:{port}/BrokerC -n socket://{1}:{port}/BrokerB\n"
    ),
}
CLIENTS = (
    "0 ADD S0 {2} startSQsubscriber.sh -i S0 -s \"[class,eq,'STOCK']\" -b {2}:{port} --quiet\n"
    "0.5 ADD P0 {0} startSQpublisher.sh -i P0 -s YHOO -r 6000 --count {count} -b {0}:{port}\n"
)
PORT = 10_000


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Panda:
    """Runs verbs in a folder of its own; everything started is ended."""

    def __init__(self, folder: Path, bed: Bed) -> None:
        self.folder = folder
        self.bed = bed
        self.environment = {**os.environ, **bed.environment(), "HOME": str(folder)}
        self.environment["XDG_CACHE_HOME"] = str(bed.folder / "cache")  # one bundle for all tests
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", "from panda.cli.main import main; main()", *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], timeout_s: float = TIMEOUT_S) -> Ended:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"panda did not end\n{out}\n{err}") from None
        return Ended(process.returncode, out, err)

    def __call__(self, *arguments: str, **variables: str) -> Ended:
        return self.end(self.start(*arguments, **variables))

    def topology(self, text: str, name: str = "topo.txt", *, count: int = 100) -> str:
        """A file with the bed's addresses for {0}, {1}, {2}, {3}."""
        addresses = [host.address for host in self.bed.hosts]
        (self.folder / name).write_text(text.format(*addresses, port=PORT, count=count))
        return name

    @property
    def inventory(self) -> list[str]:
        return ["--inventory", str(self.bed.inventory_file)]

    def run_folder(self) -> Path:
        return max((self.folder / "runs").iterdir())

    def journal(self) -> list[dict[str, Any]]:
        lines = (self.run_folder() / "journal.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def agent_events(self, kind: str) -> list[dict[str, Any]]:
        return [
            entry["event"]
            for entry in self.journal()
            if entry["kind"] == "agent" and entry["event"]["kind"] == kind
        ]

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def wait_until(holds: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> Any:
    """The first true answer; asked again and again."""
    pause = threading.Event()
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        pause.wait(0.05)
    raise AssertionError(f"not in time: {what}")


def ours(host: BedHost) -> list[str]:
    """What of ours runs on the host: command lines."""
    listed = host.run_inside(["ps", "-eo", "pid=,args="]).stdout.splitlines()
    return [line for line in listed if OURS.search(line)]


def left_behind(bed: Bed) -> dict[str, list[str]]:
    """Processes and run folders of ours, by host; nothing, if all is as it should be."""
    found: dict[str, list[str]] = {}
    for host in bed.hosts:
        root = host.host.root if host.host.root.startswith("/") else f"/home/{host.user}/{host.host.root}"
        script = f"ls -d {root}/runs/* 2>/dev/null || true"
        folders = host.run_inside(["sh", "-c", script]).stdout.split()
        if ours(host) or folders:
            found[host.name] = ours(host) + folders
    return found


def end_all(bed: Bed, hosts: Sequence[BedHost] = ()) -> None:
    """Whatever a failed test left on the bed, or on some hosts: agents and their processes, by pid."""
    for host in hosts or bed.hosts:
        for line in ours(host):
            host.run_inside(["kill", "-KILL", line.split()[0]], check=False)
        host.run_inside(["sh", "-c", f"rm -rf /home/{host.user}/.panda/runs"], check=False)


def panda_of(tmp_path: Path, bed: Bed) -> Iterator[Panda]:
    panda = Panda(tmp_path, bed)
    try:
        yield panda
    finally:
        panda.close()
        bed.heal()
        end_all(bed)


@pytest.fixture
def panda(tmp_path: Path, bed: Bed) -> Iterator[Panda]:
    yield from panda_of(tmp_path, bed)
