"""Decides how a deployment goes on: load, phase 1, gate, GO, and what becomes of the run; never does it.

`handle(input, now)` takes what the agents answered and what happened, and returns orders. Phase 2 belongs to
the agents: all that is decided here about it is the one GO, given when nothing of phase 1 is missing and
every agent has confirmed, in order with its events, that it is so.

    NEW → LOADING → STARTING → CONFIRMING → GOING → RUNNING → DONE
                        ↑___________|           any → STOPPING → DONE
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from panda.deploy.view import Missing, RunView, Stage, missing
from panda.plan.model import Plan, Policy

GO_LEAD_S = 0.3
LINGER_S = 2.0
LOST_HOST_S = 20.0
STOP_TIMEOUT_S = 25.0


class State(StrEnum):
    NEW = "new"
    LOADING = "loading"
    STARTING = "starting phase 1"
    CONFIRMING = "confirming"
    GOING = "going"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"


class Ending(StrEnum):
    """When a deployment has come to its end, and what then."""

    SCHEDULE = "schedule"  # when every step is done; the rest goes on running
    WORK = "work"  # when also nobody publishes any more; then everything is stopped


class Result(StrEnum):
    """How it ended, as far as a deployment can tell."""

    RUNNING = "running"  # the schedule is done, or goes on without us
    GATE_NOT_MET = "gate not met"
    FAILED = "failed"
    STOPPED = "stopped"


# Inputs


@dataclass(frozen=True, slots=True)
class Answered:
    host: str
    do: str
    error: str = ""  # code and message
    ok: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Happened:
    host: str
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lost:
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class Present:
    """The host's agent answers, for the first time or again."""

    host: str


@dataclass(frozen=True, slots=True)
class Tick:
    pass


@dataclass(frozen=True, slots=True)
class StopAsked:
    reason: str


Input = Answered | Happened | Lost | Present | Tick | StopAsked


# Orders


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request to the host's agent; the answer comes back as `Answered`."""

    host: str
    do: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Go:
    """Record T0, by our clock, where it survives us; then ask every host to go."""

    t0: float


@dataclass(frozen=True, slots=True)
class Tell:
    """Something that a person who watches wants to know."""

    kind: str
    text: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    result: Result
    why: str = ""
    missing: tuple[Missing, ...] = ()


Order = Ask | Go | Tell | Finish


class Coordinator:
    """One deployment. Hosts are reached and keep their connections elsewhere."""

    def __init__(
        self,
        plan: Plan,
        view: RunView,
        *,
        t0: float | None = None,
        rollback: bool = True,
        ending: Ending = Ending.SCHEDULE,
    ) -> None:
        self.plan = plan
        self.view = view
        self.state = State.NEW
        self.t0 = t0  # by our clock; known already when a controller comes back after GO
        self._rollback = rollback
        self.ending = ending
        self._idle_since: float | None = None  # since when nobody publishes any more
        self._waiting: set[str] = set()  # hosts whose answer to the present request is missing
        self._deadline: float | None = None
        self._lost_since: dict[str, float] = {}
        self._finish: Finish | None = None
        self._orders: list[Order] = []

    def handle(self, event: Input, now: float) -> list[Order]:
        if self.state is not State.DONE:
            self._take(event, now)
            self._advance(now)
        orders, self._orders = self._orders, []
        return orders

    def begin(self, now: float) -> list[Order]:
        """Every host is present: hand out the plan."""
        self.state = State.LOADING
        self._deadline = now + self.plan.gate_timeout_s
        self._ask_all("load")
        orders, self._orders = self._orders, []
        return orders

    @property
    def wake_at(self) -> float | None:
        """When a Tick is wanted at the latest."""
        times = [since + LOST_HOST_S for since in self._lost_since.values()]
        if self._deadline is not None:
            times.append(self._deadline)
        if self._idle_since is not None:
            times.append(self._idle_since + LINGER_S)
        return min(times, default=None)

    # Inputs

    def _take(self, event: Input, now: float) -> None:
        if isinstance(event, Answered):
            self._answered(event, now)
        elif isinstance(event, Happened):
            self._happened(event, now)
        elif isinstance(event, Lost):
            host = self.view.hosts[event.host]
            host.present, host.lost = False, event.reason
            self._lost_since.setdefault(event.host, now)
            self._tell("lost", f"{event.host} is out of reach: {event.reason}", event.host)
        elif isinstance(event, Present):
            self._present(event.host)
        elif isinstance(event, StopAsked):
            self._stop(Finish(Result.STOPPED, event.reason), now)

    def _answered(self, answer: Answered, now: float) -> None:
        if answer.error:
            if self.state is State.STOPPING:
                self._tell("trouble", f"{answer.host} cannot {answer.do}: {answer.error}", answer.host)
            else:
                self._stop(
                    Finish(Result.FAILED, f"{answer.host} cannot {answer.do}: {answer.error}"),
                    now,
                )
                return
        self._waiting.discard(answer.host)

    def _happened(self, happened: Happened, now: float) -> None:
        if not self.view.take(happened.host, happened.event):
            return
        kind = happened.event.get("kind")
        if kind == "trouble":
            self._tell("trouble", f"{happened.host}: {happened.event.get('text')}", happened.host)
        elif kind == "done" and happened.event.get("error") and not self.view.hosts[happened.host].stopping:
            step = happened.event
            text = (
                f"line {step.get('number')}: {step.get('action')} {step.get('process', '')}: {step['error']}"
            )
            self._tell("trouble", text, happened.host)
        elif kind == "exited":
            self._exited(happened, now)

    def _exited(self, happened: Happened, now: float) -> None:
        process = self.view.processes.get(str(happened.event.get("process")))
        if process is None or process.stage is not Stage.FAILED:
            return
        text = f"{process.planned.id} on {happened.host} ended by itself: {process.ended}"
        self._tell("failed", text, happened.host)
        if self.state is State.RUNNING:
            if self.plan.policy is Policy.STOP:
                self._stop(Finish(Result.FAILED, text), now)
        elif self.state not in (State.STOPPING, State.GOING):
            self._fail_gate(text, now)

    def _present(self, name: str) -> None:
        host = self.view.hosts[name]
        if not host.present and host.lost:
            self._tell("back", f"{name} is back", name)
        host.present, host.lost = True, ""
        self._lost_since.pop(name, None)
        if name in self._waiting:  # the answer went down with the connection; every request may be repeated
            self._orders.append(self._repeat(name))

    # What follows

    def _advance(self, now: float) -> None:
        if self.state is State.LOADING and not self._waiting:
            self.state = State.STARTING
            if self.t0 is None:
                self._tell("phase", "phase 1: starting")
            self._deadline = now + self.plan.gate_timeout_s
            self._ask_all("start")
        if self.state is State.STARTING and not self._waiting:
            self._try_gate()
        if self.state is State.CONFIRMING and not self._waiting:
            self._confirmed(now)
        if self.state is State.GOING and not self._waiting:
            self.state, self._deadline = State.RUNNING, None
            self._tell("phase", "phase 2: running by the agents' clocks")
        if self.state is State.RUNNING:
            self._watch(now)
        if self.state in (State.STARTING, State.CONFIRMING, State.LOADING) and self._overdue(now):
            self._fail_gate(f"phase 1 was not complete after {self.plan.gate_timeout_s:g} s", now)
        if self.state is State.STOPPING and (not self._waiting or self._overdue(now)):
            self._stopped()

    def _try_gate(self) -> None:
        if self.t0 is not None:  # GO was given before: those that have not heard it hear it again
            self._go(self.t0)
        elif not missing(self.view):
            self.state = State.CONFIRMING
            self._ask_all("clock")  # answered behind every event that was on its way

    def _confirmed(self, now: float) -> None:
        if missing(self.view):
            self.state = State.STARTING
        else:
            self._tell("gate", "phase 1 is complete: every broker is ready and every link is up")
            self.t0 = now + GO_LEAD_S
            self._go(self.t0)

    def _go(self, t0: float) -> None:
        self.state = State.GOING
        self._deadline = None
        self._waiting = set(self.view.hosts)
        self._orders.append(Go(t0))

    def _watch(self, now: float) -> None:
        overdue = [name for name, since in self._lost_since.items() if now - since >= LOST_HOST_S]
        for name in overdue:
            del self._lost_since[name]
            if self.plan.policy is Policy.STOP:
                text = f"{name} has been out of reach for {LOST_HOST_S:g} s: {self.view.hosts[name].lost}"
                self._stop(Finish(Result.FAILED, text), now)
                return
        if self.view.stopped:
            self._done(Finish(Result.STOPPED, "every process has been stopped"))
        elif self.plan.stop_at_s is not None:
            return  # the agents stop everything at that time
        elif self.view.ended and self.ending is Ending.SCHEDULE:
            self._done(Finish(Result.RUNNING, "the schedule is done"))
        elif self.view.ended and self._idle(now):
            self._stop(Finish(Result.STOPPED, "the work is done"), now)

    def _idle(self, now: float) -> bool:
        """Whether nobody has published for a moment, in which what is under way arrives."""
        if any(each.planned.publishes for each in self.view.living):
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        return now - self._idle_since >= LINGER_S

    def _fail_gate(self, why: str, now: float) -> None:
        finish = Finish(Result.GATE_NOT_MET, why, tuple(missing(self.view)))
        if self._rollback:
            self._stop(finish, now)
        else:
            self._done(finish)

    def _stop(self, finish: Finish, now: float) -> None:
        if self.state in (State.STOPPING, State.DONE):
            return
        self.state = State.STOPPING
        self._finish = finish
        self._tell("stop", f"stopping: {finish.why}")
        self._deadline = now + STOP_TIMEOUT_S
        self._waiting = {name for name, host in self.view.hosts.items() if host.present}
        self._orders += [Ask(name, "stop") for name in self._waiting_in_order()]

    def _stopped(self) -> None:
        assert self._finish is not None
        left = self._waiting_in_order()
        absent = [name for name, host in self.view.hosts.items() if host.loaded and not host.present]
        for name in dict.fromkeys([*left, *absent]):
            self._tell("trouble", f"{name} has not confirmed that its processes are gone", name)
        self._done(self._finish)

    def _done(self, finish: Finish) -> None:
        self.state, self._deadline = State.DONE, None
        self._orders.append(finish)

    def _overdue(self, now: float) -> bool:
        return self._deadline is not None and now >= self._deadline

    def _ask_all(self, do: str) -> None:
        self._waiting = set(self.view.hosts)
        for name in self._waiting_in_order():
            self._orders.append(self._request(name, do))

    def _request(self, name: str, do: str) -> Ask:
        return Ask(name, do, {"spec": self.plan.spec(name)} if do == "load" else {})

    def _repeat(self, name: str) -> Order:
        do = {
            State.LOADING: "load",
            State.STARTING: "start",
            State.CONFIRMING: "clock",
            State.GOING: "go",
            State.STOPPING: "stop",
        }.get(self.state, "clock")
        return self._request(name, do)

    def _waiting_in_order(self) -> list[str]:
        return [name for name in self.view.hosts if name in self._waiting]

    def _tell(self, kind: str, text: str, host: str = "") -> None:
        self._orders.append(Tell(kind, text, host))
