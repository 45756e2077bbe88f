"""Decides which process is meant: by boot, pid and start time, never by a name. It signals nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

MARKER: Final = "PANDA_PROCESS"
PROC: Final = Path("/proc")
ENVIRON_BYTES_MAX: Final = 2 << 20


class Entry(NamedTuple):
    """What the kernel says of a process in /proc/PID/stat."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    ticks: int

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.ticks


def boot_id() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # hidden in some containers; then the start of the machine has to do
        with (PROC / "stat").open() as lines:
            return next((line.split()[1] for line in lines if line.startswith("btime")), "unknown")


def entry_of(pid: int) -> Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (read by the hundred)
            text = file.read()
    except OSError:
        return None
    # The name may hold anything, also spaces and parentheses: what follows its end is numbers.
    fields = text[text.rfind(b")") + 2 :].split()
    return Entry(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def start_ticks(pid: int) -> int | None:
    entry = entry_of(pid)
    return entry.ticks if entry else None


def lives(pid: int, ticks: int) -> bool:
    """Whether this very process runs; a zombie does not."""
    entry = entry_of(pid)
    return entry is not None and entry.ticks == ticks and entry.state not in "ZX"


def snapshot() -> dict[int, Entry]:
    """Every process there is."""
    found = (entry_of(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return {entry.pid: entry for entry in found if entry is not None}


def marker_of(pid: int) -> str:
    """The marker in a process's environment; empty if it has none or is not ours to read."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return ""
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            data = file.read(ENVIRON_BYTES_MAX)
    except OSError:
        return ""
    wanted = MARKER.encode() + b"="
    for variable in data.split(b"\0"):
        if variable.startswith(wanted):
            return variable[len(wanted) :].decode(errors="replace").rstrip()
    return ""


def tree_below(roots: set[int], everything: dict[int, Entry]) -> Iterator[Entry]:
    """The descendants of some processes, without these."""
    children: dict[int, list[Entry]] = {}
    for entry in everything.values():
        children.setdefault(entry.parent, []).append(entry)
    waiting = list(roots)
    seen = set(roots)
    while waiting:
        for entry in children.get(waiting.pop(), ()):
            if entry.pid not in seen:
                seen.add(entry.pid)
                waiting.append(entry.pid)
                yield entry
