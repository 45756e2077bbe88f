"""Decides who may ask for what, and answers: sessions, lock, epochs, requests. It reads and sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker_runtime.agent.conductor import EMPTY, ENDED, GOING, LOADED, STARTED, STOPPED, Conductor
from broker_runtime.agent.effects import Answer, Effect, Keep, Leave, Ledger, Moment
from broker_runtime.agent.protocol import STEERING, Code, RequestRefused, answer, refusal
from broker_runtime.agent.spec import GRACE_MAX_S, STEPS_MAX, parse_process, parse_spec, parse_step

SESSIONS_MAX: Final = 16
CONTROLLER_LENGTH_MAX: Final = 200
EPOCH_MAX: Final = 1 << 53
T0_FROM_NOW_MAX_S: Final = 86_400.0


@dataclass(slots=True)
class Session:
    number: int
    name: str = ""
    greeted: bool = False
    epoch: int = 0  # of its steering; 0 while it watches
    lost: bool = False


class Core:
    """Inputs are methods that take the moment and return effects."""

    def __init__(self, run: str, nonce: str, facts: Mapping[str, object]) -> None:
        self._facts = facts  # what hello tells of this supervisor
        self.ledger = Ledger()
        self.conductor = Conductor(run, nonce, self.ledger)
        self.epoch = 0
        self.holder: Session | None = None
        self.sessions: dict[int, Session] = {}
        self._stops: list[Callable[[], None]] = []

    def opened(self, session: int) -> bool:
        """Whether there is room for one more."""
        if len(self.sessions) >= SESSIONS_MAX:
            return False
        self.sessions[session] = Session(session)
        return True

    def hung_up(self, number: int, now: Moment) -> list[Effect]:
        """It asks for nothing more: another may steer, also while its last request is under way."""
        if self.holder is not None and self.holder is self.sessions.get(number):
            self._release(now)
        return self._out(now)

    def closed(self, number: int, now: Moment) -> list[Effect]:
        effects = self.hung_up(number, now)
        self.sessions.pop(number, None)
        return effects

    def _release(self, now: Moment) -> None:
        assert self.holder is not None
        gone, self.holder = self.holder, None
        self.ledger.write(now, "controller", name=gone.name, epoch=gone.epoch, present=False)

    def request(self, number: int, message: Mapping[str, Any], now: Moment) -> list[Effect]:
        """Answer a request, now or later; whatever it holds, the answer is an answer or a refusal."""
        session = self.sessions[number]
        id_ = message.get("id")
        if isinstance(id_, bool) or not isinstance(id_, int) or abs(id_) > EPOCH_MAX:
            self.ledger.add(Answer(number, refusal(None, Code.BAD_REQUEST, "the id is no whole number")))
            return self._out(now)
        try:
            self._dispatch(session, id_, message, now)
        except RequestRefused as refused:
            self.ledger.add(Answer(number, refusal(id_, refused.code, refused.message)))
        return self._out(now)

    def allow(self, number: int) -> None:
        """RequestRefused unless the session has said hello: for what needs no decision of the core."""
        if not self.sessions[number].greeted:
            raise RequestRefused(Code.BAD_REQUEST, "say hello first")

    def _dispatch(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        do = message.get("do")
        if do == "hello":
            self._hello(session, id_, message, now)
            return
        self.allow(session.number)
        if do == "status":
            self._answer(session, id_, self.conductor.told())
            return
        if not isinstance(do, str) or do not in STEERING:
            raise RequestRefused(Code.BAD_REQUEST, f"there is no request {str(do)[:40]!r}")
        if session.lost:
            raise RequestRefused(
                Code.STALE_EPOCH, f"epoch {session.epoch} is over: this is epoch {self.epoch}"
            )
        if self.holder is not session:
            raise RequestRefused(Code.LOCKED, f"{do} needs the lock: say hello with mode steer")
        acts = {"load": self._load, "start": self._start, "go": self._go, "step": self._step}
        acts |= {"stop": self._stop, "clean": self._clean, "quit": self._quit}
        acts[do](session, id_, message, now)

    def _answer(self, session: Session, id_: int, fields: Mapping[str, object]) -> None:
        self.ledger.add(Answer(session.number, answer(id_, fields)))

    def _answer_when_durable(self, session: Session, id_: int, fields: Mapping[str, object]) -> None:
        self.ledger.when_durable(lambda: self._answer(session, id_, fields))

    def _hello(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        name, mode, epoch = message.get("controller", ""), message.get("mode", "watch"), message.get("epoch")
        if not isinstance(name, str) or len(name) > CONTROLLER_LENGTH_MAX:
            raise RequestRefused(Code.BAD_REQUEST, "controller is no short text")
        if mode not in ("watch", "steer"):
            raise RequestRefused(Code.BAD_REQUEST, "mode is neither watch nor steer")
        if epoch is not None and (not _whole(epoch) or epoch > EPOCH_MAX):
            raise RequestRefused(Code.BAD_REQUEST, "epoch is no whole number")
        if mode == "steer":
            self._take_lock(session, name, epoch, message.get("force") is True, now)
        elif self.holder is session:
            self._release(now)
            session.epoch = 0
        session.name, session.greeted = name, True
        told = {
            **self._facts,
            "epoch": self.epoch,
            "holder": self.holder.name if self.holder else None,
            "state": self.conductor.state,
            "seq": self.ledger.seq,
            "now": now.wall,
        }
        self._answer_when_durable(session, id_, told)

    def _take_lock(self, session: Session, name: str, epoch: int | None, force: bool, now: Moment) -> None:
        if epoch is not None and epoch < self.epoch:
            raise RequestRefused(Code.STALE_EPOCH, f"epoch {epoch} is over: this is epoch {self.epoch}")
        if self.holder is not None and self.holder is not session:
            if not force:
                raise RequestRefused(
                    Code.LOCKED, f"{self.holder.name or 'another controller'} steers this run"
                )
            self.holder.lost = True
            self._release(now)
        self.epoch = max(self.epoch, epoch or 0) + 1
        session.epoch, session.lost, session.name = self.epoch, False, name
        self.holder = session
        self.ledger.write(now, "controller", name=name, epoch=self.epoch, present=True)

    def _load(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        spec = parse_spec(message.get("spec"))
        loaded = self.conductor.spec
        if spec.run != self.conductor.run:
            raise RequestRefused(Code.BAD_REQUEST, f"the spec is of run {spec.run}, not {self.conductor.run}")
        if loaded is not None and loaded.digest != spec.digest:
            raise RequestRefused(Code.WRONG_STATE, "another spec is loaded")
        if loaded is None:
            self.conductor.require(EMPTY)
            self.ledger.add(Keep(message["spec"]))
            self.conductor.load(spec)
            self.ledger.write(now, "loaded", digest=spec.digest)
        self._answer_when_durable(session, id_, {})

    def _start(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        self.conductor.require(LOADED, STARTED, GOING, ENDED)
        if self.conductor.state == LOADED:
            self.conductor.start(now)
        self._answer_when_durable(session, id_, {})

    def _go(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        t0 = message.get("t0")
        if isinstance(t0, bool) or not isinstance(t0, int | float):
            raise RequestRefused(Code.BAD_REQUEST, "t0 is no number")
        if self.conductor.t0 is not None and self.conductor.t0 != t0:
            raise RequestRefused(Code.WRONG_STATE, f"the clock runs since {self.conductor.t0!r}")
        if self.conductor.t0 is None:
            self.conductor.require(STARTED)
            if not abs(t0 - now.wall) <= T0_FROM_NOW_MAX_S:
                raise RequestRefused(Code.BAD_REQUEST, "t0 is more than a day from now")
            self.conductor.go(float(t0), now)
        self._answer_when_durable(session, id_, {})

    def _step(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        self.conductor.require(LOADED, STARTED, GOING, ENDED)
        spec, brought = self.conductor.spec, message.get("process")
        assert spec is not None
        grown = spec if brought is None else spec.with_process(parse_process(brought))
        step = parse_step(message.get("step"), grown.processes)
        if step.at_s is None:
            self.conductor.require(STARTED, GOING, ENDED)
        there = self.conductor.schedule.items.get((step.number, False))
        if there is not None and there.step != step:
            raise RequestRefused(Code.BAD_REQUEST, f"there is another step {step.number}")
        if there is None:
            if len(self.conductor.schedule.items) >= STEPS_MAX:
                raise RequestRefused(Code.TOO_LARGE, f"there are {STEPS_MAX} steps already")
            if grown is not spec:
                self.ledger.add(Keep(grown.fields()))
                self.conductor.grow(grown)
            self.conductor.add_step(step, now)
        self._answer_when_durable(session, id_, {})

    def _stop(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        grace_s = message.get("grace_s")
        bad = isinstance(grace_s, bool) or not isinstance(grace_s, int | float)
        if grace_s is not None and (bad or not 0 <= grace_s <= GRACE_MAX_S):
            raise RequestRefused(Code.BAD_REQUEST, f"grace_s is no number from 0 to {GRACE_MAX_S:g}")
        self._stops.append(lambda: self._answer(session, id_, {}))
        self.conductor.stop(grace_s, now)

    def _clean(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        self._stops.append(lambda: self.ledger.add(Leave(session.number, id_, clean=True)))
        self.conductor.stop(None, now)

    def _quit(self, session: Session, id_: int, message: Mapping[str, Any], now: Moment) -> None:
        if self.conductor.busy:
            raise RequestRefused(Code.WRONG_STATE, "processes run: stop them first")
        self.ledger.add(Leave(session.number, id_, clean=False))

    def tick(self, now: Moment) -> list[Effect]:
        return self._out(now)

    def synced(self, seq: int, now: Moment) -> list[Effect]:
        self.ledger.synced(seq)
        return self._out(now)

    def happened(self, change: Callable[[Conductor], None], now: Moment) -> list[Effect]:
        """A process did something: see the conductor's methods."""
        change(self.conductor)
        return self._out(now)

    def _out(self, now: Moment) -> list[Effect]:
        self.conductor.tick(now)
        if self._stops and self.conductor.state == STOPPED:
            stops, self._stops = self._stops, []
            for act in stops:
                act()
        return self.ledger.take()

    def next_at(self) -> float | None:
        return self.conductor.next_at()


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
