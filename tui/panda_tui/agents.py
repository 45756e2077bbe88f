"""Decides how a run is followed: its record as it grows, and a session with every agent that answers.

Nobody is disturbed: no lock is taken, no agent is started. A host that is lost is told of at once and looked
for again until it answers or the run is over. Threads do the waiting; what they learn is kept under one lock.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker_runtime.agent.protocol import RequestRefused
from panda.deploy.clocks import Offset, drift_of
from panda.deploy.controller import recall
from panda.deploy.crew import AT_ONCE, Crew
from panda.deploy.session import AgentSession
from panda.deploy.view import RunView
from panda.experiment.folder import RunFolder, RunRefused
from panda.hosts.host import Host
from panda.hosts.remote import HostError
from panda.plan.model import Plan
from panda_tui.watch import NOTHING_READ, Piece

RECORD_EVERY_S = 0.25
HOLDER_EVERY_S = 1.0
FACTS_EVERY_S = 3.0
CLOCK_EVERY_S = 10.0
AGAIN_MIN_S = 0.5
AGAIN_MAX_S = 5.0
PIECE_BYTES = 1 << 20
TOLD_MAX = 200
FILES = {"stdout": "stdout", "stderr": "stderr", "log": "log.jsonl"}


@dataclass(slots=True)
class Facts:
    """What is known of one host beside its events."""

    first: Offset | None = None
    offset: Offset | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)
    present: bool = False
    why: str = "not reached yet"

    @property
    def drift(self) -> float:
        if self.first is None or self.offset is None:
            return 0.0
        return drift_of(self.first, self.offset)


class AgentFeed:
    """One run, followed. `lock` is to be held by whoever reads the rest."""

    def __init__(self, folder: RunFolder, crew: Crew) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.plan: Plan = folder.read_plan()
        self.view = RunView(self.plan)
        self.t0: float | None = None
        self.holder = ""
        self.finish = ""
        self.told: deque[tuple[float, str]] = deque(maxlen=TOLD_MAX)
        self.cleaned: set[str] = set()
        self.facts = {host.name: Facts() for host in self.plan.hosts}
        self.changes = 0
        self._crew = crew
        self._sessions: dict[str, AgentSession] = {}
        self._lost: dict[str, threading.Event] = {}
        self._leave = threading.Event()
        self._at_once = threading.Semaphore(AT_ONCE)
        self._read = 0
        self._rest = b""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        threading.Thread(target=self._follow, name=f"follow {self.folder.id}", daemon=True).start()

    def close(self) -> None:
        """From any thread; takes a moment."""
        self._leave.set()
        for event in list(self._lost.values()):
            event.set()
        for session in list(self._sessions.values()):
            session.close()
        self._crew.close()

    def session(self, host: str) -> AgentSession | None:
        return self._sessions.get(host)

    @property
    def present(self) -> bool:
        return bool(self._sessions)

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        """From the host if its agent answers, else from what was collected."""
        with self.lock:
            known = self.view.processes.get(process)
        if known is None or stream not in FILES:
            return NOTHING_READ
        path = f"processes/{process}/{FILES[stream]}"
        session = self._sessions.get(known.planned.host)
        if session is None:
            return _piece_of(self.folder.collected(known.planned.host) / path, offset, length)
        try:
            answer = session.request("read", {"path": path, "offset": offset, "length": length})
        except (HostError, RequestRefused):  # it is lost just now, or has written nothing yet
            return NOTHING_READ
        return Piece(base64.b64decode(answer["data"]), int(answer["size"]))

    # Listener of the sessions, in their threads

    def event(self, session: AgentSession, event: Mapping[str, Any]) -> None:
        with self.lock:
            if self.view.take(session.host, event):
                self.changes += 1

    def lost(self, session: AgentSession, reason: str) -> None:
        if self._sessions.get(session.host) is session:
            del self._sessions[session.host]
            self._absent(session.host, reason)
        event = self._lost.get(session.host)
        if event is not None:
            event.set()

    # The record

    def _follow(self) -> None:
        holder_in_s = 0.0
        self._begin()
        while not self._leave.wait(RECORD_EVERY_S):
            entries = list(self._news())
            if any(entry.get("kind") == "line" for entry in entries):
                self._grow()
            with self.lock:
                for entry in entries:
                    self._take(entry)
            holder_in_s -= RECORD_EVERY_S
            if holder_in_s <= 0:
                holder_in_s = HOLDER_EVERY_S
                self._hold(self.folder.holder)

    def _begin(self) -> None:
        with self.lock:
            given = recall(self.folder, self.view)
            self.t0 = given.ours if given else None
            self.holder = self.folder.holder
            for entry in self._news():
                self._take(entry)
            over = self.folder.over
            for name, facts in self.facts.items():
                if name in self.cleaned or over:
                    facts.why = "nothing of the run is left here"
            self.changes += 1
        for host in () if over else self.plan.hosts:
            if host.name not in self.cleaned:
                self._lost[host.name] = threading.Event()
                name = f"watch {host.name}"
                threading.Thread(target=self._keep, args=(host,), name=name, daemon=True).start()

    def _news(self) -> Iterator[dict[str, Any]]:
        """What was recorded since the last time, in whole lines."""
        try:
            with (self.folder.path / "journal.jsonl").open("rb") as file:
                file.seek(self._read)
                while data := file.read(PIECE_BYTES):
                    self._read += len(data)
                    *whole, self._rest = (self._rest + data).split(b"\n")
                    for line in whole:
                        yield from _entries(line)
        except OSError:
            return

    def _take(self, entry: Mapping[str, Any]) -> None:
        kind, host = entry.get("kind"), str(entry.get("host", ""))
        self.changes += 1
        if kind == "agent" and host in self.view.hosts:
            self.view.take(host, entry["event"])
        elif kind == "go":
            self.t0 = float(entry["t0"])
        elif kind == "told":
            self.told.append((float(entry["t"]), str(entry.get("text", ""))))
        elif kind == "finish":
            self.finish = str(entry.get("result", ""))
        elif kind == "closed" and entry.get("cleaned"):
            self.cleaned.add(host)
            if host in self.facts:
                self.facts[host].why = "nothing of the run is left here"
            recall(self.folder, self.view)  # what came home may say more
            event = self._lost.get(host)
            if event is not None:
                event.set()

    def _grow(self) -> None:
        """The plan has more in it than before."""
        try:
            plan = self.folder.read_plan()
        except RunRefused:  # it is being written: the next entry brings us back
            return
        view = RunView(plan)
        recall(self.folder, view)
        with self.lock:
            self.plan, self.view = plan, view
            self.changes += 1
        for name, session in list(self._sessions.items()):
            view.hosts[name].present = True
            session.ask("events", {"since": view.hosts[name].seq}, lambda found: None)

    def _hold(self, holder: str) -> None:
        with self.lock:
            if holder != self.holder:
                self.holder = holder
                self.changes += 1

    # The hosts, each in a thread of its own

    def _keep(self, host: Host) -> None:
        wait_s = AGAIN_MIN_S
        lost = self._lost[host.name]
        while not self._leave.is_set() and host.name not in self.cleaned:
            lost.clear()
            try:
                with self._at_once:
                    session = self._crew.reach(host, self, steer=False, start=False, note=self._note)
                self._welcome(session)
                wait_s = AGAIN_MIN_S
                self._attend(session, lost)
            except (HostError, RequestRefused, OSError) as error:
                self._absent(host.name, error.reason if isinstance(error, HostError) else str(error))
            self._leave.wait(wait_s)
            wait_s = min(2 * wait_s, AGAIN_MAX_S)

    def _welcome(self, session: AgentSession) -> None:
        with self.lock:
            since = self.view.hosts[session.host].seq
        session.request("events", {"since": since})
        self._sessions[session.host] = session
        with self.lock:
            self.view.hosts[session.host].present = True
            facts = self.facts[session.host]
            facts.present, facts.why = True, ""
            facts.offset = session.offset
            facts.first = facts.first or session.offset
            self.changes += 1

    def _attend(self, session: AgentSession, lost: threading.Event) -> None:
        """Ask now and then, until it is lost."""
        clock_in_s = CLOCK_EVERY_S
        while True:
            measured = session.request("host")
            offset = None
            clock_in_s -= FACTS_EVERY_S
            if clock_in_s <= 0:
                clock_in_s = CLOCK_EVERY_S
                offset = session.compare_clocks()
            with self.lock:
                facts = self.facts[session.host]
                facts.measured = measured
                facts.offset = offset or facts.offset
                self.changes += 1
            if lost.wait(FACTS_EVERY_S):
                break
        session.close()

    def _note(self, host: str, what: str) -> None:
        if what != "agent ready":
            self._absent(host, what)

    def _absent(self, host: str, why: str) -> None:
        with self.lock:
            facts = self.facts[host]
            facts.present = False
            if host not in self.cleaned:
                facts.why = why
            self.view.hosts[host].present = False
            self.view.hosts[host].lost = why
            self.changes += 1


def _piece_of(path: Path, offset: int, length: int) -> Piece:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(offset)
            return Piece(file.read(length), size)
    except OSError:
        return NOTHING_READ


def _entries(line: bytes) -> Iterator[dict[str, Any]]:
    try:
        entry = json.loads(line)
    except ValueError:
        return
    if isinstance(entry, dict):
        yield entry
