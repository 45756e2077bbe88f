"""A core without processes, disk or clock: the test is all three."""

from collections.abc import Mapping
from typing import Any

from broker_runtime.agent.core import Core
from broker_runtime.agent.effects import (
    Answer,
    Append,
    Effect,
    End,
    Keep,
    Leave,
    Moment,
    Say,
    Spawn,
    Sweep,
    Sync,
)
from broker_runtime.agent.recovery import Recovery
from broker_runtime.agent.spec import parse_spec

WALL = 1_000_000.0


def command(id_: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "command", "arguments": ["true"], **fields}


def runtime(id_: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "runtime", "word": "broker", "arguments": ["-i", id_], **fields}


def step(number: int, at_s: float | None, action: str, process: str = "", **fields: Any) -> dict[str, Any]:
    return {"number": number, "at_s": at_s, "action": action, "process": process, **fields}


def spec_of(processes: list[dict[str, Any]], steps: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"run": "demo", "digest": "d1", "processes": processes, "steps": steps, **fields}


class Stage:
    """Time passes when the test says so; the disk is as fast as `disk` says; every order is noted."""

    def __init__(self, *, disk: bool = True) -> None:
        self.core = Core("demo", "nonce", {"version": "0"})
        self.mono = 100.0
        self.disk = disk
        self.entries: list[dict[str, Any]] = []
        self.orders: list[Effect] = []
        self.answers: list[Mapping[str, Any]] = []
        self.kept: Any = None
        self._id = 0

    @property
    def now(self) -> Moment:
        return Moment(self.mono, WALL + self.mono)

    def take(self, effects: list[Effect]) -> None:
        wanted = False
        for effect in effects:
            if isinstance(effect, Append):
                self.entries.append(dict(effect.entry))
            elif isinstance(effect, Answer):
                self.answers.append(effect.message)
            elif isinstance(effect, Keep):
                self.kept = effect.spec
            elif isinstance(effect, Sync):
                wanted = True
            else:
                self.orders.append(effect)
        if wanted and self.disk:
            self.sync()

    def sync(self) -> None:
        self.take(self.core.synced(len(self.entries), self.now))

    def ask(self, session: int, do: str, **fields: Any) -> Mapping[str, Any]:
        """The answer, or an empty one if it has not come."""
        self._id += 1
        self.take(self.core.request(session, {"id": self._id, "do": do, **fields}, self.now))
        return next((answer for answer in self.answers if answer["id"] == self._id), {})

    def steer(self, session: int = 1, **fields: Any) -> Mapping[str, Any]:
        if session not in self.core.sessions:
            assert self.core.opened(session)
        return self.ask(session, "hello", controller=f"c{session}", mode="steer", **fields)

    def begin(self, processes: list[dict[str, Any]], steps: list[dict[str, Any]], **fields: Any) -> None:
        """Load, phase 1 with every start a success, and GO a second from now."""
        self.steer()
        assert "ok" in self.ask(1, "load", spec=spec_of(processes, steps, **fields))
        assert "ok" in self.ask(1, "start")
        self.start_all()
        assert "ok" in self.ask(1, "go", t0=self.now.wall + 1.0)

    def start_all(self) -> None:
        for order in self.spawns():
            self.started(order)

    def spawns(self) -> list[Spawn]:
        found = [order for order in self.orders if isinstance(order, Spawn)]
        self.orders = [order for order in self.orders if not isinstance(order, Spawn)]
        return found

    def started(self, order: Spawn, *, line: bool = True) -> None:
        pid = 1000 + order.life
        self.happen("started", order.process.id, order.life, pid, 7, line)

    def happen(self, what: str, *arguments: Any) -> None:
        now = self.now
        self.take(self.core.happened(lambda conductor: getattr(conductor, what)(*arguments, now), now))

    def until(self, at_s: float) -> None:
        """Let time pass up to so long after T0, waking the core exactly when it asks to be."""
        goal = self.core.conductor.t0_mono + at_s
        while (at := self.core.next_at()) is not None and at <= goal:
            self.mono = max(self.mono, at)
            before = (at, len(self.entries), len(self.orders))
            self.take(self.core.tick(self.now))
            assert (self.core.next_at(), len(self.entries), len(self.orders)) != before, "it asks for nothing"
        self.mono = max(self.mono, goal)
        self.take(self.core.tick(self.now))

    def obey(self) -> None:
        """Be a world in which every order succeeds at once."""
        while self.orders:
            order = self.orders.pop(0)
            if isinstance(order, Spawn):
                self.started(order)
            elif isinstance(order, End):
                self.happen("exited", order.process, 0, None, "")
                self.happen("gone", order.process)
            elif isinstance(order, Say):
                self.happen(
                    "said", order.process, {"say": "fault", "number": order.message["number"], "ok": True}
                )
            elif isinstance(order, Sweep):
                self.happen("silent")

    def play(self, at_s: float, stride_s: float = 0.1) -> None:
        """Let time pass in such a world."""
        self.obey()
        while self.mono < self.core.conductor.t0_mono + at_s:
            self.mono += stride_s
            self.take(self.core.tick(self.now))
            self.obey()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["kind"] == kind]

    def done(self) -> list[tuple[int, str, float]]:
        """Number, action and time after T0 of each step that was done, in order."""
        t0 = self.core.conductor.t0 or 0.0
        found = [entry for entry in self.of("done") if "error" not in entry]
        return [(entry["number"], entry["action"], round(entry["actual"] - t0, 3)) for entry in found]

    def finish_stop(self) -> None:
        """Let every process that is being ended be gone."""
        for id_, life in self.core.conductor.lives.items():
            if life.phase == "ending":
                self.happen("exited", id_, 0, None, "")
                self.happen("gone", id_)
        if any(isinstance(order, Sweep) for order in self.orders):
            self.happen("silent")

    def left(self) -> list[Leave]:
        return [order for order in self.orders if isinstance(order, Leave)]

    def crash(self, living: set[str], written: int | None = None) -> "Stage":
        """Another supervisor on the same journal, or on its beginning; of the processes only these live."""
        other = Stage(disk=self.disk)
        other.mono, other.entries, other.kept = self.mono, self.entries[:written], self.kept
        if written is not None:
            other.mono = other.entries[-1]["t"] - WALL
        recovery = Recovery(other.core, parse_spec(self.kept) if self.kept else None, other.now)
        recovery.replay(other.entries)
        for suspect in recovery.suspects():
            if suspect.process in living:
                recovery.found(suspect, suspect.pid or 5000, suspect.ticks or 7)
            else:
                recovery.lost(suspect)
        other.take(recovery.finish("boot", 1, 1))
        return other
