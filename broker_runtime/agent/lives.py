"""Decides what is known of a process: whether it runs, as what, with which links and faults."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from broker_runtime.agent.schedule import Item
from broker_runtime.agent.spec import Process

ABSENT: Final = "absent"
STARTING: Final = "starting"
RUNNING: Final = "running"
ENDING: Final = "ending"
EXITED: Final = "exited"
BUSY: Final = frozenset((STARTING, RUNNING, ENDING))
LINKS_MAX: Final = 10_000


@dataclass(slots=True)
class Fault:
    value: float | None
    until_mono: float | None
    until: float | None
    number: int


@dataclass(slots=True)
class Life:
    process: Process
    phase: str = ABSENT
    life: int = 0
    by: int = 0
    pid: int = 0
    ticks: int = 0
    has_line: bool = False
    ready: bool = False
    ready_at: float | None = None
    address: str = ""
    paused: bool = False
    doomed: bool = False  # to be ended as soon as it has started
    code: int | None = None
    signal: int | None = None
    starts: int = 0
    links: dict[str, bool] = field(default_factory=dict)
    faults: dict[tuple[str, str], Fault] = field(default_factory=dict)
    waiting: deque[Item] = field(default_factory=deque)  # until it is neither starting nor ending
    starter: Item | None = None  # the step whose start is under way
    asked: dict[int, tuple[Item, float]] = field(default_factory=dict)  # faults and heals not yet answered
    said_at: float = 0.0
    said: float = 0.0  # a bucket of lines, emptied with time

    def begin(self, life: int, item: Item) -> None:
        self.phase, self.life, self.by, self.starter = STARTING, life, item.step.number, item
        self.pid = self.ticks = 0
        self.has_line = self.ready = self.paused = self.doomed = False
        self.ready_at, self.address, self.code, self.signal = None, "", None, None
        self.links.clear()
        self.faults.clear()

    def told(self) -> dict[str, object]:
        """For a status."""
        fields: dict[str, object] = {
            "id": self.process.id,
            "state": "paused" if self.phase == RUNNING and self.paused else self.phase,
            "ready": self.ready,
            "starts": self.starts,
            "links": dict(self.links),
        }
        if self.phase in (RUNNING, ENDING):
            fields |= {"pid": self.pid, "ticks": self.ticks, "by": self.by}
        if self.address:
            fields["address"] = self.address
        if self.phase == EXITED:
            fields |= {"signal": self.signal} if self.signal is not None else {"code": self.code}
        return fields
