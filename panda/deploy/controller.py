"""Decides how a deployment meets the world: orders become requests, answers and events become inputs.

One thread runs the coordinator and nothing else changes its state; sessions put what they hear into its
queue. A lost connection is made again for as long as the controller lives: the run itself does not need it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broker_runtime.agent.protocol import RequestRefused
from panda.deploy.coordinator import (
    Answered,
    Ask,
    Coordinator,
    Ending,
    Finish,
    Go,
    Happened,
    Input,
    Lost,
    Order,
    Present,
    State,
    StopAsked,
    Tell,
    Tick,
)
from panda.deploy.crew import Crew, HeldByAnother, HostsFailed
from panda.deploy.session import AgentSession
from panda.deploy.view import RunView
from panda.experiment.folder import RunFolder, read_lines
from panda.hosts.remote import HostError
from panda.plan.model import Plan

RECONNECT_MIN_S = 0.5
RECONNECT_MAX_S = 5.0
CLOCK_EVERY_S = 10.0
TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who wants to know how it goes; called from several threads."""

    note: Callable[[str, str], None] = lambda host, what: None
    tell: Callable[[Tell], None] = lambda tell: None
    event: Callable[[str, Mapping[str, Any]], None] = lambda host, event: None
    moved: Callable[[Coordinator], None] = lambda coordinator: None
    begun: Callable[[Controller], None] = lambda controller: None


@dataclass(frozen=True, slots=True)
class Detached:
    """The controller was asked to leave; the run goes on."""


class Displaced(Exception):
    """Another controller has taken the run over."""


@dataclass(frozen=True, slots=True)
class _Leave:
    displaced_by: str = ""


class Controller:
    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        crew: Crew,
        watcher: Watcher | None = None,
        *,
        rollback: bool = True,
        ending: Ending = Ending.SCHEDULE,
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.crew = crew
        self.view = RunView(plan)
        self.sessions: dict[str, AgentSession] = {}
        given = recall(folder, self.view)
        self._t0_theirs = given.theirs if given else {}
        t0 = given.ours if given else None
        self.coordinator = Coordinator(plan, self.view, t0=t0, rollback=rollback, ending=ending)
        self._watcher = watcher or Watcher()
        self._hosts = {host.name: host for host in plan.hosts}
        self._inputs: queue.SimpleQueue[Input | _Leave] = queue.SimpleQueue()
        self._closed = threading.Event()

    # Listener of the sessions, in their threads

    def event(self, session: AgentSession, event: Mapping[str, Any]) -> None:
        self._inputs.put(Happened(session.host, event))

    def lost(self, session: AgentSession, reason: str) -> None:
        if self._closed.is_set() or self.sessions.get(session.host) is not session:
            return
        self._inputs.put(Lost(session.host, reason))
        name = f"reconnect {session.host}"
        threading.Thread(target=self._reconnect, args=(session.host,), name=name, daemon=True).start()

    # Driving

    def reach(self, *, force: bool = False) -> None:
        """Have every agent listen to us; HostsFailed when not all do, and then none is left waiting."""
        sessions, failures = self.crew.reach_all(
            self.plan.hosts, self, steer=True, force=force, note=self._watcher.note
        )
        failures += [_gone(session.host) for session in sessions.values() if self._has_forgotten(session)]
        if failures:
            for session in sessions.values():
                self._let_go(session)
            raise HostsFailed(failures)
        self.sessions = sessions
        for session in sessions.values():
            self._welcome(session)

    def drive(self, *, leave_when_running: bool = False) -> Finish | Detached:
        """Go on until the coordinator is done, or somebody asks us to leave."""
        finish = self._carry_out(self.coordinator.begin(time.time()))
        clocks_at = time.monotonic() + CLOCK_EVERY_S
        while finish is None:
            event = self._next()
            if isinstance(event, _Leave):
                if event.displaced_by:
                    raise Displaced(event.displaced_by)
                return Detached()
            if isinstance(event, Happened):
                self.folder.record("agent", host=event.host, event=dict(event.event))
                self._watcher.event(event.host, event.event)
            finish = self._carry_out(self.coordinator.handle(event, time.time()))
            self._watcher.moved(self.coordinator)
            if leave_when_running and self.coordinator.state is State.RUNNING and finish is None:
                return Detached()
            if time.monotonic() >= clocks_at:
                clocks_at += CLOCK_EVERY_S
                self._compare_clocks()
        self.folder.record("finish", result=str(finish.result), why=finish.why, synced=True)
        return finish

    @property
    def goes_on_alone(self) -> bool:
        """Whether the run can do without a controller from here on, and is meant to."""
        return self.coordinator.t0 is not None and self.coordinator.ending is Ending.SCHEDULE

    def stop(self, reason: str) -> None:
        """From any thread: end the run."""
        self._inputs.put(StopAsked(reason))

    def leave(self) -> None:
        """From any thread: let the run go on without us."""
        self._inputs.put(_Leave())

    def close(self) -> None:
        self._closed.set()
        for session in list(self.sessions.values()):
            session.close()
        self.crew.close()

    # Inside

    def _next(self) -> Input | _Leave:
        wake = self.coordinator.wake_at
        wait_s = TICK_S if wake is None else min(TICK_S, max(0.0, wake - time.time()))
        try:
            return self._inputs.get(timeout=wait_s) if wait_s else self._inputs.get_nowait()
        except queue.Empty:
            return Tick()

    def _carry_out(self, orders: list[Order]) -> Finish | None:
        finish = None
        for order in orders:
            if isinstance(order, Ask):
                self._ask(order.host, order.do, order.fields)
            elif isinstance(order, Go):
                self._record_go(order.t0)
                for name in self._hosts:
                    self._ask(name, "go", {})
            elif isinstance(order, Tell):
                self.folder.record("told", about=order.kind, text=order.text, host=order.host)
                self._watcher.tell(order)
            else:
                finish = order
        return finish

    def _ask(self, host: str, do: str, fields: Mapping[str, Any]) -> None:
        session = self.sessions[host]
        if do == "go":
            fields = {"t0": self._t0_theirs[host]}

        def answer(found: Mapping[str, Any] | Exception) -> None:
            if isinstance(found, RequestRefused):
                self._inputs.put(Answered(host, do, str(found)))
            elif not isinstance(found, Exception):
                self._inputs.put(Answered(host, do, ok=found))
            # else the connection broke, which is told as such; the request is made again on the next one

        session.ask(do, fields, answer)

    def _record_go(self, t0: float) -> None:
        """T0 by every host's own clock, settled once: an agent that hears it again hears the same."""
        for name, session in self.sessions.items():
            assert session.offset is not None
            self._t0_theirs.setdefault(name, session.offset.to_theirs(t0))
        self.folder.record("go", t0=t0, theirs=self._t0_theirs, synced=True)

    def _welcome(self, session: AgentSession) -> None:
        self._record_clock(session)
        session.ask("events", {"since": self.view.hosts[session.host].seq}, lambda found: None)
        self._inputs.put(Present(session.host))

    def _reconnect(self, host: str) -> None:
        wait_s = RECONNECT_MIN_S
        while not self._closed.wait(wait_s):
            wait_s = min(2 * wait_s, RECONNECT_MAX_S)
            try:
                session = self.crew.reach(self._hosts[host], self, steer=True)
            except HeldByAnother as held:
                self._inputs.put(_Leave(f"the run was taken over: {held.reason}"))
                return
            except HostError as error:
                self._watcher.note(host, error.reason)
                continue
            if self._has_forgotten(session):
                self._let_go(session)
                self._watcher.note(host, _gone(host).reason)
                continue
            if self._closed.is_set():
                session.close()
                return
            self.sessions[host] = session
            self._welcome(session)
            return

    def _compare_clocks(self) -> None:
        """Without waiting: a session that hangs must not hold up the others."""
        for session in list(self.sessions.values()):
            name = f"clock {session.host}"
            threading.Thread(target=self._compare_clock, args=(session,), name=name, daemon=True).start()

    def _compare_clock(self, session: AgentSession) -> None:
        try:
            session.compare_clocks()
        except (HostError, RequestRefused):
            return
        self._record_clock(session)

    def _record_clock(self, session: AgentSession) -> None:
        offset = session.offset
        if offset is not None and not self._closed.is_set():
            self.folder.record_clock(
                session.host, at=offset.at, offset_s=offset.offset_s, error_s=offset.error_s
            )

    def _has_forgotten(self, session: AgentSession) -> bool:
        """Whether the agent is a new one, although the host had its part: it would start everything again."""
        return self.view.hosts[session.host].loaded and session.hello.get("state") == "empty"

    def _let_go(self, session: AgentSession) -> None:
        """Leave an agent as it was found: one that had nothing to do yet goes away again."""
        try:
            if session.hello.get("state") in ("new", "empty"):
                session.request("clean")
        except (HostError, RequestRefused):
            pass
        session.close()


def _gone(host: str) -> HostError:
    return HostError(host, "its part of the run is gone", "panda stop winds up the rest")


@dataclass(frozen=True, slots=True)
class Given:
    """T0 of a GO that was given: by our clock, and by each host's."""

    ours: float
    theirs: dict[str, float]


def recall(folder: RunFolder, view: RunView) -> Given | None:
    """Fill the view from the run's journal; the GO in it, if there is one."""
    given = None
    for entry in folder.journal():
        if entry.get("kind") == "agent" and entry.get("host") in view.hosts:
            view.take(str(entry["host"]), entry["event"])
        elif entry.get("kind") == "go":
            given = Given(float(entry["t0"]), {str(k): float(v) for k, v in entry["theirs"].items()})
    for host in view.hosts:  # what came home may say more than what was heard
        for event in read_lines(folder.collected(host) / "journal.jsonl"):
            view.take(host, event)
    return given
