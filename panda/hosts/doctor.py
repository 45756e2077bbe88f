"""Is a host fit for an experiment? Asks every host side by side; changes nothing on any of them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Timer
from typing import Any

from panda.hosts.host import Host
from panda.hosts.probe import MARK
from panda.hosts.remote import (
    Channel,
    CommandFailed,
    HostError,
    HostKeyRefused,
    LoginRefused,
    Remote,
    Unreachable,
)

SIDE_BY_SIDE_MAX = 16
PROBE_TIMEOUT_S = 15.0
"""For everything after the login; the connection has a time-out of its own."""
PYTHON_MIN = (3, 11)
DISK_FREE_MIN_BYTES = 256 * 2**20
CLOCK_OFFSET_MAX_S = 1.0
"""Offsets are measured and corrected for; one above this means that nothing keeps the time there."""
CLOCK_ROUNDS = 8
UPLOAD_BYTES = 4 * 2**20
UPLOAD_PIECE_BYTES = 256 * 1024
NOISE_BYTES_MAX = 2**20
LINE_BYTES_MAX = 2**20

Connect = Callable[[Host], Remote]


class Verdict(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Name(StrEnum):
    REACHABLE = "reachable"
    HOST_KEY = "host key"
    LOGIN = "login"
    PYTHON = "python"
    DISK = "disk"
    CLOCK = "clock"
    PORTS = "ports"
    SPEED = "speed"


@dataclass(frozen=True, slots=True)
class Check:
    """`text` is for a reader, `values` for a program."""

    name: Name
    verdict: Verdict
    text: str = ""
    hint: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    host: Host
    checks: tuple[Check, ...]
    seconds: float

    @property
    def reachable(self) -> bool:
        return self.checks[0].verdict is not Verdict.FAILED

    @property
    def fit(self) -> bool:
        return all(check.verdict is Verdict.OK for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict is Verdict.FAILED)


def check(
    connect: Connect,
    hosts: Sequence[Host],
    ports: Mapping[str, Sequence[int]] | None = None,
    *,
    timeout_s: float = PROBE_TIMEOUT_S,
    on_report: Callable[[Report], None] = lambda _report: None,
) -> list[Report]:
    """A report for each host, in their order; `ports` are those that each host should have free."""

    def examine(host: Host) -> Report:
        began = time.monotonic()
        found = _examine(connect, host, (ports or {}).get(host.name, ()), timeout_s)
        known = {check.name: check for check in found}
        complete = tuple(known.get(name, Check(name, Verdict.UNKNOWN)) for name in Name)
        report = Report(host, complete, time.monotonic() - began)
        on_report(report)
        return report

    with ThreadPoolExecutor(SIDE_BY_SIDE_MAX, thread_name_prefix="doctor") as pool:
        reports = [pool.submit(examine, host) for host in hosts]
        try:
            return [report.result() for report in reports]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # those that have not begun need not
            raise


def _examine(connect: Connect, host: Host, ports: Sequence[int], timeout_s: float) -> list[Check]:
    try:
        remote = connect(host)
    except HostError as error:
        return _not_let_in(error)
    checks = [Check(name, Verdict.OK) for name in (Name.REACHABLE, Name.HOST_KEY, Name.LOGIN)]
    watchdog = Timer(timeout_s, remote.close)
    watchdog.daemon = True
    try:
        with contextlib.closing(remote):
            watchdog.start()
            checks += _ask(remote, ports, timeout_s)
    except CommandFailed as error:
        said = error.last.strip().splitlines()
        checks.append(Check(Name.PYTHON, Verdict.FAILED, f"{host.python}: {said[-1] if said else 'no'}"))
    except HostError as error:
        checks.append(Check(Name.PYTHON, Verdict.FAILED, error.reason, error.hint))
    finally:
        watchdog.cancel()
    return checks


def _not_let_in(error: HostError) -> list[Check]:
    """How far we came, and where it ended."""
    failed: dict[Name, Verdict] = {}
    if isinstance(error, LoginRefused):
        failed = {Name.REACHABLE: Verdict.OK, Name.HOST_KEY: Verdict.OK, Name.LOGIN: Verdict.FAILED}
    elif isinstance(error, HostKeyRefused):
        failed = {Name.REACHABLE: Verdict.OK, Name.HOST_KEY: Verdict.FAILED}
    elif isinstance(error, Unreachable):
        failed = {Name.REACHABLE: Verdict.FAILED}
    else:  # it was our own side that could not even try
        failed = {Name.REACHABLE: Verdict.UNKNOWN, Name.LOGIN: Verdict.FAILED}
    return [
        Check(name, verdict, error.reason, error.hint) if verdict is Verdict.FAILED else Check(name, verdict)
        for name, verdict in failed.items()
    ]


class _Silent(Exception):
    """The host stopped answering in the middle of a check."""

    def __init__(self, about: Name, reason: str) -> None:
        super().__init__(reason)
        self.about = about


def _ask(remote: Remote, ports: Sequence[int], timeout_s: float) -> list[Check]:
    """Everything over one channel; what was found before a silence is kept."""
    probe = Path(__file__).with_name("probe.py").read_text()
    channel = remote.open([remote.host.python, "-c", probe])
    watchdog = Timer(timeout_s, channel.close)
    watchdog.daemon = True
    watchdog.start()
    host = remote.host
    found: list[Check] = []
    talk = _Talk(channel, host, timeout_s)
    try:
        talk.begin()
        found += _facts(talk, host)
        found.append(_clock(talk))
        found.append(_ports(talk, host, ports))
        found.append(_speed(talk))
    except _Silent as silence:
        found.append(Check(silence.about, Verdict.FAILED, str(silence)))
    except (KeyError, TypeError, ValueError, OverflowError):
        found.append(Check(talk.about, Verdict.FAILED, "an answer that makes no sense"))
    finally:
        watchdog.cancel()
        channel.close()
    return found


class _Talk:
    """Lines of JSON to and from the probe."""

    def __init__(self, channel: Channel, host: Host, timeout_s: float) -> None:
        self._channel = channel
        self._host = host
        self._began = time.monotonic()
        self._timeout_s = timeout_s
        self._rest = b""
        self.about = Name.PYTHON

    def begin(self) -> None:
        """Skip what a login script says before the probe does."""
        seen = 0
        while True:
            line = self._line()
            seen += len(line)
            if line.strip() == MARK.encode():
                return
            if seen > NOISE_BYTES_MAX:
                raise _Silent(self.about, "the login prints without end")

    def ask(self, about: Name, **question: object) -> dict[str, Any]:
        self.about = about
        self.write(json.dumps(question).encode() + b"\n")
        return self.answer()

    def write(self, data: bytes) -> None:
        try:
            self._channel.write(data)
        except HostError as error:
            raise _Silent(self.about, self._why() or error.reason) from None

    def answer(self) -> dict[str, Any]:
        line = self._line()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _Silent(self.about, f"an answer that makes no sense: {line[:60]!r}")
        return answer

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            data = self._channel.read(65_536)
            if not data or len(self._rest) > LINE_BYTES_MAX:
                raise _Silent(self.about, self._why() or "the connection ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _why(self) -> str:
        if time.monotonic() - self._began >= self._timeout_s:
            return f"no answer within {self._timeout_s:g} s"
        said = self._channel.said().strip().splitlines()
        return f"{self._host.python}: {said[-1][:200]}" if said else ""


def _facts(talk: _Talk, host: Host) -> list[Check]:
    facts = talk.ask(Name.PYTHON, ask="facts", root=host.root)
    version = tuple(int(number) for number in facts["python"])
    shown = ".".join(map(str, version))
    machine = f"{facts['system']} {facts['machine']}"
    new = version >= PYTHON_MIN
    free = int(facts["disk_free_bytes"])
    values = {"python": shown, "machine": facts["machine"], "system": facts["system"], "cpus": facts["cpus"]}
    python = Check(
        Name.PYTHON,
        Verdict.OK if new else Verdict.FAILED,
        f"{shown}, {machine}",
        "" if new else f"at least {PYTHON_MIN[0]}.{PYTHON_MIN[1]} is needed: panda prepare {host.name}",
        values,
    )
    roomy, writable = free >= DISK_FREE_MIN_BYTES, facts["writable"] is True
    disk = Check(
        Name.DISK,
        Verdict.OK if roomy and writable else Verdict.FAILED,
        f"{free / 2**30:.1f} GiB" + ("" if writable else ", not ours to write"),
        "" if roomy else f"at least {DISK_FREE_MIN_BYTES // 2**20} MiB are needed",
        {"disk_free_bytes": free, "writable": writable},
    )
    return [python, disk]


def _clock(talk: _Talk) -> Check:
    """Four timestamps per round; the quickest round knows best, to half its round trip."""
    best_s, offset_s = float("inf"), 0.0
    for _ in range(CLOCK_ROUNDS):
        sent = time.time()
        answer = talk.ask(Name.CLOCK, ask="clock")
        came = time.time()
        received, answered = float(answer["received"]), float(answer["answered"])
        trip_s = (came - sent) - (answered - received)
        if trip_s < best_s:
            best_s, offset_s = trip_s, ((received - sent) + (answered - came)) / 2
    error_s = max(best_s, 0.0) / 2
    kept = abs(offset_s) - error_s <= CLOCK_OFFSET_MAX_S
    return Check(
        Name.CLOCK,
        Verdict.OK if kept else Verdict.FAILED,
        f"{offset_s * 1000:+.1f} ± {error_s * 1000:.1f} ms",
        "" if kept else "nothing keeps the time there: panda prepare --become",
        {"clock_offset_s": offset_s, "clock_error_s": error_s, "round_trip_s": max(best_s, 0.0)},
    )


def _ports(talk: _Talk, host: Host, ports: Sequence[int]) -> Check:
    wanted = sorted(set(ports))
    if not wanted:
        return Check(Name.PORTS, Verdict.OK, "none wanted", values={"ports": [], "ports_busy": []})
    address = host.where if host.local else "0.0.0.0"  # noqa: S104 - tried for a moment on the host
    busy = talk.ask(Name.PORTS, ask="ports", ports=wanted, address=address)["busy"]
    shown = ", ".join(map(str, busy[:8]))
    return Check(
        Name.PORTS,
        Verdict.FAILED if busy else Verdict.OK,
        f"busy or not allowed: {shown}" if busy else f"{len(wanted)} free",
        "end what listens there, or change the topology" if busy else "",
        {"ports": wanted, "ports_busy": list(busy)},
    )


def _speed(talk: _Talk) -> Check:
    talk.about = Name.SPEED
    piece = bytes(UPLOAD_PIECE_BYTES)
    began = time.monotonic()
    talk.write(json.dumps({"ask": "sink", "size": UPLOAD_BYTES}).encode() + b"\n")
    for _ in range(UPLOAD_BYTES // UPLOAD_PIECE_BYTES):
        talk.write(piece)
    talk.answer()
    speed = UPLOAD_BYTES / max(time.monotonic() - began, 1e-6)
    return Check(
        Name.SPEED, Verdict.OK, f"{speed / 1e6:.0f} MB/s", values={"upload_bytes_per_s": round(speed)}
    )
