"""What became of a preparation, in our own words: frozen values, folded from Ansible's events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

REASON_LENGTH_MAX = 500
SAID_LINES_MAX = 3
HANG_UP = re.compile(r"Shared connection to \S+ closed\.")  # ssh says so after every program with a terminal


class State(StrEnum):
    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class TaskResult:
    host: str
    task: str
    state: State
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.host}: {self.task}: {self.state}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class HostResult:
    host: str
    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failure: TaskResult | None = None

    @property
    def state(self) -> State:
        if self.failure is not None:
            return self.failure.state
        return State.CHANGED if self.changed else State.OK


@dataclass(frozen=True, slots=True)
class Preparation:
    """`problem` is a failure that belongs to no host."""

    hosts: tuple[HostResult, ...]
    problem: str = ""

    @property
    def unreachable(self) -> tuple[HostResult, ...]:
        return tuple(host for host in self.hosts if host.state is State.UNREACHABLE)

    @property
    def failed(self) -> tuple[HostResult, ...]:
        return tuple(host for host in self.hosts if host.state is State.FAILED)

    @property
    def done(self) -> bool:
        return not self.problem and not self.failed and not self.unreachable


_STATES = {
    "runner_on_ok": State.OK,
    "runner_on_skipped": State.SKIPPED,
    "runner_on_failed": State.FAILED,
    "runner_on_unreachable": State.UNREACHABLE,
}


def task_result(event: Mapping[str, Any]) -> TaskResult | None:
    """What an event of ansible-runner says about a task on a host, if it says anything of that kind."""
    state = _STATES.get(str(event.get("event")))
    data = event.get("event_data")
    if state is None or not isinstance(data, Mapping):
        return None
    answer = data.get("res")
    answer = answer if isinstance(answer, Mapping) else {}
    if state is State.OK and answer.get("changed") is True:
        state = State.CHANGED
    if state is State.FAILED and data.get("ignore_errors") is True:
        state = State.OK
    role, task = str(data.get("role") or ""), str(data.get("task") or "")
    reason = _reason(answer) if state in (State.FAILED, State.UNREACHABLE) else ""
    return TaskResult(str(data.get("host") or ""), f"{role}: {task}" if role else task, state, reason)


def host_results(names: Iterable[str], tasks: Iterable[TaskResult]) -> tuple[HostResult, ...]:
    """One result per host in the order of the names; the first failure of a host is the one that counts."""
    counts = {name: dict.fromkeys(State, 0) for name in names}
    failures: dict[str, TaskResult] = {}
    for task in tasks:
        if task.host in counts:
            counts[task.host][task.state] += 1
            if task.state in (State.FAILED, State.UNREACHABLE):
                failures.setdefault(task.host, task)
    return tuple(
        HostResult(name, count[State.OK], count[State.CHANGED], count[State.SKIPPED], failures.get(name))
        for name, count in counts.items()
    )


def _reason(answer: Mapping[str, Any]) -> str:
    """In one line. A loop's own message says only that some item failed: the item knows why."""
    items = answer.get("results")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, Mapping) and item.get("failed") is True:
            why = _reason({key: value for key, value in item.items() if key != "results"})
            name = item.get("item")
            return _cut(f"{' '.join(name.split())}: {why}") if isinstance(name, str) else why
    words = ("msg", "stderr", "module_stderr", "module_stdout")
    parts = [HANG_UP.sub("", str(answer.get(word) or "")) for word in words]
    parts.append(_end_of(str(answer.get("stdout") or "")))
    said = [" ".join(part.split()) for part in parts if part.strip()]
    return _cut(": ".join(dict.fromkeys(said[:2])) or "no reason was given")


def _end_of(text: str) -> str:
    """What a program said last is why it ended."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-SAID_LINES_MAX:])


def _cut(text: str) -> str:
    return text if len(text) <= REASON_LENGTH_MAX else text[: REASON_LENGTH_MAX - 1] + "…"
