"""Decides which processes belong to a process of the run, and signals them by identity; nobody else, ever."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker_runtime.agent.identity import Entry, entry_of, marker_of, snapshot, tree_below


@dataclass(slots=True, eq=False)
class Member:
    """One life of a process. As long as its zombie is kept, its pid, group and session are its own."""

    process: str
    pid: int
    ticks: int
    pidfd: int = -1
    child: bool = True
    exited: bool = False
    kin: set[tuple[int, int]] = field(default_factory=set)


class Census:
    """A look at all processes of the machine, with the markers of those that may be ours."""

    def __init__(self, markers: dict[tuple[int, int], str], spared: int, kept: Iterable[int]) -> None:
        self.everything = snapshot()
        self._us = os.getpid()
        self._spared = {self._us, spared}
        self._kept = set(kept)
        self._markers = markers
        there = {entry.key for entry in self.everything.values()}
        for key in [key for key in markers if key not in there]:
            del markers[key]

    def kin(self, members: Iterable[Member], marker_part: str) -> list[Entry]:
        """What is left of a process: by descent, session, group, marker, and by having been seen before."""
        roots = set(self._marked(marker_part))
        for member in members:
            roots |= {pid for pid, ticks in member.kin if self._is(pid, ticks)}
            if self._is(member.pid, member.ticks):
                roots.add(member.pid)
                for entry in self.everything.values():
                    if member.pid in (entry.session, entry.group):
                        roots.add(entry.pid)
        found = self._with_descendants(roots)
        for member in members:
            member.kin = {entry.key for entry in found}
        return found

    def strays(self, marker_part: str) -> list[Entry]:
        """Whatever the kernel made our child because its parent ended, and what carries our marker."""
        roots = {entry.pid for entry in self.everything.values() if entry.parent == self._us}
        return self._with_descendants((roots | set(self._marked(marker_part))) - self._spared)

    def zombies(self) -> list[int]:
        """Children of ours that ended and wait to be taken note of."""
        return [
            entry.pid
            for entry in self.everything.values()
            if entry.parent == self._us and entry.state == "Z" and entry.pid not in self._spared | self._kept
        ]

    def by_marker(self, marker: str) -> Entry | None:
        """The process that was started with this marker: it leads its session."""
        for pid in self._marked(marker):
            entry = self.everything[pid]
            if entry.session == pid and self._markers[entry.key] == marker:
                return entry
        return None

    def _with_descendants(self, roots: set[int]) -> list[Entry]:
        below = {entry.pid for entry in tree_below(roots, self.everything)}
        entries = (self.everything[pid] for pid in sorted((roots | below) - self._spared))
        return [entry for entry in entries if entry.state not in "ZX"]

    def _is(self, pid: int, ticks: int) -> bool:
        entry = self.everything.get(pid)
        return entry is not None and entry.ticks == ticks

    def _marked(self, part: str) -> list[int]:
        found = []
        for pid, entry in self.everything.items():
            marker = self._markers.get(entry.key)
            if marker is None:
                marker = self._markers[entry.key] = marker_of(pid)
            if part in marker:
                found.append(pid)
        return found


def send(entry: Entry, number: int) -> None:
    """Signal this very process: the descriptor is opened first, then it is made sure whose it is."""
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(entry.pid)
        try:
            now = entry_of(entry.pid)
            if now is not None and now.ticks == entry.ticks:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def send_to_group(member: Member, number: int) -> None:
    """Signal the group that a process leads, if it is there to lead it."""
    entry = entry_of(member.pid)
    if entry is not None and entry.ticks == member.ticks:
        with contextlib.suppress(OSError):
            os.killpg(member.pid, number)
