"""Decides how connections become sessions: dial, greet, resume, keep alive, give up.

The rules, all of them:
- The listening side greets, the dialling side says hello, the listening side welcomes or rejects.
- A hello that names a session both sides still hold resumes it: each side sends again what the other did
  not receive. Any other hello starts a fresh session, and the old one, if any, ends.
- A new connection for a session replaces the old one. When two brokers dial each other at once, the dial
  of the smaller id goes on and the other is told BUSY.
- A frame missing in a lane, or a heartbeat that names records which never came, breaks the connection; the
  resume repairs it. So does silence for `dead_after_s`.
- A session without a connection ends after `session_expiry_s`. A peer that breaks the protocol gets a
  REJECT that says why, and its session ends at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from broker_runtime.link import handshake
from broker_runtime.link.session import LinkSettings, Policy, Role, Session, count_records
from broker_runtime.seam import (
    Close,
    Closed,
    Dial,
    DialFailed,
    Effect,
    Malformed,
    Opened,
    RandomSource,
    Reachable,
    Received,
    Send,
    WakeAt,
)
from broker_runtime.wire.frames import (
    ACK,
    DATA,
    PROTOCOL_VERSION,
    Bye,
    Frame,
    Greeting,
    Hello,
    Reject,
    Welcome,
    WireError,
    decode_ack,
    decode_data,
    decode_handshake,
    encode_handshake,
)

FATAL_CODES = frozenset(("AUTHENTICATION", "VERSION", "BAD_ID", "SELF", "BAD_HELLO"))


class State(Enum):
    GREETED = "greeted"  # we listen, and wait for a hello
    DIALLED = "dialled"  # we dialled, and wait for the greeting
    INTRODUCED = "introduced"  # we said hello, and wait for the welcome
    OPEN = "open"


@dataclass(slots=True)
class Connection:
    id: int
    state: State
    address: str
    heard_at: float
    spoke_at: float
    challenge: bytes = b""
    peer: str = ""
    session: Session | None = None


@dataclass(slots=True)
class Target:
    """An address to keep a connection to."""

    address: str
    peer: str = ""  # learned from its greeting
    backoff_s: float = 0.0
    dial_at: float | None = 0.0  # None while a dial is under way or a connection is there
    refused: str = ""


class Owner(Protocol):
    """What a broker or client does with its sessions."""

    def admit(self, peer: str, role: Role) -> None:
        """Raise WireError to refuse a fresh session with the peer."""

    def session_opened(self, session: Session, now: float) -> None: ...

    def session_resumed(self, session: Session, now: float) -> None: ...

    def connection_lost(self, session: Session, reason: str, now: float) -> None: ...

    def session_ended(self, session: Session, reason: str, now: float) -> None: ...

    def target_failed(self, target: Target, reason: str, now: float) -> None: ...

    def peer_rejected(self, peer: str, code: str, message: str, now: float) -> None: ...

    def holding(self, session: Session, lane: int) -> bool:
        """Whether input of this lane must wait."""

    def take(self, session: Session, lane: int, body: bytes, position: int, now: float) -> int:
        """Act on the records from the position on; how many there were."""


@dataclass(slots=True)
class Identity:
    id: str
    role: Role
    incarnation: str
    address: str = ""
    token: str = field(default="", repr=False)
    policy: str = ""
    queue_length_max: int = 0


class Endpoint:
    """All connections and sessions of one broker or client."""

    def __init__(
        self, identity: Identity, settings: LinkSettings, random: RandomSource, owner: Owner
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.sessions: dict[str, Session] = {}  # by peer
        self.effects: list[Effect] = []
        self.queueing_s = 0.0  # records × seconds that held input has waited
        self.clock = 0  # Lamport clock that stamps links
        self._owner = owner
        self._random = random
        self._connections: dict[int, Connection] = {}
        self.targets: dict[str, Target] = {}
        self._wake_at: float | None = None
        self.dirty: dict[str, Session] = {}

    # Targets

    def connect(self, address: str, now: float) -> None:
        """Keep a connection to this address from now on."""
        if address not in self.targets:
            self.targets[address] = Target(address, dial_at=now)
            self.soon(now)

    def disconnect(self, address: str) -> Session | None:
        """Stop dialling the address; the session with the broker there, if any."""
        target = self.targets.pop(address, None)
        if target is None:
            return None
        for conn in list(self._connections.values()):
            if conn.address == address and conn.state is not State.OPEN:
                self._drop_connection(conn.id)
        return self.sessions.get(target.peer)

    def peer_of(self, connection: int) -> str:
        """Who is at the other end, as far as it has said; empty before that."""
        conn = self._connections.get(connection)
        return conn.peer if conn is not None else ""

    # Inputs

    def handle(
        self, event: Opened | Received | Malformed | Closed | DialFailed | Reachable, now: float
    ) -> None:
        """What happens to connections."""
        if isinstance(event, Received):
            self.received(event.connection, event.frames, now)
        elif isinstance(event, Opened):
            self.opened(event.connection, event.address, now)
        elif isinstance(event, Closed):
            self.closed(event.connection, event.reason, now)
        elif isinstance(event, Malformed):
            self.malformed(event.connection, event.code, event.message, now)
        elif isinstance(event, Reachable):
            self.reachable(event.peer, now)
        else:
            self.dial_failed(event.address, event.reason, now)

    def opened(self, connection: int, address: str, now: float) -> None:
        if address and address not in self.targets:  # it is not wanted any more
            self.effects.append(Close(connection))
            return
        state = State.DIALLED if address else State.GREETED
        conn = Connection(connection, state, address, now, now)
        conn.challenge = self._random.randbytes(handshake.CHALLENGE_BYTES)
        self._connections[connection] = conn
        self.soon(now + self.settings.handshake_timeout_s)
        if not address:
            self._send(
                conn,
                Greeting(
                    version=PROTOCOL_VERSION,
                    broker=self.identity.id,
                    challenge=conn.challenge,
                    token_required=bool(self.identity.token),
                ),
            )

    def received(self, connection: int, frames: list[Frame], now: float) -> None:
        conn = self._connections.get(connection)
        if conn is None:
            return
        conn.heard_at = now
        try:
            for kind, body in frames:
                if kind == DATA and conn.state is State.OPEN:
                    self._data(conn, body, now)
                elif kind == ACK and conn.state is State.OPEN:
                    self._ack(conn, body, now)
                else:
                    self._handshake(conn, kind, body, now)
                if connection not in self._connections:
                    return
        except WireError as error:
            self._reject(conn, error, now)

    def malformed(self, connection: int, code: str, message: str, now: float) -> None:
        if connection in self._connections:
            self._reject(self._connections[connection], WireError(code, message), now)

    def closed(self, connection: int, reason: str, now: float) -> None:
        conn = self._connections.pop(connection, None)
        if conn is None:
            return
        session = conn.session
        if session is not None and session.connection == connection:
            session.connection = None
            session.expires_at = now + self.settings.session_expiry_s
            self.soon(session.expires_at)
            self._owner.connection_lost(session, reason, now)
        self._redial(conn, now, reason)

    def dial_failed(self, address: str, reason: str, now: float) -> None:
        target = self.targets.get(address)
        if target is not None:
            self._back_off(target, now)
            self._owner.target_failed(target, reason, now)

    def reachable(self, peer: str, now: float) -> None:
        for target in self.targets.values():
            if target.peer == peer and target.dial_at is not None:
                target.backoff_s, target.dial_at = 0.0, now
                self.soon(now)

    def tick(self, now: float) -> None:
        """Act on every time limit that has passed."""
        self._wake_at = None
        for conn in list(self._connections.values()):
            self._check_connection(conn, now)
        for session in list(self.sessions.values()):
            if session.connection is None and session.expires_at is not None:
                if session.expires_at <= now:
                    self.end(session, "expired", now)
                else:
                    self.soon(session.expires_at)
        for target in self.targets.values():
            self._check_target(target, now)

    # Sessions

    def mark(self, session: Session) -> None:
        """The session has something to send; `flush` will."""
        self.dirty[session.peer] = session

    def flush(self) -> None:
        """Send what every marked session may send, in one write each."""
        if not self.dirty:
            return
        effects = self.effects
        for session in self.dirty.values():
            connection = session.connection
            if connection is not None:
                pieces = session.output()
                if pieces:
                    effects.append(Send(connection, b"".join(pieces)))
        self.dirty.clear()

    def resume_input(self, session: Session, now: float) -> None:
        """Take the input that had to wait, as far as nothing holds it."""
        try:
            for number in (1, 0):
                queue, lane = session.input[number], session.lanes[number]
                while queue and not session.ended and not self._owner.holding(session, number):
                    body, position, count, arrived = queue.popleft()
                    self.queueing_s += (now - arrived) * count
                    self._owner.take(session, number, body, position, now)
                    lane.taken += count
                    session.ack_due = True
                    self.mark(session)
        except WireError as error:
            self.break_off(session, error, now)

    def break_off(self, session: Session, error: WireError, now: float) -> None:
        """The peer broke the protocol, or may not stay: tell it why and end its session."""
        conn = self._connections.get(session.connection) if session.connection is not None else None
        if conn is not None:
            self._reject(conn, error, now)
        else:
            self.end(session, error.code, now)

    def cut(self, session: Session, now: float) -> None:
        """Break the connection, not the session: what a failing network does, done on purpose."""
        conn = self._connections.get(session.connection) if session.connection is not None else None
        if conn is None:
            raise ValueError(f"{session.peer} is not connected")
        self._break(conn, "cut", now)

    def end(self, session: Session, reason: str, now: float) -> None:
        """The session is over; a later hello starts afresh."""
        if session.ended:
            return
        session.ended = True
        if self.sessions.get(session.peer) is session:
            del self.sessions[session.peer]
        self.dirty.pop(session.peer, None)
        if session.connection is not None:
            self._drop_connection(session.connection)
        session.connection = None
        self._owner.session_ended(session, reason, now)

    def leave(self, reason: str, now: float) -> None:
        """Say goodbye to every peer and end every session."""
        self.targets.clear()
        for session in list(self.sessions.values()):
            self.say_goodbye(session, reason, now)
        for conn in list(self._connections.values()):
            self._drop_connection(conn.id)

    def say_goodbye(self, session: Session, reason: str, now: float) -> None:
        if session.connection is not None:
            self.mark(session)
            self.flush()
            self.effects.append(Send(session.connection, encode_handshake(Bye(reason=reason))))
        self.end(session, reason, now)

    def drain_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    # Data

    def _data(self, conn: Connection, body: bytes, now: float) -> None:
        session = conn.session
        assert session is not None
        data = decode_data(body)
        lane = session.lanes[data.lane]
        position = session.accept(lane, data.first, body)
        if position is None:  # what it acknowledges may be refused in the missing frame
            self._break(conn, "a frame is missing", now)
            return
        self._acknowledge(session, data.taken, now)
        if session.ended:
            return
        session.ack_due = True
        self.dirty[session.peer] = session
        if position >= len(body):
            return
        session.bytes_in += len(body)
        queue = session.input[data.lane]
        if queue or self._owner.holding(session, data.lane):
            count = count_records(body, position)
            lane.queued += count
            if lane.queued - lane.taken > 2 * self.settings.window_records:
                raise WireError("WINDOW", "more records in flight than the window allows")
            queue.append((body, position, count, now))
        else:
            count = self._owner.take(session, data.lane, body, position, now)
            lane.queued += count
            lane.taken += count
        session.records_in += count

    def _ack(self, conn: Connection, body: bytes, now: float) -> None:
        session = conn.session
        assert session is not None
        ack = decode_ack(body)
        for lane, sent in zip(session.lanes, ack.sent, strict=True):
            if sent > lane.queued:
                self._break(conn, "the last frame is missing", now)
                return
        self._acknowledge(session, ack.taken, now)

    def _acknowledge(self, session: Session, taken: tuple[int, int], now: float) -> None:
        data, control = session.data, session.control
        if taken[0] > data.acked:
            data.acknowledge(taken[0])
            if data.unsent or session.blocking:  # the window has opened; the next flush shows what leaves
                self.dirty[session.peer] = session
        if taken[1] > control.acked:
            control.acknowledge(taken[1])
            self.dirty[session.peer] = session

    # Handshake

    def _handshake(self, conn: Connection, kind: int, body: bytes, now: float) -> None:
        message = decode_handshake(kind, body)
        if isinstance(message, Reject):
            self._rejected(conn, message, now)
        elif isinstance(message, Bye) and conn.state is State.OPEN:
            assert conn.session is not None
            self.end(conn.session, message.reason or "left", now)
            self._redial(conn, now, "left")
        elif isinstance(message, Greeting) and conn.state is State.DIALLED:
            self._greeted(conn, message)
        elif isinstance(message, Hello) and conn.state is State.GREETED:
            self._introduced(conn, message, now)
        elif isinstance(message, Welcome) and conn.state is State.INTRODUCED:
            self._welcomed(conn, message, now)
        else:
            raise WireError("OUT_OF_TURN", f"{type(message).__name__} came while {conn.state.value}")

    def _greeted(self, conn: Connection, greeting: Greeting) -> None:
        own = self.identity
        handshake.check_greeting(greeting, own.id, own.token)
        conn.peer = greeting.broker
        conn.state = State.INTRODUCED
        target = self.targets.get(conn.address)
        if target is not None:
            target.peer = greeting.broker
        session = self.sessions.get(conn.peer)
        if session is None:
            self._owner.admit(conn.peer, Role.BROKER)
        self._send(
            conn,
            Hello(
                version=PROTOCOL_VERSION,
                role=own.role.value,
                id=own.id,
                incarnation=own.incarnation,
                challenge=conn.challenge,
                proof=handshake.proof(own.token, "hello", greeting.challenge, own.id, greeting.broker),
                address=own.address,
                session=session.id if session else "",
                received=session.received if session else (0, 0),
                stamp=self.clock,
                policy=own.policy,
                queue_length_max=own.queue_length_max,
            ),
        )

    def _introduced(self, conn: Connection, hello: Hello, now: float) -> None:
        own = self.identity
        handshake.check_hello(hello, own.id, conn.challenge, own.token)
        policy = _policy(hello)
        old = self.sessions.get(hello.id)
        _check_id_free(hello, old)
        self._settle_crossing(hello, now)
        resumed = old is not None and hello.session == old.id and old.source == _source(hello)
        if old is None or not resumed:
            self._owner.admit(hello.id, Role(hello.role))
            if old is not None:
                self.end(old, "replaced", now)
            session = Session(self._random.randbytes(8).hex(), hello.id, Role(hello.role), self.settings)
            session.source = _source(hello)
            session.stamp = self.clock = max(self.clock, hello.stamp) + 1
            self.sessions[hello.id] = session
        else:
            session = old
        session.policy = policy
        if hello.queue_length_max and session.role is Role.CLIENT:
            session.queue_length_max = min(hello.queue_length_max, self.settings.queue_length_max)
        conn.peer = hello.id
        if hello.address in self.targets:
            self.targets[hello.address].peer = hello.id
        self._send(
            conn,
            Welcome(
                session=session.id,
                incarnation=own.incarnation,
                resumed=resumed,
                received=session.received,
                proof=handshake.proof(own.token, "welcome", hello.challenge, own.id),
                stamp=session.stamp,
                window_records=self.settings.window_records,
                window_bytes=self.settings.window_bytes,
                record_bytes_max=self.settings.record_bytes_max,
            ),
        )
        self._open(conn, session, hello.received if resumed else None, now)

    def _settle_crossing(self, hello: Hello, now: float) -> None:
        """Two brokers dialled each other at once: one dial must give way, and both must agree which."""
        if hello.role != Role.BROKER.value:
            return
        for other in list(self._connections.values()):
            crossing = other.state is State.INTRODUCED and other.peer == hello.id
            if not crossing:
                continue
            if self.identity.id < hello.id:
                raise WireError("BUSY", f"{self.identity.id} is dialling {hello.id} itself")
            self._drop_connection(other.id)
            self._redial(other, now, "crossed")

    def _welcomed(self, conn: Connection, welcome: Welcome, now: float) -> None:
        own = self.identity
        handshake.check_welcome(welcome, conn.peer, conn.challenge, own.token)
        old = self.sessions.get(conn.peer)
        self.clock = max(self.clock, welcome.stamp)
        if welcome.resumed:
            if old is None or old.id != welcome.session:
                raise WireError("BAD_RESUME", "a session was resumed that is not there")
            self._open(conn, old, welcome.received, now)
            return
        if old is not None:
            self.end(old, "replaced", now)
        session = Session(welcome.session, conn.peer, Role.BROKER, self.settings)
        session.source = f"{conn.peer}:{welcome.incarnation}"
        session.stamp = welcome.stamp
        self.sessions[conn.peer] = session
        self._open(conn, session, None, now)

    def _open(self, conn: Connection, session: Session, received: tuple[int, int] | None, now: float) -> None:
        if session.connection is not None and session.connection != conn.id:
            self._drop_connection(session.connection)
        conn.state = State.OPEN
        conn.session = session
        session.connection = conn.id
        session.expires_at = None
        self.soon(now + self.settings.heartbeat_s)
        for target in self.targets.values():
            if target.peer == session.peer:
                target.dial_at, target.backoff_s, target.refused = None, 0.0, ""
        if received is None:
            self._owner.session_opened(session, now)
        else:
            pieces = session.resumed_output(received)
            self.effects.append(Send(conn.id, b"".join(pieces)))
            self._owner.session_resumed(session, now)
        self.mark(session)

    # Ends of connections

    def _rejected(self, conn: Connection, reject: Reject, now: float) -> None:
        """The peer said why it closes. What it will always refuse is not dialled again."""
        target = self.targets.get(conn.address)
        if target is not None and reject.code in FATAL_CODES:
            target.refused = reject.code
        session = conn.session
        self._owner.peer_rejected(conn.peer, reject.code, reject.message, now)
        self._drop_connection(conn.id)
        if session is not None and session.connection == conn.id:
            session.connection = None
            self.end(session, reject.code, now)
        self._redial(conn, now, reject.message)

    def _reject(self, conn: Connection, error: WireError, now: float) -> None:
        self._owner.peer_rejected(conn.peer, error.code, error.message, now)
        self._send(conn, Reject(code=error.code, message=error.message))
        self._drop_connection(conn.id)
        session = conn.session
        if session is not None and session.connection == conn.id:
            session.connection = None
            self.end(session, error.code, now)
        if conn.address and error.code in FATAL_CODES and conn.address in self.targets:
            self.targets[conn.address].refused = error.code
        self._redial(conn, now, error.message)

    def _break(self, conn: Connection, reason: str, now: float) -> None:
        self.effects.append(Close(conn.id))
        self.closed(conn.id, reason, now)

    def _drop_connection(self, connection: int) -> None:
        if self._connections.pop(connection, None) is not None:
            self.effects.append(Close(connection))

    # Times

    def _check_connection(self, conn: Connection, now: float) -> None:
        settings = self.settings
        limit = settings.dead_after_s if conn.state is State.OPEN else settings.handshake_timeout_s
        if now >= conn.heard_at + limit:  # as it was asked for: a difference may round to just below
            self._break(conn, "silent", now)
            return
        self.soon(conn.heard_at + limit)
        if conn.state is State.OPEN and conn.session is not None:
            if now >= conn.spoke_at + settings.heartbeat_s:
                conn.spoke_at = now
                self.effects.append(Send(conn.id, conn.session.heartbeat()))
            self.soon(conn.spoke_at + settings.heartbeat_s)

    def _check_target(self, target: Target, now: float) -> None:
        if target.dial_at is None or target.refused:
            return
        session = self.sessions.get(target.peer)
        if session is not None and session.connection is not None:
            target.dial_at = None
        elif target.dial_at <= now:
            target.dial_at = None
            self.effects.append(Dial(target.address))
        else:
            self.soon(target.dial_at)

    def _redial(self, conn: Connection, now: float, reason: str) -> None:
        target = self.targets.get(conn.address)
        if target is None:
            target = next((t for t in self.targets.values() if t.peer and t.peer == conn.peer), None)
        if target is None:
            return
        if conn.state is not State.OPEN:
            self._owner.target_failed(target, reason, now)
        self._back_off(target, now)

    def _back_off(self, target: Target, now: float) -> None:
        settings = self.settings
        target.backoff_s = min(
            max(settings.dial_backoff_min_s, target.backoff_s * 2), settings.dial_backoff_max_s
        )
        target.dial_at = now + target.backoff_s * (0.5 + self._random.random())
        self.soon(target.dial_at)

    def soon(self, at: float) -> None:
        """Ask for a tick at that time or earlier."""
        if self._wake_at is None or at < self._wake_at:
            self._wake_at = at
            self.effects.append(WakeAt(at))

    def _send(self, conn: Connection, message: Greeting | Hello | Welcome | Reject) -> None:
        self.effects.append(Send(conn.id, encode_handshake(message)))


def _source(hello: Hello) -> str:
    return f"{hello.id}:{hello.incarnation}"


def _check_id_free(hello: Hello, old: Session | None) -> None:
    """An id belongs to whoever is connected under it; one that went silent is given up in time."""
    if old is not None and old.connection is not None and old.source != _source(hello):
        raise WireError("ID_IN_USE", f"a {old.role.value} {hello.id} is connected already")


def _policy(hello: Hello) -> Policy:
    try:
        return Policy(hello.policy) if hello.policy and hello.role == "client" else Policy.BLOCK
    except ValueError as error:
        names = ", ".join(policy.value for policy in Policy)
        raise WireError("BAD_HELLO", f"the policy {hello.policy!r} is none of {names}") from error
