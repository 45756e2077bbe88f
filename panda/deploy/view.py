"""Decides what is known of a run from its agents' events; never asks for more.

The same view serves the gate, `panda status` and the console. Everything in it follows from the plan and the
events, so that a controller that comes back later sees what one that never left sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from panda.plan.model import Plan, PlannedProcess


class Stage(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    PAUSED = "paused"
    ENDED = "ended"  # by itself, having done its work
    REMOVED = "removed"  # by a step, or when the run was stopped
    FAILED = "failed"


ENDING = ("remove", "kill", "restart")
LIVING = (Stage.STARTING, Stage.READY, Stage.PAUSED)


@dataclass(slots=True)
class ProcessView:
    planned: PlannedProcess
    stage: Stage = Stage.WAITING
    was_ready: bool = False
    pid: int = 0
    links: dict[str, bool] = field(default_factory=dict)  # by the peer's id on the network
    ended: str = ""  # exit code or signal, in words
    last: str = ""  # last lines of what it said
    starts: int = 0
    leaving: bool = False  # it was asked to end


@dataclass(slots=True)
class StepView:
    number: int
    action: str
    host: str
    process: str
    planned: float
    actual: float | None = None
    error: str = ""

    @property
    def late_s(self) -> float | None:
        return None if self.actual is None else self.actual - self.planned


@dataclass(slots=True)
class HostView:
    seq: int = 0  # of the last event taken
    present: bool = False
    lost: str = ""  # why it is not present
    loaded: bool = False  # it was given its part of the plan
    t0: float | None = None  # by its own clock
    ended: bool = False  # its schedule is done
    stopping: bool = False
    stopped: bool = False  # all its processes are gone, on request
    faults: dict[tuple[str, str, str], float | None] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)


class RunView:
    """What the events say so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.processes = {each.id: ProcessView(each) for each in plan.processes}
        self.hosts = {host.name: HostView() for host in plan.hosts}
        self.steps: dict[int, StepView] = {}  # by number
        self.marks: list[tuple[float, str]] = []

    def take(self, host: str, event: Mapping[str, Any]) -> bool:
        """Learn from an event; False when it is known already."""
        known = self.hosts[host]
        seq = int(event.get("seq", 0))
        if seq <= known.seq:
            return False
        known.seq = seq
        kind = str(event.get("kind", ""))
        process = self.processes.get(str(event.get("process", "")))
        if process is not None and process.planned.host == host:
            self._take_of_process(process, kind, event)
        known.loaded |= kind == "loaded"
        if kind == "go":
            known.t0 = float(event["t0"])
        elif kind == "ended":
            known.ended = True
        elif kind == "stopped":
            known.stopped = True
            known.faults.clear()
        elif kind == "mark":
            self.marks.append((float(event.get("t", 0.0)), str(event.get("text", ""))))
        elif kind == "trouble":
            known.troubles.append(str(event.get("text", "")))
        elif kind in ("intent", "done"):
            if not event.get("lease"):  # else it is the end of a step that is known
                self._take_step(host, kind, event)
            if event.get("action") == "stop":
                known.stopping = True
                for each in self.processes.values():
                    each.leaving = each.leaving or each.planned.host == host
        elif kind in ("fault", "healed"):
            self._take_fault(known, kind, event)
        return True

    def _take_of_process(self, process: ProcessView, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "started":
            process.stage = Stage.STARTING
            process.was_ready = False
            process.pid = int(event.get("pid", 0))
            process.links.clear()
            process.ended = process.last = ""
            process.starts += 1
            process.leaving = False
        elif kind == "ready":
            process.stage = Stage.READY
            process.was_ready = True
        elif kind == "link":
            process.links[str(event.get("peer", ""))] = bool(event.get("up"))
        elif kind == "exited":
            process.links.clear()
            process.ended = _ended(event)
            process.last = str(event.get("last", ""))
            process.stage = _stage_at_exit(process, event)
        elif kind == "intent" and event.get("action") in ENDING and not event.get("lease"):
            process.leaving = True
        elif kind == "done" and not event.get("error"):
            paused = event.get("action") == "pause" and not event.get("lease")
            if paused and process.stage is Stage.READY:
                process.stage = Stage.PAUSED
            elif event.get("action") in ("pause", "resume") and process.stage is Stage.PAUSED:
                process.stage = Stage.READY

    def _take_step(self, host: str, kind: str, event: Mapping[str, Any]) -> None:
        action, process = str(event.get("action", "")), str(event.get("process", ""))
        number = int(event.get("number", 0))
        step = self.steps.get(number)
        if step is None:
            planned = float(event.get("planned") or event.get("t") or 0.0)
            step = self.steps[number] = StepView(number, action, host, process, planned)
        if kind == "done":
            step.actual = float(event.get("actual") or event.get("t") or 0.0)
            step.error = str(event.get("error") or "")
            self._take_failed_start(event)

    def _take_failed_start(self, event: Mapping[str, Any]) -> None:
        """A process that could not even be started has failed, unless it was not to be any more."""
        process = self.processes.get(str(event.get("process", "")))
        if process is None or event.get("action") != "add" or not event.get("error"):
            return
        if process.stage is Stage.WAITING and not self.hosts[process.planned.host].stopping:
            process.stage, process.ended = Stage.FAILED, str(event["error"])

    def _take_fault(self, host: HostView, kind: str, event: Mapping[str, Any]) -> None:
        key = (str(event.get("process", "")), str(event.get("fault", "")), str(event.get("peer", "")))
        if kind == "fault":
            host.faults[key] = event.get("until")
        else:
            host.faults.pop(key, None)

    @property
    def timed_steps(self) -> list[StepView]:
        """Those that had a time to keep: phase 1 goes as fast as it can."""
        at_once = {0, *(step.number for step in self.plan.steps if step.at_s == 0)}  # 0 is the stop
        return [step for number, step in self.steps.items() if number not in at_once]

    @property
    def living(self) -> list[ProcessView]:
        """Those that run and have not been asked to end."""
        return [each for each in self.processes.values() if each.stage in LIVING and not each.leaving]

    @property
    def failed(self) -> list[ProcessView]:
        return [each for each in self.processes.values() if each.stage is Stage.FAILED]

    @property
    def ended(self) -> bool:
        """Whether every host has done its schedule."""
        return all(host.ended or host.stopped for host in self.hosts.values())

    @property
    def stopped(self) -> bool:
        return all(host.stopped for host in self.hosts.values())

    def link_up(self, a: str, b: str) -> tuple[bool, bool]:
        """Whether the link is up as seen from either end."""
        first, second = self.processes[a], self.processes[b]
        return (
            first.links.get(second.planned.speaks, False),
            second.links.get(first.planned.speaks, False),
        )


def exit_words(code: Any, signal: Any) -> str:
    if signal:
        return f"ended by {signal}"
    return f"exit code {code}"


def _ended(event: Mapping[str, Any]) -> str:
    return exit_words(event.get("code"), event.get("signal"))


def _stage_at_exit(process: ProcessView, event: Mapping[str, Any]) -> Stage:
    well = event.get("code") == 0 and not event.get("signal") and not process.planned.is_broker
    if well and not process.leaving:
        return Stage.ENDED
    return Stage.REMOVED if event.get("expected") else Stage.FAILED


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that phase 1 still lacks, and why."""

    what: str
    why: str
    last: str = ""  # last lines of the process's log
    ends: tuple[str, ...] = ()  # of a link: the processes that do not have it

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def missing(view: RunView) -> list[Missing]:
    """What keeps the gate shut: nothing only when all of phase 1 is there at the same time."""
    return [*_missing_hosts(view), *_missing_processes(view), *_missing_links(view)]


def _missing_hosts(view: RunView) -> Iterable[Missing]:
    for name, host in view.hosts.items():
        if not host.present:
            yield Missing(f"host {name}", host.lost or "not reached yet")


def _missing_processes(view: RunView) -> Iterable[Missing]:
    for planned in view.plan.first_phase:
        process = view.processes[planned.id]
        done = process.stage in (Stage.ENDED, Stage.REMOVED) and not planned.is_broker
        if process.stage is Stage.READY or (done and process.was_ready):
            continue
        why = {
            Stage.WAITING: "not started yet",
            Stage.STARTING: "started, not ready yet",
            Stage.ENDED: "ended before it was ready",
            Stage.PAUSED: "paused",
        }.get(process.stage, process.ended or str(process.stage))
        yield Missing(f"{_noun(planned)} {planned.id} on {planned.host}", why, process.last)


def _missing_links(view: RunView) -> Iterable[Missing]:
    for link in view.plan.gate_links:
        ends = view.link_up(link.a, link.b)
        if not all(ends):
            who = [name for name, up in zip((link.a, link.b), ends, strict=True) if not up]
            yield Missing(f"link {link}", f"not up at {' and '.join(who)}", ends=tuple(who))


def _noun(planned: PlannedProcess) -> str:
    if planned.kind == "command":
        return "process"
    return "broker" if planned.is_broker else "client"
