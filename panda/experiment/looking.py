"""Decides how a run is looked at from outside: its record, brought up to date by whichever agents answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker_runtime.agent.protocol import RequestRefused
from panda.deploy.clocks import Offset
from panda.deploy.controller import recall
from panda.deploy.crew import Crew
from panda.deploy.session import AgentSession
from panda.deploy.view import RunView
from panda.experiment.folder import RunFolder
from panda.hosts.remote import HostError
from panda.plan.model import Plan


@dataclass(slots=True)
class Look:
    view: RunView
    t0: float | None = None  # by our clock
    sessions: dict[str, AgentSession] = field(default_factory=dict)
    failures: list[HostError] = field(default_factory=list)
    cleaned: set[str] = field(default_factory=set)  # hosts on which nothing of the run is left
    offsets: dict[str, Offset] = field(default_factory=dict)

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()


class _Events:
    """Takes events into a view, from the sessions' threads."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._lock = threading.Lock()

    def event(self, session: AgentSession, event: Mapping[str, Any]) -> None:
        with self._lock:
            self._view.take(session.host, event)

    def lost(self, session: AgentSession, reason: str) -> None:
        pass


def look(folder: RunFolder, plan: Plan, crew: Crew) -> Look:
    """What is known of the run now; nothing is started and nobody is disturbed. The caller closes it."""
    view = RunView(plan)
    given = recall(folder, view)
    found = Look(view, given.ours if given else None)
    found.cleaned = folder.cleaned()
    hosts = [host for host in plan.hosts if host.name not in found.cleaned]
    found.sessions, found.failures = crew.reach_all(hosts, _Events(view), steer=False, start=False)
    for name, session in list(found.sessions.items()):
        try:
            session.request("events", {"since": view.hosts[name].seq})
            session.request("clock")  # answered behind the events
        except (HostError, RequestRefused) as error:
            found.failures.append(HostError(name, str(error)))
            found.sessions.pop(name).close()
            continue
        view.hosts[name].present = True
        if session.offset is not None:
            found.offsets[name] = session.offset
    return found


def state_of(view: RunView, t0: float | None, *, present: bool) -> str:
    """How the run is, in a word or two; `present` says whether any of its agents answers."""
    if not present:
        return "over" if view.stopped or t0 is not None else "not running"
    if view.stopped:
        return "stopped"
    if view.ended:
        return "schedule done" if view.living else "done"
    return "running" if t0 is not None else "phase 1"
