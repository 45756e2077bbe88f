"""Decides what a client of the network does, without a socket: the half of `client` that the simulator runs.

Calls queue messages; `handle(input, now)` returns effects; what happened meanwhile (acknowledgements,
refusals, notifications) is collected in order and taken with `happenings`. Across a resumed session nothing
is lost or repeated. When the broker has lost the session, advertisements and subscriptions are issued
again, and publications without acknowledgement are reported as lost: whether they were routed is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from broker_runtime.control.words import CONTROL_CLASSES
from broker_runtime.language.messages import CLASS, Advertisement, Subscription, publication_content
from broker_runtime.language.values import Value
from broker_runtime.link.endpoint import FATAL_CODES, Endpoint, Identity, Target
from broker_runtime.link.session import CONTROL_LANE, DATA_LANE, LinkSettings, Policy, Role, Session
from broker_runtime.matching import default_engine
from broker_runtime.seam import Command, Effect, Exit, Input, RandomSource, Tick
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    PREFIX,
    PREFIX_BYTES,
    PUBLISH,
    Advertise,
    Confirm,
    Flag,
    Notice,
    RecordKind,
    Refuse,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    decode,
    decode_publication,
    encode,
    encode_publication,
)


class Connected(msgspec.Struct, frozen=True):
    broker: str
    resumed: bool


class Disconnected(msgspec.Struct, frozen=True):
    reason: str


class Failed(msgspec.Struct, frozen=True):
    """The broker will not have this client; dialling has stopped."""

    code: str
    message: str


class Acknowledged(msgspec.Struct, frozen=True):
    """The first broker has taken the message."""

    id: str


class Confirmed(msgspec.Struct, frozen=True):
    """The unsubscription has been carried out everywhere."""

    id: str


class Refused(msgspec.Struct, frozen=True):
    id: str
    code: str
    message: str


class Lost(msgspec.Struct, frozen=True):
    """The session ended before the publication was acknowledged."""

    id: str


class Noticed(msgspec.Struct, frozen=True):
    code: str
    message: str
    count: int


class Notification(msgspec.Struct, frozen=True):
    """A publication that came, with the ids of this client's subscriptions that it matches."""

    id: str
    content: Mapping[str, Value]
    payload: bytes
    time: float
    hops: int
    subscriptions: tuple[str, ...]


Happening = (
    Connected | Disconnected | Failed | Acknowledged | Confirmed | Refused | Lost | Noticed | Notification
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    id: str
    address: str
    token: str = field(default="", repr=False)
    incarnation: str = "0"
    policy: Policy = Policy.BLOCK
    queue_length_max: int = 0  # of the broker's queue for this client; 0 takes the broker's own
    link: LinkSettings = field(default_factory=LinkSettings)


class ClientCore:
    """One client, connected to one broker."""

    def __init__(self, settings: ClientSettings, random: RandomSource, now: float) -> None:
        self.settings = settings
        self.source = f"{settings.id}:{settings.incarnation}"
        identity = Identity(
            settings.id,
            Role.CLIENT,
            settings.incarnation,
            token=settings.token,
            policy=settings.policy.value,
            queue_length_max=settings.queue_length_max,
        )
        self.endpoint = Endpoint(identity, settings.link, random, self)
        self.endpoint.connect(settings.address, now)
        self.held = False
        self._session: Session | None = None
        self._number = 0
        self._happenings: list[Happening] = []
        self._advertisements: dict[str, Advertisement] = {}
        self._subscriptions = default_engine()
        self._subscription_ids: dict[str, None] = {}
        self._backlog: list[tuple[str, int, bytes]] = []  # publications made before there was a session
        self._pending: tuple[deque[str | None], deque[str | None]] = (deque(), deque())  # per lane, in order
        self._unconfirmed: dict[str, None] = {}
        self._publications: dict[str, None] = {}  # not acknowledged yet

    # Calls

    def advertise(self, advertisement: Advertisement) -> str:
        id_ = self._next_id()
        self._advertisements[id_] = advertisement
        self._offer(id_, DATA_LANE, encode(Advertise(id_, advertisement)))
        return id_

    def unadvertise(self, id_: str) -> None:
        del self._advertisements[id_]
        self._offer(id_, DATA_LANE, encode(Unadvertise(id_)))

    def subscribe(self, subscription: Subscription) -> str:
        id_ = self._next_id()
        self._subscriptions.add(id_, subscription)
        self._subscription_ids[id_] = None
        self._offer(id_, DATA_LANE, encode(Subscribe(id_, subscription)))
        return id_

    def unsubscribe(self, id_: str) -> None:
        self._subscriptions.remove(id_)
        del self._subscription_ids[id_]
        self._unconfirmed[id_] = None
        self._offer(id_, DATA_LANE, encode(Unsubscribe(id_)))

    def publish(
        self, content: Mapping[str, object], now: float, payload: bytes = b"", trace: bool = False
    ) -> str:
        """Queue a publication; ValueError when the content is not one."""
        checked = publication_content(content)
        urgent = checked[CLASS] in CONTROL_CLASSES
        flags = (Flag.URGENT if urgent else 0) | (Flag.TRACE if trace else 0)
        self._number += 1
        record = encode_publication(self.source, self._number, now, checked, payload, flags)
        if len(record) > self.settings.link.record_bytes_max:
            raise ValueError(f"a publication has at most {self.settings.link.record_bytes_max} bytes")
        id_ = f"{self.source}:{self._number}"
        self._publications[id_] = None
        lane = CONTROL_LANE if urgent else DATA_LANE
        if self._session is None:
            self._backlog.append((id_, lane, record))
        else:
            self._offer(id_, lane, record)
        return id_

    @property
    def connected(self) -> bool:
        return self._session is not None and self._session.connection is not None

    @property
    def full(self) -> bool:
        """Whether publishing has to wait: the queue towards the broker is at its bound."""
        if self._session is None:
            return len(self._backlog) >= self.settings.link.queue_length_max
        return self._session.full

    @property
    def unacknowledged(self) -> int:
        return len(self._publications)

    def hold(self) -> None:
        """Take no more notifications until `release`."""
        self.held = True

    def release(self, now: float) -> None:
        self.held = False
        if self._session is not None:
            self.endpoint.resume_input(self._session, now)

    def happenings(self) -> list[Happening]:
        happened, self._happenings = self._happenings, []
        return happened

    # The seam

    def handle(self, event: Input, now: float) -> list[Effect]:
        endpoint = self.endpoint
        if isinstance(event, Tick):
            endpoint.tick(now)
        elif isinstance(event, Command):
            if event.word == "stop":
                endpoint.leave(event.argument, now)
                endpoint.effects.append(Exit(event.argument))
        else:
            endpoint.handle(event, now)
        return self.flush()

    def flush(self) -> list[Effect]:
        """What the calls since the last input want sent."""
        self.endpoint.flush()
        self._notice_acknowledged()
        return self.endpoint.drain_effects()

    # Owner of the endpoint

    def admit(self, peer: str, role: Role) -> None:
        """Any broker at the given address is welcome."""

    def session_opened(self, session: Session, now: float) -> None:
        self._session = session
        self._happenings.append(Connected(session.peer, resumed=False))
        for id_, advertisement in self._advertisements.items():
            self._offer(id_, DATA_LANE, encode(Advertise(id_, advertisement)))
        for id_ in self._subscription_ids:
            subscription = self._subscriptions.get(id_)
            assert subscription is not None
            self._offer(id_, DATA_LANE, encode(Subscribe(id_, subscription)))
        for id_ in self._unconfirmed:  # the broker has withdrawn it, but others may not have yet
            self._offer(id_, DATA_LANE, encode(Unsubscribe(id_)))
        backlog, self._backlog = self._backlog, []
        for id_, lane, record in backlog:
            self._offer(id_, lane, record)

    def session_resumed(self, session: Session, now: float) -> None:
        self._happenings.append(Connected(session.peer, resumed=True))

    def connection_lost(self, session: Session, reason: str, now: float) -> None:
        self._happenings.append(Disconnected(reason))

    def session_ended(self, session: Session, reason: str, now: float) -> None:
        self._happenings.append(Disconnected(reason))
        self._notice_acknowledged()
        self._session = None
        for pending in self._pending:
            pending.clear()
        waiting = {id_ for id_, _, _ in self._backlog}
        for id_ in [id_ for id_ in self._publications if id_ not in waiting]:
            del self._publications[id_]
            self._happenings.append(Lost(id_))

    def target_failed(self, target: Target, reason: str, now: float) -> None:
        if target.refused:
            self._happenings.append(Failed(target.refused, reason))

    def peer_rejected(self, peer: str, code: str, message: str, now: float) -> None:
        if code in FATAL_CODES:
            self._happenings.append(Failed(code, message))
        else:
            self._happenings.append(Noticed(code, message, 0))

    def holding(self, session: Session, lane: int) -> bool:
        return self.held

    def take(self, session: Session, lane: int, body: bytes, position: int, now: float) -> int:
        count, end = 0, len(body)
        while position < end:
            if position + PREFIX_BYTES > end:
                raise WireError("BAD_RECORD", "a record is cut off")
            length, kind, flags, hops = PREFIX.unpack_from(body, position)
            start = position + PREFIX_BYTES
            position += 4 + length
            if length < 3 or position > end:
                raise WireError("BAD_RECORD", "a record is longer than its frame")
            count += 1
            if kind == PUBLISH:
                self._deliver(body[start:position], flags, hops)
            else:
                self._take_answer(kind, body[start:position])
        return count

    # Inside

    def _deliver(self, body: bytes, flags: int, hops: int) -> None:
        head, payload = decode_publication(body, flags)
        matched = self._subscriptions.match(head.content)
        if matched:  # else it was on its way when the subscription ended
            self._happenings.append(
                Notification(
                    f"{head.source}:{head.number}", head.content, payload, head.time, hops, tuple(matched)
                )
            )

    def _take_answer(self, kind: int, body: bytes) -> None:
        message = decode(kind, body)
        if isinstance(message, Refuse):
            self._publications.pop(message.id, None)
            self._advertisements.pop(message.id, None)
            if message.id in self._subscription_ids:
                del self._subscription_ids[message.id]
                self._subscriptions.remove(message.id)
            for pending in self._pending:
                for i, id_ in enumerate(pending):
                    if id_ == message.id:
                        pending[i] = None
                        break
            self._happenings.append(Refused(message.id, message.code, message.message))
        elif isinstance(message, Confirm):
            self._confirm(message.id)
        elif isinstance(message, Notice):
            self._happenings.append(Noticed(message.code, message.message, message.count))
        else:
            raise WireError("BAD_RECORD", f"a broker does not send {type(message).__name__} to a client")

    def _confirm(self, id_: str) -> None:
        if id_ in self._unconfirmed:
            del self._unconfirmed[id_]
            self._happenings.append(Confirmed(id_))

    def _offer(self, id_: str, lane: int, record: bytes) -> None:
        if self._session is not None:
            self._session.offer(lane, record)
            self._pending[lane].append(id_)
            self.endpoint.mark(self._session)

    def _notice_acknowledged(self) -> None:
        """Records are numbered as they are offered, so the oldest pending one is always acked + 1."""
        if self._session is None:
            return
        for number, pending in enumerate(self._pending):
            lane = self._session.lanes[number]
            outstanding = lane.sent - lane.acked + len(lane.unsent)
            if len(pending) > outstanding and self._refusal_waits(self._session):
                return
            while len(pending) > outstanding:
                id_ = pending.popleft()
                if id_ is not None:
                    self._publications.pop(id_, None)
                    self._happenings.append(Acknowledged(id_))

    def _refusal_waits(self, session: Session) -> bool:
        """Whether input that is held says that something was refused: its acknowledgement came after it."""
        for body, position, _, _ in session.input[DATA_LANE]:
            while position < len(body):
                length, kind, _, _ = PREFIX.unpack_from(body, position)
                if kind == RecordKind.REFUSE:
                    return True
                position += 4 + int(length)
        return False

    def _next_id(self) -> str:
        self._number += 1
        return f"{self.source}:{self._number}"
