"""Finds the processes that descend from one of ours; ends them by their identity, never by a name.

Ansible gives its workers sessions of their own, so that ending a process group does not reach them. Spark's
stay in the session of whoever started them, also when their parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """A number may be given out again; with the time of its start it is one process."""

    pid: int
    started: str


def offspring(pid: int) -> set[Identity]:
    """Where there is no /proc, nothing is found."""
    parents: dict[int, list[Identity]] = {}
    for entry in PROC.glob("[0-9]*"):
        if fields := _fields(int(entry.name)):
            parents.setdefault(int(fields[1]), []).append(Identity(int(entry.name), fields[19]))
    found: set[Identity] = set()
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child.pid)
    return found


def members(session: int) -> set[Identity]:
    """Everybody in a session; the number is not given out again as long as there is anybody."""
    found = set()
    for entry in PROC.glob("[0-9]*"):
        fields = _fields(int(entry.name))
        if fields and int(fields[3]) == session:
            found.add(Identity(int(entry.name), fields[19]))
    return found


def identity_of(pid: int) -> Identity | None:
    fields = _fields(pid)
    return Identity(pid, fields[19]) if fields else None


def lives(process: Identity) -> bool:
    """Whether this very process runs; a zombie does not."""
    fields = _fields(process.pid)
    return bool(fields) and fields[19] == process.started and fields[0] not in "ZX"


def end(processes: Iterable[Identity], number: int = signal.SIGKILL) -> None:
    for process in processes:
        fields = _fields(process.pid)
        if fields and fields[19] == process.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state on: the name before it may hold anything."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
