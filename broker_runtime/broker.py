"""Composes the rooms into one broker: handle(input, now) -> effects.

No socket, clock, randomness, thread or file in here: time comes with every input, and the few things a
broker wants to know of its process come in as `Instruments`. See ARCHITECTURE.md for the journey of a
publication.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from broker_runtime import VERSION
from broker_runtime.control.monitor import Monitor
from broker_runtime.control.words import concerns_control
from broker_runtime.intake import Intake
from broker_runtime.language.messages import Conjunction
from broker_runtime.language.recording import recorded_filter
from broker_runtime.link.endpoint import Endpoint, Identity, Target
from broker_runtime.link.pressure import Pressure
from broker_runtime.link.session import CONTROL_LANE, DATA_LANE, LinkSettings, Role, Session
from broker_runtime.routing.forwarding import Covering
from broker_runtime.routing.overlay import Overlay
from broker_runtime.routing.router import Duplicate, Forward, Router
from broker_runtime.seam import (
    Command,
    Effect,
    Exit,
    Input,
    Log,
    RandomSource,
    Received,
    Tick,
)
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    Advertise,
    Confirm,
    ExtendedHead,
    Head,
    LinkState,
    Message,
    Refuse,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    encode,
)

STATISTICS_WINDOW_S: Final = 5.0

FilterMessage = Advertise | Unadvertise | Subscribe | Unsubscribe


def _zero() -> float:
    return 0.0


def _no_memory() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a broker may read of its process: a stopwatch in seconds, memory in bytes, CPU time in seconds."""

    stopwatch: Callable[[], float] = _zero
    memory: Callable[[], int] = _no_memory
    cpu: Callable[[], float] = _zero


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    id: str
    address: str = ""
    neighbours: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    incarnation: str = "0"
    boot: int = 0
    covering: Covering = Covering.ACTIVE  # of subscriptions
    advertisement_covering: Covering | None = None  # None: as for subscriptions
    publications_checked: bool = True  # refuse what a publisher did not advertise
    log_every: int = 0  # log each publication whose number is a multiple; 0 logs none, 1 all
    status_every_s: float = 0.0  # 0: no monitor
    memory_watermark_bytes: int = 0  # above it, clients' input waits; 0: no limit
    link: LinkSettings = field(default_factory=LinkSettings)


class Broker:
    """One broker of the overlay."""

    def __init__(
        self,
        settings: BrokerSettings,
        random: RandomSource,
        now: float,
        instruments: Instruments | None = None,
        router: Router | None = None,
    ) -> None:
        self.settings = settings
        self.id = settings.id
        self.instruments = instruments or Instruments()
        self.router = router or Router(
            settings.covering, advertisement_covering=settings.advertisement_covering
        )
        self.overlay = Overlay(settings.id, settings.boot)
        identity = Identity(settings.id, Role.BROKER, settings.incarnation, settings.address, settings.token)
        self.endpoint = Endpoint(identity, settings.link, random, self)
        self.pressure = Pressure(self.endpoint)
        self.intake = Intake(
            self.router,
            self.endpoint,
            self.pressure,
            self,
            self.instruments.stopwatch,
            publications_checked=settings.publications_checked,
            log_every=settings.log_every,
        )
        self.paused = False
        self.short_of_memory = False
        self._failures: dict[str, str] = {}  # last reported failure per target
        self._statistics_at = now + STATISTICS_WINDOW_S
        self.monitor = Monitor(self, now) if settings.status_every_s else None
        self._log("start", version=VERSION, broker=self.id, address=settings.address)
        for address in settings.neighbours:
            self.endpoint.connect(address, now)
        self.endpoint.soon(self._statistics_at)

    # The seam

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Everything a broker does. Never raises for what a peer does."""
        endpoint = self.endpoint
        if event.__class__ is Received:
            endpoint.received(event.connection, event.frames, now)
        else:
            self._handle_rare(event, now)
        if self.paused:  # routing may have become free to go on
            self.pressure.wake(endpoint.sessions)
        self.pressure.settle(now)
        return endpoint.drain_effects()

    def _handle_rare(self, event: Input, now: float) -> None:
        if isinstance(event, Tick):
            self._tick(now)
        elif isinstance(event, Command):
            self._command(event, now)
        else:
            self.endpoint.handle(event, now)

    def _command(self, command: Command, now: float) -> None:
        if command.word == "stop":
            self.stop(command.argument or "stopped", now)
        elif command.word == "pause":
            self.pause()
        elif command.word == "resume":
            self.resume()
        elif command.word == "connect":
            self.endpoint.connect(command.argument, now)
        elif command.word == "disconnect":
            session = self.endpoint.disconnect(command.argument)
            if session is not None:
                self.endpoint.say_goodbye(session, "disconnected", now)

    def stop(self, reason: str, now: float) -> None:
        self._log_load()
        self._log("stop", reason=reason)
        self.endpoint.leave(reason, now)
        self.endpoint.effects.append(Exit(reason))

    def pause(self) -> None:
        """Hold publications; control goes on, and so does routing that no held publication precedes."""
        self.paused = True
        self._log("pause")

    def resume(self) -> None:
        self.paused = False
        self._log("resume")
        self.pressure.wake(self.endpoint.sessions)

    # Time

    def _tick(self, now: float) -> None:
        self.endpoint.tick(now)
        if now >= self._statistics_at:
            self._statistics_at = now + STATISTICS_WINDOW_S
            for session in self.endpoint.sessions.values():
                self._log_counts(session)
            self._log_load()
            self._watch_memory()
        self.endpoint.soon(self._statistics_at)
        if self.monitor is not None:
            self.endpoint.soon(self.monitor.tick(now))

    def _watch_memory(self) -> None:
        limit = self.settings.memory_watermark_bytes
        if not limit:
            return
        used = self.instruments.memory()
        if used > limit and not self.short_of_memory:
            self.short_of_memory = True
            self._log("memory", used_bytes=used, watermark_bytes=limit, holding=True)
        elif used < limit * 0.9 and self.short_of_memory:
            self.short_of_memory = False
            self._log("memory", used_bytes=used, watermark_bytes=limit, holding=False)
            self.pressure.wake(self.endpoint.sessions)

    # Owner of the endpoint

    def admit(self, peer: str, role: Role) -> None:
        if role is Role.BROKER:
            way = self.overlay.way_to(peer)
            if way:
                raise WireError(
                    "CYCLE",
                    f"a link {self.id}–{peer} would close a cycle with {' – '.join(way)};"
                    " this overlay has to stay without cycles",
                )

    def session_opened(self, session: Session, now: float) -> None:
        peer = session.peer
        if session.role is Role.CLIENT:
            self._log("client_up", client=peer, policy=session.policy.value, resumed=False)
            return
        self._log("link_up", peer=peer, resumed=False)
        for state in self.overlay.states:
            session.offer(DATA_LANE, encode(state))
        self._flood(self.overlay.link_up(peer, session.stamp))
        self.forward(self.router.neighbour_up(peer))
        self._drop_surplus(now)

    def session_resumed(self, session: Session, now: float) -> None:
        kind, key = _link_words(session)
        self._log(f"{kind}_up", **{key: session.peer}, resumed=True)

    def connection_lost(self, session: Session, reason: str, now: float) -> None:
        kind, key = _link_words(session)
        self._log(f"{kind}_down", **{key: session.peer}, reason=reason, ended=False)

    def session_ended(self, session: Session, reason: str, now: float) -> None:
        self._log_counts(session)
        kind, key = _link_words(session)
        self._log(f"{kind}_down", **{key: session.peer}, reason=reason, ended=True)
        self.pressure.forget(session)
        if session.role is Role.BROKER:
            self._flood(self.overlay.link_down(session.peer))
        self.forward(self.router.hop_down(session.peer))

    def target_failed(self, target: Target, reason: str, now: float) -> None:
        if self._failures.get(target.address) != reason:
            self._failures[target.address] = reason
            self._log("dial_failed", address=target.address, peer=target.peer, reason=reason)

    def peer_rejected(self, peer: str, code: str, message: str, now: float) -> None:
        if code != "BUSY" and self._failures.get(peer) != message:
            self._failures[peer] = message
            self._log("error", peer=peer, code=code, message=message)

    def holding(self, session: Session, lane: int) -> bool:
        if lane == CONTROL_LANE:
            return False
        return bool(
            (self.paused and not session.routing_comes_next)
            or session.blocked_on
            or (self.short_of_memory and session.role is Role.CLIENT)
        )

    def take(self, session: Session, lane: int, body: bytes, position: int, now: float) -> int:
        return self.intake.take(session, lane, body, position, now)

    # The desk of the intake

    def notified(self, head: Head | ExtendedHead, payload: bytes, now: float) -> None:
        if self.monitor is not None:
            self.monitor.obey(head, payload, now)

    def traced(
        self, head: Head | ExtendedHead, came_from: str, goes_to: list[str], hops: int, now: float
    ) -> None:
        if self.monitor is not None:
            self.monitor.trace(head, came_from, goes_to, hops, now)

    def take_message(self, session: Session, message: Message, now: float) -> None:
        peer = session.peer
        if isinstance(message, LinkState | Confirm) and session.role is Role.CLIENT:
            raise WireError("BAD_RECORD", f"a client does not send {type(message).__name__}")
        if isinstance(message, FilterMessage):
            self._take_filter(session, message)
        elif isinstance(message, Confirm):
            self.forward(self.router.confirm(message.id, peer))
        elif isinstance(message, LinkState):
            news = self.overlay.learn(message)
            if news is not None:
                self._flood(news, besides=peer if news is message else "")
                self._drop_surplus(now)
        elif isinstance(message, Refuse):
            self._log("refused", peer=peer, id=message.id, code=message.code, message=message.message)

    def _take_filter(self, session: Session, message: FilterMessage) -> None:
        peer = session.peer
        if session.role is Role.CLIENT and not message.id.startswith(f"{session.source}:"):
            text = f"ids of {peer} begin with {session.source}:"
            self.intake.refuse(session, message.id, "BAD_ID", text)
            return
        wanted = self._filter_of(message, peer)  # before a withdrawal takes it away
        try:
            self.forward(self.inject(message, peer))
        except Duplicate:
            self.intake.refuse(session, message.id, "DUPLICATE_ID", f"{message.id} is in use")
            return
        if session.role is Role.CLIENT and wanted is not None and not concerns_control(wanted):
            self._log_filter(message, peer, wanted)

    def inject(self, message: FilterMessage, hop: str) -> list[Forward]:
        """What follows from a message that came from the hop."""
        router = self.router
        if isinstance(message, Advertise):
            return router.advertise(message.id, message.advertisement, hop)
        if isinstance(message, Unadvertise):
            return router.unadvertise(message.id, hop)
        if isinstance(message, Subscribe):
            return router.subscribe(message.id, message.subscription, hop)
        return router.unsubscribe(message.id, hop)

    def forward(self, forwards: list[Forward]) -> None:
        """Queue messages for their hops; what is meant for a hop that is gone is dropped."""
        for hop, message in forwards:
            session = self.endpoint.sessions.get(hop)
            if session is not None:
                session.offer(DATA_LANE, encode(message))
                self.endpoint.mark(session)

    def _flood(self, state: LinkState, besides: str = "") -> None:
        record = encode(state)
        for session in self.endpoint.sessions.values():
            if session.role is Role.BROKER and session.peer != besides:
                session.offer(DATA_LANE, record)
                self.endpoint.mark(session)

    def _drop_surplus(self, now: float) -> None:
        """Links that closed a cycle while two of them came up at once."""
        for peer in self.overlay.surplus():
            session = self.endpoint.sessions.get(peer)
            if session is not None:
                way = " – ".join(self.overlay.way_to(peer))
                error = WireError("CYCLE", f"the link {self.id}–{peer} closed a cycle with {way}")
                self.endpoint.break_off(session, error, now)

    # Log

    def _log(self, kind: str, **fields: object) -> None:
        self.endpoint.effects.append(Log(kind, fields))

    def _log_counts(self, session: Session) -> None:
        self._log(
            "counts",
            peer=session.peer,
            role=session.role.value,
            records_in=session.records_in,
            records_out=session.records_out,
            bytes_in=session.bytes_in,
            bytes_out=session.bytes_out,
            queue_length=len(session.data.unsent),
            dropped=session.dropped,
        )

    def _log_load(self) -> None:
        intake = self.intake
        self._log(
            "load",
            publications=intake.publications,
            unwanted=intake.unwanted,
            subscriptions=len(self.router.subscriptions),
            advertisements=len(self.router.advertisements),
            queue_length=sum(len(session.data.unsent) for session in self.endpoint.sessions.values()),
            matchings=intake.matchings,
            memory_bytes=self.instruments.memory(),
            queueing_s=round(self.endpoint.queueing_s, 6),
            matching_s=round(intake.matching_s, 9),
            cpu_s=round(self.instruments.cpu(), 6),
        )

    def _filter_of(self, message: FilterMessage, hop: str) -> Conjunction | None:
        """What a message of the hop asks for or promises, or withdraws; None when there is no such thing."""
        if isinstance(message, Advertise):
            return message.advertisement
        if isinstance(message, Subscribe):
            return message.subscription
        table = self.router.advertisements if isinstance(message, Unadvertise) else self.router.subscriptions
        return table.get((hop, message.id))

    def _log_filter(self, message: FilterMessage, client: str, wanted: Conjunction) -> None:
        if isinstance(message, Subscribe):
            self._log("subscribe", id=message.id, client=client, **recorded_filter(wanted))
        elif isinstance(message, Advertise):
            self._log("advertise", id=message.id, client=client, **recorded_filter(wanted))
        elif isinstance(message, Unsubscribe):
            self._log("unsubscribe", id=message.id, client=client)
        else:
            self._log("unadvertise", id=message.id, client=client)


def _link_words(session: Session) -> tuple[str, str]:
    return ("client", "client") if session.role is Role.CLIENT else ("link", "peer")
