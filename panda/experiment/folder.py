"""Decides what is kept of a run and where: one folder that explains, compares and repeats it.

topology.txt        as it was read
plan.json           what was to happen, with every address and argument; no secret
versions.json       of panda and of Python
journal.jsonl       what the controller did, and every event of every agent
clocks.jsonl        how far each host's clock was from ours
hosts/HOST/…        what was collected
analysis.json       what the analysis said of it, if there was one
lock                held by the controller that steers
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from panda.hosts.host import Host
from panda.plan.model import Plan, PlannedLink, PlannedProcess, PlannedStep, Policy

RUNS = Path("runs")
NAME_LENGTH_MAX = 40
LOOKED_AT_MAX = 20  # runs, when one is looked for that is not over
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class RunRefused(Exception):
    """The run that was named cannot be used; says why and what would help."""


class Locked(Exception):
    """Another controller steers the run."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def safe_name(text: str) -> str:
    """The text as the name of a file: nothing in it can lead out of a folder."""
    return _NAME.sub("-", text).strip(".-")[:NAME_LENGTH_MAX] or "run"


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.Lock()

    @property
    def id(self) -> str:
        return self.path.name

    # Finding

    @classmethod
    def create(cls, runs: Path, name: str, now: float) -> RunFolder:
        try:
            runs.mkdir(parents=True, exist_ok=True)
            return cls._new(runs, name, now)
        except OSError as error:
            raise RunRefused(f"no run can be kept in {runs}: {error.strerror}; say --runs FOLDER") from None

    @classmethod
    def _new(cls, runs: Path, name: str, now: float) -> RunFolder:
        stem = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{safe_name(name)}"
        for number in range(1, 1000):
            path = runs / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return cls(path)
        raise RunRefused(f"{runs} has a thousand runs of this second")

    @classmethod
    def all(cls, runs: Path) -> list[RunFolder]:
        """Every run, the oldest first."""
        if not runs.exists():
            return []
        try:
            return [cls(path) for path in sorted(runs.iterdir()) if (path / "plan.json").is_file()]
        except OSError as error:
            raise RunRefused(f"{runs} cannot be read: {error.strerror}") from None

    @classmethod
    def find(cls, runs: Path, wanted: str = "") -> RunFolder:
        """The run with this id, or a part of it that no other has.

        When nothing is said, the newest that is not over, else the newest.
        """
        if wanted and (Path(wanted) / "plan.json").is_file():
            return cls(Path(wanted))
        known = cls.all(runs)
        if not known:
            raise RunRefused(
                f"there are no runs in {runs}/: start one with panda deploy, or say --runs FOLDER"
            )
        if not wanted:
            lately = known[: -LOOKED_AT_MAX - 1 : -1]
            return next((run for run in lately if not run.over), known[-1])
        exact = [run for run in known if run.id == wanted]
        fitting = exact or [run for run in known if wanted in run.id]
        if len(fitting) == 1:
            return fitting[0]
        names = ", ".join(run.id for run in (fitting or known)[-5:])
        if fitting:
            raise RunRefused(f"several runs in {runs}/ fit {wanted!r}, say which: {names}")
        raise RunRefused(f"there is no run {wanted!r} in {runs}/; the newest are {names}")

    # The lock

    @contextmanager
    def locked(self, holder: str, *, force: bool = False) -> Iterator[None]:
        """Hold the run for this controller; Locked when somebody has it.

        By force it goes on without the lock: the agents' epochs keep the two controllers apart.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not force:
                    raise Locked(os.pread(descriptor, 200, 0).decode("utf-8", "replace")) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode(), 0)
            yield
        finally:
            os.close(descriptor)

    @property
    def holder(self) -> str:
        """Who steers the run; empty if nobody does. To ask leaves no trace."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(descriptor, 200, 0).decode("utf-8", "replace") or "another controller"
        finally:
            os.close(descriptor)
        return ""

    @property
    def held(self) -> bool:
        return bool(self.holder)

    # Files

    def write_text(self, name: str, text: str) -> None:
        """All of the file or nothing."""
        path = self.path / name
        part = path.with_name(f".{name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)

    def write_plan(self, plan: Plan) -> None:
        data = asdict(plan)
        data["environment"] = sorted(plan.environment)  # the names alone: values may be secrets
        self.write_text("plan.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def lines(self) -> str:
        """The topology as plain lines, each ended."""
        return (self.path / "lines.txt").read_text(encoding="utf-8")

    def add_line(self, line: str, plan: Plan, *, who: str) -> None:
        """The run has one more line."""
        self.record("line", text=line, who=who, synced=True)
        self.write_text("lines.txt", f"{self.lines()}{line}\n")
        self.write_plan(plan)

    def read_plan(self, environment: Mapping[str, str] | None = None) -> Plan:
        try:
            return plan_of(
                json.loads((self.path / "plan.json").read_text(encoding="utf-8")), environment or {}
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunRefused(f"{self.path / 'plan.json'} cannot be read: {error}") from None

    def record(self, kind: str, *, synced: bool = False, **fields: Any) -> None:
        """One more line in the journal."""
        line = json.dumps({"t": round(time.time(), 6), "kind": kind, **fields}, ensure_ascii=False) + "\n"
        self._append("journal.jsonl", line, synced)

    def record_clock(self, host: str, **fields: float) -> None:
        self._append("clocks.jsonl", json.dumps({"host": host, **fields}) + "\n", synced=False)

    def _append(self, name: str, line: str, synced: bool) -> None:
        with self._writing:
            descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode())
                if synced:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def journal(self) -> Iterator[dict[str, Any]]:
        """What was recorded; a last line that a killed controller left half-written is passed over."""
        return read_lines(self.path / "journal.jsonl")

    def cleaned(self) -> set[str]:
        """The hosts on which nothing of the run is left."""
        return {
            str(entry["host"]) for entry in self.journal() if entry["kind"] == "closed" and entry["cleaned"]
        }

    @property
    def over(self) -> bool:
        """Whether nothing of it is left anywhere, or nothing was ever there."""
        entries = list(self.journal())
        if any(entry["kind"] == "unreached" for entry in entries):
            return True
        cleaned = {str(e["host"]) for e in entries if e["kind"] == "closed" and e["cleaned"]}
        return cleaned >= {host.name for host in self.read_plan().hosts}

    def ending(self) -> str:
        """How the run is to end, as its first controller was told; empty when it was never begun."""
        return next((str(entry["ending"]) for entry in self.journal() if entry["kind"] == "begun"), "")

    def clocks(self) -> Iterator[dict[str, Any]]:
        return read_lines(self.path / "clocks.jsonl")

    def discard(self) -> None:
        """Remove the folder of a run that never began."""
        for name in (
            "plan.json",
            "versions.json",
            "lines.txt",
            *(path.name for path in self.path.glob("topology*")),
        ):
            (self.path / name).unlink(missing_ok=True)
        self.path.rmdir()

    @property
    def local(self) -> Path:
        """Where hosts that are this machine have their folders."""
        return self.path / "local"

    def tidy(self) -> None:
        """Remove the folders of local hosts as far as their agents have left nothing in them."""
        for folder in (*sorted(self.local.glob("*")), self.local):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def collected(self, host: str) -> Path:
        return self.path / "hosts" / host_folder(host)


def host_folder(host: str) -> str:
    """A host's name as the name of a folder; different names stay different."""
    safe = _NAME.sub("-", host).strip(".-")
    return safe if safe == host else f"{safe}-{host.encode().hex()[:16]}"


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def plan_of(data: Mapping[str, Any], environment: Mapping[str, str]) -> Plan:
    return Plan(
        run=data["run"],
        name=data["name"],
        hosts=tuple(Host(**{**each, "keys": tuple(each["keys"])}) for each in data["hosts"]),
        processes=tuple(
            PlannedProcess(**{**each, "arguments": tuple(each["arguments"])}) for each in data["processes"]
        ),
        links=tuple(PlannedLink(**each) for each in data["links"]),
        steps=tuple(PlannedStep(**each) for each in data["steps"]),
        policy=Policy(data["policy"]),
        stop_at_s=data["stop_at_s"],
        gate_timeout_s=data["gate_timeout_s"],
        environment=environment,
    )
