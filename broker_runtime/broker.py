"""Composes the rooms into one broker: handle(input, now) -> effects.

No socket, clock, randomness, thread or file in here: time comes with every input, and the few things a
broker wants to know of its process come in as `Instruments`. See ARCHITECTURE.md for the journey of a
publication.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from broker_runtime import VERSION
from broker_runtime.control.monitor import Monitor
from broker_runtime.control.words import CONTROL_CLASSES
from broker_runtime.language.messages import CLASS
from broker_runtime.link.endpoint import Endpoint, Identity, Target
from broker_runtime.link.session import CONTROL_LANE, DATA_LANE, LinkSettings, Policy, Role, Session
from broker_runtime.routing.forwarding import Covering
from broker_runtime.routing.overlay import Overlay
from broker_runtime.routing.router import Duplicate, Forward, Router
from broker_runtime.seam import (
    Closed,
    Command,
    DialFailed,
    Effect,
    Exit,
    Input,
    Log,
    Malformed,
    Opened,
    RandomSource,
    Received,
    Tick,
)
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    ATTRIBUTES_MAX,
    HOPS_MAX,
    PREFIX,
    PREFIX_BYTES,
    PUBLISH,
    Advertise,
    Confirm,
    ExtendedHead,
    Flag,
    Head,
    LinkState,
    Message,
    Notice,
    RecordRefused,
    Refuse,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    check_head,
    decode,
    decode_head,
    decode_publication,
    encode,
    forwarded,
)

STATISTICS_WINDOW_S: Final = 5.0
PREFIXES_MAX: Final = 1_024
_unpack: Final = PREFIX.unpack_from
_pack: Final = PREFIX.pack


def _zero() -> float:
    return 0.0


def _no_memory() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a broker may read of its process: a stopwatch in seconds, and memory in bytes."""

    stopwatch: Callable[[], float] = _zero
    memory: Callable[[], int] = _no_memory


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
        self.paused = False
        self.short_of_memory = False
        self.publications = 0
        self.undelivered = 0  # publications that nobody wanted
        self.routing_s = 0.0  # time spent on records: decoding, matching, queueing for output
        self._prefixes: dict[int, bytes] = {}
        self._pressed: list[tuple[Session, Session]] = []  # (source, full destination)
        self._congested: dict[str, Session] = {}  # destinations that hold others up, or dropped something
        self._waiting: dict[str, Session] = {}  # sources whose input may go on
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
        self._settle(now)
        return endpoint.drain_effects()

    def _handle_rare(self, event: Input, now: float) -> None:
        endpoint = self.endpoint
        if isinstance(event, Tick):
            self._tick(now)
        elif isinstance(event, Opened):
            endpoint.opened(event.connection, event.address, now)
        elif isinstance(event, Closed):
            endpoint.closed(event.connection, event.reason, now)
        elif isinstance(event, Malformed):
            endpoint.malformed(event.connection, event.code, event.message, now)
        elif isinstance(event, DialFailed):
            endpoint.dial_failed(event.address, event.reason, now)
        elif isinstance(event, Command):
            self._command(event, now)

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
        self._waiting.update(self.endpoint.sessions)

    # Time

    def _tick(self, now: float) -> None:
        self.endpoint.tick(now)
        if now >= self._statistics_at:
            self._statistics_at = now + STATISTICS_WINDOW_S
            self._log_counts()
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
            self._waiting.update(self.endpoint.sessions)

    def _settle(self, now: float) -> None:
        """Send what is ready, then deal with full queues and with input that may go on."""
        endpoint = self.endpoint
        endpoint.flush()
        if self.paused:
            self._waiting.update(endpoint.sessions)
        while self._pressed or self._waiting or self._congested:
            for source, destination in self._pressed:
                self._press(source, destination, now)
            self._pressed.clear()
            self._release_drained()
            if not self._waiting:
                break
            waiting, self._waiting = self._waiting, {}
            for session in waiting.values():
                if not session.ended:
                    endpoint.resume_input(session, now)
            endpoint.flush()

    def _press(self, source: Session, destination: Session, now: float) -> None:
        """The destination's queue is full: apply its policy."""
        if destination.ended or not destination.full:
            return
        if destination.policy is Policy.BLOCK:
            source.blocked_on[destination.peer] = destination
            destination.blocking[source.peer] = source
            self._congested[destination.peer] = destination
        elif destination.policy is Policy.DISCONNECT:
            slow = f"{len(destination.data.unsent)} notifications wait, which is the limit"
            self.endpoint.break_off(destination, WireError("SLOW_SUBSCRIBER", slow), now)
        else:
            kept = destination.queue_length_max, destination.settings.queue_bytes_max
            dropped = destination.data.drop_oldest(*kept)
            destination.dropped += dropped
            destination.dropped_untold += dropped
            self._congested[destination.peer] = destination

    def _release_drained(self) -> None:
        for session in list(self._congested.values()):
            if session.drained:
                del self._congested[session.peer]
                self._release(session)
                self._tell_dropped(session)

    def _tell_dropped(self, session: Session) -> None:
        if session.dropped_untold and not session.ended:
            text = "notifications were dropped because they were not taken in time"
            session.offer(DATA_LANE, encode(Notice("DROPPED", text, session.dropped_untold)))
            session.dropped_untold = 0
            self.endpoint.mark(session)
            self.endpoint.flush()

    def _release(self, destination: Session) -> None:
        for source in destination.blocking.values():
            source.blocked_on.pop(destination.peer, None)
            if not source.blocked_on:
                self._waiting[source.peer] = source
        destination.blocking.clear()

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
        self._forward(self.router.neighbour_up(peer))
        self._drop_surplus(now)

    def session_resumed(self, session: Session, now: float) -> None:
        kind, key = _link_words(session)
        self._log(f"{kind}_up", **{key: session.peer}, resumed=True)

    def connection_lost(self, session: Session, reason: str, now: float) -> None:
        kind, key = _link_words(session)
        self._log(f"{kind}_down", **{key: session.peer}, reason=reason, ended=False)

    def session_ended(self, session: Session, reason: str, now: float) -> None:
        kind, key = _link_words(session)
        self._log(f"{kind}_down", **{key: session.peer}, reason=reason, ended=True)
        for destination in session.blocked_on.values():
            destination.blocking.pop(session.peer, None)
        self._release(session)
        self._congested.pop(session.peer, None)
        self._waiting.pop(session.peer, None)
        if session.role is Role.BROKER:
            self._flood(self.overlay.link_down(session.peer))
        self._forward(self.router.hop_down(session.peer))

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
            (self.paused and not _routing_comes_next(session))
            or session.blocked_on
            or (self.short_of_memory and session.role is Role.CLIENT)
        )

    def take(self, session: Session, lane: int, body: bytes, position: int, now: float) -> int:
        """Act on every record of one frame; how many there were."""
        started = self.instruments.stopwatch()
        touched: dict[str, Session] = {}
        try:
            if lane == DATA_LANE and session.role is Role.BROKER:
                count = self._take_from_broker(session, body, position, touched, now)
            elif lane == DATA_LANE:
                count = self._take_from_client(session, body, position, touched, now)
            else:
                count = self._take_control(session, body, position, now)
        except (struct.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise WireError("BAD_RECORD", f"a record does not decode: {error}") from error
        self.routing_s += self.instruments.stopwatch() - started
        if touched:
            self._touch(session, touched)
        return count

    # The hot path. The two loops differ in what they check: a client may publish only under its own name
    # and as it has advertised; a broker's publications were checked where they entered, and never go back.

    def _take_from_client(  # noqa: PLR0912 — one loop, inlined: a call per message costs a tenth
        self, session: Session, body: bytes, position: int, touched: dict[str, Session], now: float
    ) -> int:
        match, sessions, unpack = self.router.match, self.endpoint.sessions, _unpack
        prefixes = self._prefixes
        source, sample = session.source, self.settings.log_every
        promised = self.router.promised(session.peer) if self.settings.publications_checked else None
        end, count, routed, limit = len(body), 0, 0, self.settings.link.record_bytes_max
        while position < end:
            length, kind, flags, hops = unpack(body, position)
            start = position + PREFIX_BYTES
            position += 4 + length
            if length < 3 or position > end or length > limit:
                raise WireError("BAD_RECORD", f"a record of {length} bytes does not fit")
            count += 1
            text = body[start:position]
            if kind != PUBLISH or flags:
                self._take_other(session, DATA_LANE, kind, flags, hops, text, now)
                continue
            head = decode_head(text)
            content = head.content
            routed += 1
            if head.source != source:
                self._refuse_source(session, head)
                continue
            if promised is None:
                check_head(head)
            else:
                for advertisement in promised:
                    if advertisement.induces(content):
                        break
                else:
                    self._refuse_unadvertised(session, head)
                    continue
            keys = match(content)
            if len(keys) == 1:
                hop = keys[0][0]
                destination = sessions.get(hop)
                if destination is not None:
                    queue = destination.data
                    queue.unsent.append((prefixes.get(length) or self._prefix(length)) + text)
                    queue.unsent_bytes += length + 4
                    touched[hop] = destination
            elif keys:
                self._fan_out(keys, "", self._prefix(length) + text, touched)
            else:
                self.undelivered += 1
            if sample and head.number % sample == 0:
                self._log_routed(session, head, 0, list(dict.fromkeys([key[0] for key in keys])))
        self.publications += routed
        return count

    def _take_from_broker(
        self, session: Session, body: bytes, position: int, touched: dict[str, Session], now: float
    ) -> int:
        match, unpack, pack = self.router.match, _unpack, _pack
        peer, sample = session.peer, self.settings.log_every
        end, count, routed, limit = len(body), 0, 0, self.settings.link.record_bytes_max
        while position < end:
            length, kind, flags, hops = unpack(body, position)
            start = position + PREFIX_BYTES
            position += 4 + length
            if length < 3 or position > end or length > limit:
                raise WireError("BAD_RECORD", f"a record of {length} bytes does not fit")
            count += 1
            text = body[start:position]
            if kind != PUBLISH or flags:
                self._take_other(session, DATA_LANE, kind, flags, hops, text, now)
                if session.ended:  # what follows came from a neighbour that is none any more
                    break
                continue
            head = decode_head(text)
            content = head.content
            if CLASS not in content or "" in content or len(content) > ATTRIBUTES_MAX:
                check_head(head)
            routed += 1
            keys = match(content)
            if keys:
                record = pack(length, PUBLISH, 0, hops + 1 if hops < HOPS_MAX else hops) + text
                self._fan_out(keys, peer, record, touched)
            else:
                self.undelivered += 1
            if sample and head.number % sample == 0:
                hops_to = list(dict.fromkeys([key[0] for key in keys if key[0] != peer]))
                self._log_routed(session, head, hops, hops_to)
        self.publications += routed
        return count

    def _prefix(self, length: int) -> bytes:
        """The prefix of a publication one hop from its client; lengths repeat, so it is kept."""
        if len(self._prefixes) >= PREFIXES_MAX:
            self._prefixes.clear()
        prefix = self._prefixes[length] = _pack(length, PUBLISH, 0, 1)
        return prefix

    def _fan_out(
        self, keys: list[tuple[str, str]], besides: str, record: bytes, touched: dict[str, Session]
    ) -> None:
        """Queue one record for every hop among the keys, once each."""
        sessions, size = self.endpoint.sessions, len(record)
        for hop in dict.fromkeys([key[0] for key in keys]):
            destination = touched.get(hop)
            if destination is None:
                destination = sessions.get(hop)
                if destination is None or hop == besides:
                    continue
                touched[hop] = destination
            queue = destination.data
            queue.unsent.append(record)
            queue.unsent_bytes += size

    def _take_control(self, session: Session, body: bytes, position: int, now: float) -> int:
        end, count, limit = len(body), 0, self.settings.link.record_bytes_max
        while position < end:
            length, kind, flags, hops = _unpack(body, position)
            start = position + PREFIX_BYTES
            position += 4 + length
            if length < 3 or position > end or length > limit:
                raise WireError("BAD_RECORD", f"a record of {length} bytes does not fit")
            count += 1
            self._take_other(session, CONTROL_LANE, kind, flags, hops, body[start:position], now)
        return count

    def _permitted(self, session: Session, head: Head | ExtendedHead) -> bool:
        """Whether a client may publish this: under its own name, and as it has advertised."""
        if head.source != session.source:
            self._refuse_source(session, head)
            return False
        if self.settings.publications_checked and not self.router.induced(head.content, session.peer):
            self._refuse_unadvertised(session, head)
            return False
        return True

    def _refuse_source(self, session: Session, head: Head | ExtendedHead) -> None:
        text = f"publications of {session.peer} come from {session.source}"
        self._refuse(session, head, "BAD_ID", text)

    def _refuse_unadvertised(self, session: Session, head: Head | ExtendedHead) -> None:
        check_head(head)
        text = (
            f"no advertisement of {session.peer} allows this publication of class"
            f" {head.content[CLASS]!r}: advertise its attributes and values first"
        )
        self._refuse(session, head, "NOT_ADVERTISED", text)

    def _touch(self, source: Session, touched: dict[str, Session]) -> None:
        self.endpoint.dirty.update(touched)
        for destination in touched.values():
            if destination.full:
                self._pressed.append((source, destination))

    # Records off the hot path

    def _take_other(
        self, session: Session, lane: int, kind: int, flags: int, hops: int, body: bytes, now: float
    ) -> None:
        if kind == PUBLISH:
            self._take_publication(session, lane, flags, hops, body, now)
            return
        if lane == CONTROL_LANE:
            raise WireError("BAD_RECORD", "the control lane carries publications only")
        try:
            message = decode(kind, body)
        except RecordRefused as refused:
            self._log("refuse", peer=session.peer, id=refused.id, code=refused.code)
            session.refuse(encode(Refuse(refused.id, refused.code, refused.message)))
            return
        self._take_message(session, message, now)

    def _take_publication(
        self, session: Session, lane: int, flags: int, hops: int, body: bytes, now: float
    ) -> None:
        """A publication with a payload, a date, a trace, or of a control class."""
        head, payload = decode_publication(body, flags)
        urgent = head.content[CLASS] in CONTROL_CLASSES
        if urgent != bool(flags & Flag.URGENT) or urgent != (lane == CONTROL_LANE):
            raise WireError("BAD_RECORD", "control classes, and no others, travel in the control lane")
        self.publications += 1
        if session.role is Role.CLIENT and not self._permitted(session, head):
            return
        hops_to = self.router.destinations(head.content, session.peer)
        self.route(session, head, payload, hops_to, forwarded(body, flags, hops), lane, now)
        if flags & Flag.TRACE and self.monitor is not None:
            self.monitor.trace(head, session.peer, hops_to, hops, now)
        sample = self.settings.log_every
        if sample and head.number % sample == 0:
            self._log_routed(session, head, hops, hops_to)

    def route(
        self,
        source: Session | None,
        head: Head | ExtendedHead,
        payload: bytes,
        hops_to: list[str],
        record: bytes,
        lane: int,
        now: float,
    ) -> None:
        """Queue a publication's record for its destinations; the broker itself may be one."""
        touched: dict[str, Session] = {}
        for hop in hops_to:
            destination = self.endpoint.sessions.get(hop)
            if destination is not None:
                destination.offer(lane, record)
                touched[hop] = destination
                if lane == CONTROL_LANE:
                    limit = self.settings.link.control_queue_length_max
                    if len(destination.control.unsent) > limit:
                        destination.control.drop_oldest(limit, self.settings.link.queue_bytes_max)
            elif hop == self.id and self.monitor is not None:
                self.monitor.obey(head, payload, now)
        if source is not None:
            self._touch(source, touched)
        else:
            self.endpoint.dirty.update(touched)

    def _take_message(self, session: Session, message: Message, now: float) -> None:
        peer = session.peer
        if isinstance(message, LinkState | Confirm) and session.role is Role.CLIENT:
            raise WireError("BAD_RECORD", f"a client does not send {type(message).__name__}")
        if isinstance(message, Advertise | Unadvertise | Subscribe | Unsubscribe):
            self._take_filter(session, message)
        elif isinstance(message, Confirm):
            self._forward(self.router.confirm(message.id, peer))
        elif isinstance(message, LinkState):
            news = self.overlay.learn(message)
            if news is not None:
                self._flood(news, besides=peer if news is message else "")
                self._drop_surplus(now)
        elif isinstance(message, Refuse):
            self._log("refused", peer=peer, id=message.id, code=message.code, message=message.message)

    def _take_filter(
        self, session: Session, message: Advertise | Unadvertise | Subscribe | Unsubscribe
    ) -> None:
        peer = session.peer
        if session.role is Role.CLIENT and not message.id.startswith(f"{session.source}:"):
            text = f"ids of {peer} begin with {session.source}:"
            session.refuse(encode(Refuse(message.id, "BAD_ID", text)))
            return
        try:
            self._forward(self.inject(message, peer))
        except Duplicate:
            session.refuse(encode(Refuse(message.id, "DUPLICATE_ID", f"{message.id} is in use")))

    def inject(self, message: Advertise | Unadvertise | Subscribe | Unsubscribe, hop: str) -> list[Forward]:
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

    _forward = forward

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

    def _refuse(self, session: Session, head: Head | ExtendedHead, code: str, why: str) -> None:
        id_ = f"{head.source}:{head.number}"
        self._log("refuse", peer=session.peer, id=id_, code=code)
        session.refuse(encode(Refuse(id_, code, why)))

    # Log

    def _log(self, kind: str, **fields: object) -> None:
        self.endpoint.effects.append(Log(kind, fields))

    def _log_routed(self, session: Session, head: Head | ExtendedHead, hops: int, hops_to: list[str]) -> None:
        id_ = f"{head.source}:{head.number}"
        if session.role is Role.CLIENT:
            self._log("publish", id=id_, client=session.peer, time=head.time)
        for hop in hops_to:
            destination = self.endpoint.sessions.get(hop)
            if destination is not None and destination.role is Role.CLIENT:
                self._log("deliver", id=id_, client=hop, hops=hops + 1)

    def _log_counts(self) -> None:
        for session in self.endpoint.sessions.values():
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


def _routing_comes_next(session: Session) -> bool:
    """Whether the input that waits longest holds no publication; so whoever may resume us gets through."""
    for body, position, _, _ in session.input[DATA_LANE]:
        while position + PREFIX_BYTES <= len(body):
            length, kind, _, _ = PREFIX.unpack_from(body, position)
            if kind == PUBLISH:
                return False
            position += 4 + int(length)
        return True
    return False


def _link_words(session: Session) -> tuple[str, str]:
    return ("client", "client") if session.role is Role.CLIENT else ("link", "peer")
