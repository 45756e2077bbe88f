"""Finds the processes that descend from one of ours; ends them by their identity, never by a name.

Ansible gives its workers sessions of their own, so that ending a process group does not reach them.
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


def end(processes: Iterable[Identity]) -> None:
    for process in processes:
        fields = _fields(process.pid)
        if fields and fields[19] == process.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state on: the name before it may hold anything."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
