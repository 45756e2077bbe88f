"""Decides what a journal means to a supervisor that takes over: what was done, what runs, what is to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from broker_runtime.agent.conductor import (
    ENDED,
    LOADED,
    STARTED,
    STOP_STEP,
    STOPPED,
    STOPPING,
    Conductor,
)
from broker_runtime.agent.core import Core
from broker_runtime.agent.effects import Effect, End, Moment
from broker_runtime.agent.lives import ENDING, EXITED, RUNNING, Fault, Life
from broker_runtime.agent.schedule import Item
from broker_runtime.agent.spec import Spec, parse_step


@dataclass(frozen=True, slots=True)
class Suspect:
    """A process that may run: by its identity, or, if only the intent is known, by its marker."""

    process: str
    life: int
    pid: int
    ticks: int
    marker: str


class Recovery:
    """Reads a journal into a core, entry by entry; then the shell looks for the suspects."""

    def __init__(self, core: Core, spec: Spec | None, now: Moment) -> None:
        self.core = core
        self.conductor: Conductor = core.conductor
        self.now = now
        self.boot = ""
        self._spec = spec
        self._intents: dict[int, Item] = {}
        self._stop: Item | None = None
        self._begun: list[Item] = []  # started; that it is done follows in the journal, or was never written

    def replay(self, entries: Iterable[Mapping[str, Any]]) -> None:
        readers = {
            "opened": self._opened,
            "controller": self._controller,
            "loaded": self._loaded,
            "step": self._step,
            "phase": self._phase,
            "go": self._go,
            "intent": self._intent,
            "done": self._done,
            "started": self._started,
            "ready": self._ready,
            "link": self._link,
            "exited": self._exited,
            "fault": self._fault,
            "healed": self._healed,
            "ended": self._ended,
            "stopped": self._stopped,
        }
        for entry in entries:
            self.core.ledger.seq = max(self.core.ledger.seq, entry["seq"])
            reader = readers.get(entry["kind"])
            if reader is not None:
                reader(entry)
        self.core.ledger.durable = self.core.ledger.seq

    def suspects(self) -> list[Suspect]:
        """What has to be looked for before anything is done."""
        found = [
            Suspect(life.process.id, life.life, life.pid, life.ticks, "")
            for life in self.conductor.lives.values()
            if life.phase in (RUNNING, ENDING)
        ]
        for item in self._intents.values():
            if not (item.done or item in self._begun) and item.action in ("add", "restart"):
                marker = f"{self.conductor.run}/{item.step.process}/{self.conductor.nonce}.{item.intent}"
                found.append(Suspect(item.step.process, item.intent, 0, 0, marker))
        return found

    def found(self, suspect: Suspect, pid: int, ticks: int) -> None:
        """It runs. A start whose end was not written down has been carried out."""
        life = self.conductor.lives[suspect.process]
        item = self._intents.get(suspect.life)
        if suspect.marker and item is not None and not item.done:
            life.begin(item.intent, item)
            item.actual = self.conductor.wall(self.now)
            self.conductor.under_way.add(item)
            self.conductor.started(suspect.process, item.intent, pid, ticks, False, self.now)
        elif life.phase == ENDING:
            self.core.ledger.add(End(suspect.process, life.process.grace_s))
        elif life.process.kind == "command" and not life.ready:
            life.ready_at = self.now.mono
        life.has_line = False  # until it dials

    def lost(self, suspect: Suspect) -> None:
        """It does not run: if it ever did, it ended while nobody watched."""
        if not suspect.marker:
            last = "it ended while no supervisor watched"
            self.conductor.exited(suspect.process, None, None, last, self.now)
            if self.conductor.lives[suspect.process].phase == ENDING:
                self.core.ledger.add(End(suspect.process, 0.0))

    def finish(self, boot: str, pid: int, ticks: int) -> list[Effect]:
        """Go on from here."""
        conductor, now = self.conductor, self.now
        nonce = conductor.nonce
        self.core.ledger.write(now, "opened", pid=pid, boot=boot, ticks=ticks, nonce=nonce)
        for item in self._begun:
            conductor.finish(item, now)
        another_boot = self.boot not in ("", boot)
        if another_boot and conductor.state not in (LOADED, STOPPED) and conductor.spec is not None:
            self.core.ledger.write(now, "trouble", text="the host was started anew: the run on it is over")
            conductor.stop(None, now)
        elif conductor.state == STOPPING:
            self._stop_on()
        return self.core.tick(now)

    def _stop_on(self) -> None:
        if self._stop is not None:
            self.conductor.finish(self._stop, self.now)
        for item in self._intents.values():
            self.conductor.finish(item, self.now, "the run was stopped")
        self.conductor.stop(None, self.now)

    def _opened(self, entry: Mapping[str, Any]) -> None:
        self.boot = entry["boot"]
        self.conductor.nonce = entry["nonce"]

    def _controller(self, entry: Mapping[str, Any]) -> None:
        self.core.epoch = max(self.core.epoch, entry["epoch"])

    def _loaded(self, entry: Mapping[str, Any]) -> None:
        if self._spec is not None:
            self.conductor.load(self._spec)

    def _step(self, entry: Mapping[str, Any]) -> None:
        assert self.conductor.spec is not None
        step = parse_step(dict(entry), self.conductor.spec.processes)
        self.conductor.plan_step(step, self._moment(entry["t"]))

    def _phase(self, entry: Mapping[str, Any]) -> None:
        if entry["number"] == 1:
            self.conductor.state = STARTED
            then = self._moment(entry["t"])
            self.conductor.schedule.time_phase(first=True, due=then.mono, planned=then.wall)

    def _go(self, entry: Mapping[str, Any]) -> None:
        self.conductor.set_clock(entry["t0"], self.now)

    def _intent(self, entry: Mapping[str, Any]) -> None:
        if entry["action"] == "stop":
            self.conductor.state = STOPPING
            self.conductor.schedule.cancel()
            self._stop = Item(STOP_STEP, "stop", False, 0, planned=entry["planned"])
            return
        item = self._item(entry)
        if item is not None:
            item.intent = entry["seq"]
            self._intents[item.intent] = item

    def _done(self, entry: Mapping[str, Any]) -> None:
        item = self._stop if entry["action"] == "stop" else self._item(entry)
        if item is None:
            return
        item.done, item.actual = True, entry["actual"]
        if "error" not in entry:
            self.conductor.plan_lease(item, self.now)
            self._apply(item)

    def _apply(self, item: Item) -> None:
        """What a step changed that no other entry tells."""
        life = self.conductor.lives.get(item.step.process)
        if life is not None and item.action in ("pause", "resume"):
            life.paused = item.action == "pause"
        if life is not None and item.action in ("remove", "kill") and life.phase == RUNNING:
            life.phase = ENDING

    def _item(self, entry: Mapping[str, Any]) -> Item | None:
        return self.conductor.schedule.items.get((entry["number"], entry.get("lease", False)))

    def _life(self, entry: Mapping[str, Any]) -> Life:
        return self.conductor.lives[entry["process"]]

    def _started(self, entry: Mapping[str, Any]) -> None:
        life = self._life(entry)
        item = self._intents.get(entry["life"])
        if item is not None:
            life.begin(entry["life"], item)
            life.starter = None
            item.actual = entry["t"]
            self._begun.append(item)
        life.phase, life.pid, life.ticks = RUNNING, entry["pid"], entry["ticks"]
        life.starts += 1

    def _ready(self, entry: Mapping[str, Any]) -> None:
        life = self._life(entry)
        life.ready, life.address = True, entry.get("address", "")

    def _link(self, entry: Mapping[str, Any]) -> None:
        self._life(entry).links[entry["peer"]] = entry["up"]

    def _exited(self, entry: Mapping[str, Any]) -> None:
        life = self._life(entry)
        life.phase, life.code, life.signal = EXITED, entry.get("code"), entry.get("signal")
        life.links.clear()
        life.faults.clear()

    def _fault(self, entry: Mapping[str, Any]) -> None:
        until = entry.get("until")
        mono = None if until is None else self._moment(until).mono
        fault = Fault(entry["value"], mono, until, entry.get("number", 0))
        self._life(entry).faults[entry["fault"], entry["peer"]] = fault

    def _healed(self, entry: Mapping[str, Any]) -> None:
        self._life(entry).faults.pop((entry["fault"], entry["peer"]), None)

    def _ended(self, entry: Mapping[str, Any]) -> None:
        self.conductor.state = ENDED

    def _stopped(self, entry: Mapping[str, Any]) -> None:
        self.conductor.state = STOPPED

    def _moment(self, wall: float) -> Moment:
        """A moment of the past, as far from now as the wall clock says."""
        return Moment(self.now.mono + (wall - self.now.wall), wall)
