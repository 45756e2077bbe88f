"""Decides what happens to a run's processes and when: phases, steps, leases, stop. It touches no process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker_runtime.agent.effects import End, Ledger, Moment, Spawn, Sweep, Sync
from broker_runtime.agent.line import Switchboard
from broker_runtime.agent.lives import ABSENT, BUSY, ENDING, EXITED, RUNNING, STARTING, Life
from broker_runtime.agent.protocol import Code, RequestRefused
from broker_runtime.agent.schedule import Item, Schedule
from broker_runtime.agent.spec import Spec, Step

READY_AFTER_S: Final = 0.3
LATE_S: Final = 0.1
LEASE_ENDS: Final = {"pause": "resume", "remove": "add", "kill": "add"}

EMPTY, LOADED, STARTED, GOING = "empty", "loaded", "started", "running"
ENDED, STOPPING, STOPPED = "ended", "stopping", "stopped"
STOP_STEP: Final = Step(0, None, "stop")


class Conductor:
    """The run on this host. Every method that changes something writes to the ledger."""

    def __init__(self, run: str, nonce: str, ledger: Ledger) -> None:
        self.run = run
        self.nonce = nonce
        self.ledger = ledger
        self.state = EMPTY
        self.spec: Spec | None = None
        self.lives: dict[str, Life] = {}
        self.schedule = Schedule()
        self.t0: float | None = None
        self.t0_mono = 0.0
        self.stop_at: float | None = None
        self.stop_planned = 0.0
        self.swept = False
        self.under_way: set[Item] = set()
        self.switchboard = Switchboard(ledger, self.finish)

    def load(self, spec: Spec) -> None:
        self.spec = spec
        self.state = LOADED
        self.lives = {id_: Life(process) for id_, process in spec.processes.items()}
        for step in spec.steps:
            self.schedule.add(step)

    def grow(self, spec: Spec) -> None:
        """The spec has more processes than before."""
        self.spec = spec
        for id_, process in spec.processes.items():
            if id_ not in self.lives:
                self.lives[id_] = Life(process)

    def start(self, now: Moment) -> None:
        self.state = STARTED
        self.ledger.write(now, "phase", number=1)
        self.schedule.time_phase(first=True, due=now.mono, planned=now.wall)
        self.tick(now)

    def go(self, t0: float, now: Moment) -> None:
        self.ledger.write(now, "go", t0=t0)
        self.ledger.write(now, "phase", number=2)
        self.set_clock(t0, now)
        self.tick(now)

    def set_clock(self, t0: float, now: Moment) -> None:
        """The wall clock is asked once; from here on time is kept by the one that cannot be set."""
        assert self.spec is not None
        self.state = GOING
        self.t0, self.t0_mono = t0, now.mono + (t0 - now.wall)
        self.schedule.time_phase(first=False, due=self.t0_mono, planned=t0)
        if self.spec.stop_at_s is not None:
            self.stop_at = self.t0_mono + self.spec.stop_at_s
            self.stop_planned = t0 + self.spec.stop_at_s

    def add_step(self, step: Step, now: Moment) -> None:
        self.ledger.write(now, "step", **step.fields())
        self.plan_step(step, now)
        if self.state == ENDED:
            self.state = GOING
        self.tick(now)

    def plan_step(self, step: Step, now: Moment) -> None:
        item = self.schedule.add(step)
        if step.at_s is None or (step.at_s == 0.0 and self.state != LOADED):
            self.schedule.time(item, now.mono, now.wall)
        elif self.t0 is not None and step.at_s > 0.0:
            self.schedule.time(item, self.t0_mono + step.at_s, self.t0 + step.at_s)

    def tick(self, now: Moment) -> None:
        """Do what is due, and write down what soon will be."""
        if self.state in (STOPPING, STOPPED):
            return
        if self.stop_at is not None and now.mono >= self.stop_at:
            self.ledger.write(now, "ended")
            self.stop(None, now, planned=self.stop_planned)
            return
        intended = False
        for item in self.schedule.to_intend(now.mono):
            if not item.intent:
                item.intent = self.ledger.write(now, "intent", **self._naming(item))
                intended = True
        if intended:
            self.ledger.add(Sync())
        for item in self.schedule.due(now.mono, self.ledger.durable):
            self.under_way.add(item)
            self._carry_out(item, now)
        for life in self.lives.values():
            if life.ready_at is not None and life.ready_at <= now.mono and life.phase == RUNNING:
                self._ready(life, {}, now)
        self.switchboard.tick(self.lives, now)
        self._look_for_the_end(now)

    def next_at(self) -> float | None:
        """When `tick` has to be called, if nothing else happens."""
        if self.state in (STOPPING, STOPPED):
            return None
        times = [
            self.schedule.next_at(self.ledger.durable),
            self.stop_at,
            self.switchboard.next_at(self.lives),
        ]
        times += [life.ready_at for life in self.lives.values()]
        return min((time for time in times if time is not None), default=None)

    def _look_for_the_end(self, now: Moment) -> None:
        if self.state == GOING and self.stop_at is None and self.schedule.empty and not self.under_way:
            if any(fault.until is not None for life in self.lives.values() for fault in life.faults.values()):
                return
            self.state = ENDED
            self.ledger.write(now, "ended")

    def _naming(self, item: Item) -> dict[str, object]:
        fields: dict[str, object] = {"number": item.step.number, "action": item.action}
        if item.step.process:
            fields["process"] = item.step.process
        fields["planned"] = round(item.planned, 6)
        if item.lease:
            fields["lease"] = True
        return fields

    def wall(self, now: Moment) -> float:
        """The time of a step: as far from T0 as the steady clock says."""
        return now.wall if self.t0 is None else self.t0 + (now.mono - self.t0_mono)

    def finish(self, item: Item, now: Moment, error: str = "") -> None:
        """A step is done, or cannot be; a lease that begins is planned."""
        if item.done:
            return
        item.done = True
        self.under_way.discard(item)
        fields = {**self._naming(item), "actual": round(item.actual or self.wall(now), 6)}
        if item.step.at_s and (item.actual or self.wall(now)) - item.planned > LATE_S:
            fields["late"] = True
        if error:
            fields["error"] = error
        self.ledger.write(now, "done", **fields)
        if not error:
            self.plan_lease(item, now)

    def plan_lease(self, item: Item, now: Moment) -> None:
        action = LEASE_ENDS.get(item.action)
        if item.step.for_s is None or item.lease or action is None or self.state in (STOPPING, STOPPED):
            return
        end = self.schedule.add(item.step, action, lease=True)
        planned = item.actual + item.step.for_s
        self.schedule.time(end, now.mono + (planned - self.wall(now)), planned)

    def _carry_out(self, item: Item, now: Moment) -> None:
        if item.action == "mark":
            self.ledger.write(now, "mark", text=item.step.text)
            item.actual = self.wall(now)
            self.finish(item, now)
            return
        life = self.lives[item.step.process]
        if life.phase == STARTING or life.waiting:
            life.waiting.append(item)
            return
        item.actual = self.wall(now)
        if item.action in ("add", "restart"):
            self._begin(life, item, now)
        elif item.action in ("remove", "kill"):
            self._end(life, item, now)
        elif life.phase != RUNNING:
            self.finish(item, now, f"{life.process.id} does not run")
        elif item.action in ("pause", "resume"):
            self.switchboard.freeze(life, frozen=item.action == "pause")
            self.finish(item, now)
        else:
            self.switchboard.ask(life, item, now)

    def _begin(self, life: Life, item: Item, now: Moment) -> None:
        if life.phase == ENDING:
            life.waiting.append(item)
        elif life.phase == RUNNING and item.action == "add":
            self.finish(item, now, f"{life.process.id} runs already")
        elif life.phase == RUNNING:
            life.phase = ENDING
            life.waiting.append(item)
            self.ledger.add(End(life.process.id, life.process.grace_s))
        else:
            life.begin(item.intent, item)
            marker = f"{self.run}/{life.process.id}/{self.nonce}.{life.life}"
            self.ledger.add(Spawn(life.process, life.life, marker))

    def _end(self, life: Life, item: Item, now: Moment) -> None:
        kill = item.action == "kill"
        if life.phase == ABSENT:
            self.finish(item, now, f"{life.process.id} does not run")
            return
        error = f"{life.process.id} had ended before" if life.phase == EXITED else ""
        if life.phase == ENDING and not kill:
            error = f"{life.process.id} is being ended already"
        else:
            self.ledger.add(End(life.process.id, 0.0 if kill else life.process.grace_s, kill))
            life.phase = ENDING
        self.finish(item, now, error)

    def started(self, id_: str, life_number: int, pid: int, ticks: int, has_line: bool, now: Moment) -> None:
        life = self.lives.get(id_)
        if life is None or life.life != life_number or life.phase != STARTING:
            return
        life.phase, life.pid, life.ticks, life.has_line = RUNNING, pid, ticks, has_line
        life.starts += 1
        self.ledger.write(now, "started", process=id_, pid=pid, ticks=ticks, by=life.by, life=life.life)
        if life.process.kind == "command":
            life.ready_at = now.mono + READY_AFTER_S
        if life.starter is not None:
            life.starter.actual = self.wall(now)
            self.finish(life.starter, now)
            life.starter = None
        if life.doomed:
            life.phase = ENDING
            self.ledger.add(End(id_, life.process.grace_s))
        self._resume_waiting(life, now)

    def runs(self, id_: str, life_number: int) -> bool:
        """Whether this life of a process is the one that goes on now."""
        life = self.lives.get(id_)
        return life is not None and life.life == life_number and life.phase in (RUNNING, ENDING)

    def heard_again(self, id_: str, life_number: int) -> None:
        """A process that an earlier supervisor started has found its line."""
        if self.runs(id_, life_number):
            self.switchboard.back(self.lives[id_])

    def start_failed(self, id_: str, life_number: int, reason: str, now: Moment) -> None:
        life = self.lives.get(id_)
        if life is None or life.life != life_number or life.phase != STARTING:
            return
        life.phase = EXITED
        if life.starter is not None:
            self.finish(life.starter, now, reason)
            life.starter = None
        self._resume_waiting(life, now)
        self._failed(f"{id_} could not be started: {reason}", now)

    def exited(self, id_: str, code: int | None, signal: int | None, last: str, now: Moment) -> None:
        life = self.lives.get(id_)
        if life is None or life.phase not in (RUNNING, ENDING):
            return
        asked_for = life.phase == ENDING
        # How a process of an earlier supervisor ended cannot be known; but brokers never just end.
        well = code == 0 or (code is None and signal is None and life.process.word != "broker")
        fields: dict[str, object] = {"signal": signal} if signal is not None else {"code": code}
        life.code, life.signal = code, signal
        self.ledger.write(now, "exited", process=id_, **fields, expected=asked_for or well, last=last)
        self.switchboard.lost(life, now, "it ended")
        life.links.clear()
        life.ready_at = None
        if asked_for:
            return
        life.phase = EXITED
        self._resume_waiting(life, now)
        if not well:
            how = f"by signal {signal}" if signal is not None else f"with exit code {code}"
            unseen = code is None and signal is None
            self._failed(f"{id_} ended by itself, {'and nobody saw how' if unseen else how}", now)

    def gone(self, id_: str, now: Moment) -> None:
        """Nothing is left of a process that was to be ended."""
        life = self.lives.get(id_)
        if life is None or life.phase != ENDING:
            return
        life.phase = EXITED
        self._resume_waiting(life, now)
        self._look_for_silence(now)

    def said(self, id_: str, message: Mapping[str, Any], now: Moment) -> None:
        life = self.lives.get(id_)
        if life is None or life.phase not in (RUNNING, ENDING):
            return
        if message.get("say") == "ready":
            self._ready(life, message, now)
        else:
            self.switchboard.said(life, message, now)
            self._look_for_the_end(now)

    def _ready(self, life: Life, message: Mapping[str, Any], now: Moment) -> None:
        life.ready_at = None
        address = message.get("address", "")
        if life.ready or not isinstance(address, str):
            return
        life.ready, life.address = True, address[:256]
        fields = {"address": life.address} if life.address else {}
        self.ledger.write(now, "ready", process=life.process.id, **fields)

    def _resume_waiting(self, life: Life, now: Moment) -> None:
        """Carry out what had to wait for a start or an end, as far as it can be now."""
        items = list(life.waiting)
        life.waiting.clear()
        for item in items:
            self._carry_out(item, now)

    def trouble(self, text: str, now: Moment) -> None:
        self.ledger.write(now, "trouble", text=text)

    def _failed(self, text: str, now: Moment) -> None:
        if self.spec is not None and self.spec.policy == "stop" and self.state not in (STOPPING, STOPPED):
            self.ledger.write(now, "trouble", text=f"{text}; the run on this host stops, as its policy says")
            self.stop(None, now)
        else:
            self.ledger.write(now, "trouble", text=text)

    def stop(self, grace_s: float | None, now: Moment, *, planned: float | None = None) -> None:
        """Cancel the schedule and end all processes; `stopped` is written when none is left."""
        if self.state == STOPPED:
            return
        if self.state != STOPPING:
            item = Item(STOP_STEP, "stop", False, 0, planned=self.wall(now) if planned is None else planned)
            self.ledger.write(now, "intent", **self._naming(item))
            self.ledger.add(Sync())  # not waited for: a full disk must keep nobody from stopping a run
            self.state = STOPPING
            self.finish(item, now)
            waiting = [item for life in self.lives.values() for item in life.waiting]
            for cancelled in [*self.schedule.cancel(), *waiting]:
                self.finish(cancelled, now, "the run was stopped")
        for life in self.lives.values():
            life.waiting.clear()
            life.ready_at = None
            if life.phase == STARTING:
                life.doomed = True
            elif life.phase in (RUNNING, ENDING):
                life.phase = ENDING
                self.ledger.add(End(life.process.id, life.process.grace_s if grace_s is None else grace_s))
        self._look_for_silence(now)

    def _look_for_silence(self, now: Moment) -> None:
        if self.state == STOPPING and not self.busy and not self.swept:
            self.swept = True
            self.ledger.add(Sweep())

    def silent(self, now: Moment) -> None:
        """Nothing at all is left of any process."""
        if self.state == STOPPING:
            self.state = STOPPED
            self.ledger.write(now, "stopped")

    @property
    def busy(self) -> bool:
        return any(life.phase in BUSY for life in self.lives.values())

    def told(self) -> dict[str, object]:
        """For a status."""
        return {
            "state": self.state,
            "t0": self.t0,
            "processes": [life.told() for life in self.lives.values()],
            "steps": [
                {**self._naming(item), "done": item.done, "at_s": item.step.at_s}
                for item in self.schedule.items.values()
            ],
            "faults": [fault for life in self.lives.values() for fault in self.switchboard.told(life)],
        }

    def require(self, *states: str) -> None:
        if self.state not in states:
            raise RequestRefused(Code.WRONG_STATE, f"not now: the run is {self.state}")
