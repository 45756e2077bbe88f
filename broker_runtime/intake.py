"""Decides what becomes of the records in a frame; the hot path of a broker.

Plain publications are decoded, checked, matched and queued right here, in loops that call as little as they
can: a call per message costs a tenth of the whole. The same bytes go to every destination; only the
seven-byte prefix is new. Everything else is handed to the broker (`Desk`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec

from broker_runtime.control.words import CONTROL_CLASSES
from broker_runtime.language.messages import CLASS
from broker_runtime.language.recording import recorded_content
from broker_runtime.language.values import Value
from broker_runtime.link.endpoint import Endpoint
from broker_runtime.link.pressure import Pressure
from broker_runtime.link.session import CONTROL_LANE, DATA_LANE, Role, Session
from broker_runtime.routing.router import Router
from broker_runtime.seam import Log
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    ATTRIBUTES_MAX,
    HOPS_MAX,
    PREFIX,
    PREFIX_BYTES,
    PUBLISH,
    ExtendedHead,
    Flag,
    Head,
    Message,
    RecordRefused,
    Refuse,
    check_head,
    decode,
    decode_head,
    decode_publication,
    encode,
    forwarded,
)

PREFIXES_MAX: Final = 1_024
FRAMES_PER_SAMPLE: Final = 64
_unpack: Final = PREFIX.unpack_from
_pack: Final = PREFIX.pack

AnyHead = Head | ExtendedHead
Touched = dict[str, Session]


class Desk(Protocol):
    """Where the intake takes what is not a matter of queues."""

    id: str

    def take_message(self, session: Session, message: Message, now: float) -> None:
        """Any message but a publication."""

    def notified(self, head: AnyHead, payload: bytes, now: float) -> None:
        """A publication that the broker itself has subscribed to."""

    def traced(self, head: AnyHead, came_from: str, goes_to: list[str], hops: int, now: float) -> None:
        """A publication that wants its way reported."""


class Intake:
    """The records that come in at one broker."""

    def __init__(
        self,
        router: Router,
        endpoint: Endpoint,
        pressure: Pressure,
        desk: Desk,
        stopwatch: Callable[[], float],
        *,
        publications_checked: bool,
        log_every: int,
    ) -> None:
        self.publications = 0
        self.unwanted = 0  # publications that nobody asked for
        self.matching_s = 0.0
        self.matchings = 0  # how many were measured
        self._router = router
        self._endpoint = endpoint
        self._pressure = pressure
        self._desk = desk
        self._stopwatch = stopwatch
        self._checked = publications_checked
        self._log_every = log_every
        self._record_bytes_max = endpoint.settings.record_bytes_max
        self._frames = 0
        self._prefixes: dict[int, bytes] = {}

    def take(self, session: Session, lane: int, body: bytes, position: int, now: float) -> int:
        """Act on every record from the position on; how many there were."""
        touched: Touched = {}
        try:
            if lane == CONTROL_LANE:
                count = self._take_control(session, body, position, now)
            elif session.role is Role.CLIENT:
                count = self._take_from_client(session, body, position, touched, now)
            else:
                count = self._take_from_broker(session, body, position, touched, now)
        except (struct.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise WireError("BAD_RECORD", f"a record does not decode: {error}") from error
        if touched:
            self._pressure.fed(session, touched)
        return count

    # The two loops differ in what they check: a client may publish only under its own name and as it has
    # advertised; a broker's publications were checked where they entered, and never go back.

    def _take_from_client(  # noqa: PLR0912 — one loop, on purpose
        self, session: Session, body: bytes, position: int, touched: Touched, now: float
    ) -> int:
        match, sessions, unpack = self._router.match, self._endpoint.sessions, _unpack
        prefixes, source, sample = self._prefixes, session.source, self._log_every
        promised = self._router.promised(session.peer) if self._checked else None
        end, count, routed, limit = len(body), 0, 0, self._record_bytes_max
        content: Mapping[str, Value] | None = None
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
                self.unwanted += 1
            if sample and head.number % sample == 0:
                self._log_routed(session, head, 0, list(dict.fromkeys([key[0] for key in keys])))
        self._count(routed, content)
        return count

    def _take_from_broker(
        self, session: Session, body: bytes, position: int, touched: Touched, now: float
    ) -> int:
        match, unpack, pack = self._router.match, _unpack, _pack
        peer, sample = session.peer, self._log_every
        end, count, routed, limit = len(body), 0, 0, self._record_bytes_max
        content: Mapping[str, Value] | None = None
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
                self.unwanted += 1
            if sample and head.number % sample == 0:
                hops_to = list(dict.fromkeys([key[0] for key in keys if key[0] != peer]))
                self._log_routed(session, head, hops, hops_to)
        self._count(routed, content)
        return count

    def _take_control(self, session: Session, body: bytes, position: int, now: float) -> int:
        end, count = len(body), 0
        while position < end:
            length, kind, flags, hops = _unpack(body, position)
            start = position + PREFIX_BYTES
            position += 4 + length
            if length < 3 or position > end or length > self._record_bytes_max:
                raise WireError("BAD_RECORD", f"a record of {length} bytes does not fit")
            if kind != PUBLISH:
                raise WireError("BAD_RECORD", "the control lane carries publications only")
            count += 1
            self._take_other(session, CONTROL_LANE, kind, flags, hops, body[start:position], now)
        return count

    def _prefix(self, length: int) -> bytes:
        """The prefix of a publication one hop from its client; lengths repeat, so it is kept."""
        if len(self._prefixes) >= PREFIXES_MAX:
            self._prefixes.clear()
        prefix = self._prefixes[length] = _pack(length, PUBLISH, 0, 1)
        return prefix

    def _fan_out(self, keys: list[tuple[str, str]], besides: str, record: bytes, touched: Touched) -> None:
        """Queue one record for every hop among the keys, once each."""
        sessions, size = self._endpoint.sessions, len(record)
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

    def _count(self, routed: int, content: Mapping[str, Value] | None) -> None:
        """Now and then match once more, with a watch in hand: timing each one would cost as much again."""
        self.publications += routed
        self._frames += 1
        if content is not None and self._frames % FRAMES_PER_SAMPLE == 1:
            started = self._stopwatch()
            self._router.match(content)
            self.matching_s += self._stopwatch() - started
            self.matchings += 1

    # Off the hot path

    def _take_other(
        self, session: Session, lane: int, kind: int, flags: int, hops: int, body: bytes, now: float
    ) -> None:
        if kind == PUBLISH:
            self._take_publication(session, lane, flags, hops, body, now)
            return
        try:
            message = decode(kind, body)
        except RecordRefused as refused:
            self.refuse(session, refused.id, refused.code, refused.message)
            return
        self._desk.take_message(session, message, now)

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
        hops_to = self._router.destinations(head.content, session.peer)
        if not hops_to:
            self.unwanted += 1
        touched = self.queue(head, payload, hops_to, forwarded(body, flags, hops), lane, now)
        self._pressure.fed(session, touched)
        if flags & Flag.TRACE:
            self._desk.traced(head, session.peer, hops_to, hops, now)
        if self._log_every and head.number % self._log_every == 0:
            self._log_routed(session, head, hops, hops_to)

    def queue(
        self, head: AnyHead, payload: bytes, hops_to: list[str], record: bytes, lane: int, now: float
    ) -> Touched:
        """Queue a publication's record for its destinations; the broker itself may be one."""
        touched: Touched = {}
        settings = self._endpoint.settings
        length_max, bytes_max = settings.control_queue_length_max, settings.queue_bytes_max
        for hop in hops_to:
            destination = self._endpoint.sessions.get(hop)
            if destination is not None:
                destination.offer(lane, record)
                touched[hop] = destination
                if lane == CONTROL_LANE and len(destination.control.unsent) > length_max:
                    destination.control.drop_oldest(length_max, bytes_max)
            elif hop == self._desk.id:
                self._desk.notified(head, payload, now)
        self._endpoint.dirty.update(touched)
        return touched

    def _permitted(self, session: Session, head: AnyHead) -> bool:
        """Whether a client may publish this: under its own name, and as it has advertised."""
        if head.source != session.source:
            self._refuse_source(session, head)
            return False
        if self._checked and not self._router.induced(head.content, session.peer):
            self._refuse_unadvertised(session, head)
            return False
        return True

    def _refuse_source(self, session: Session, head: AnyHead) -> None:
        text = f"publications of {session.peer} come from {session.source}"
        self.refuse(session, f"{head.source}:{head.number}", "BAD_ID", text)

    def _refuse_unadvertised(self, session: Session, head: AnyHead) -> None:
        check_head(head)
        text = (
            f"no advertisement of {session.peer} allows this publication of class"
            f" {head.content[CLASS]!r}: advertise its attributes and values first"
        )
        self.refuse(session, f"{head.source}:{head.number}", "NOT_ADVERTISED", text)

    def refuse(self, session: Session, id_: str, code: str, why: str) -> None:
        """Tell the peer that its message was not taken."""
        self._log("refuse", peer=session.peer, id=id_, code=code)
        session.refuse(encode(Refuse(id_, code, why)))

    def _log(self, kind: str, **fields: object) -> None:
        self._endpoint.effects.append(Log(kind, fields))

    def _log_routed(self, session: Session, head: AnyHead, hops: int, hops_to: list[str]) -> None:
        if head.content[CLASS] in CONTROL_CLASSES:  # steering an experiment is no part of it
            return
        id_ = f"{head.source}:{head.number}"
        if session.role is Role.CLIENT:
            content = recorded_content(head.content)
            self._log("publish", id=id_, client=session.peer, time=head.time, **content)
        for hop in hops_to:
            destination = self._endpoint.sessions.get(hop)
            if destination is not None and destination.role is Role.CLIENT:
                self._log("deliver", id=id_, client=hop, hops=hops + 1)
