"""Decides what must be sent again, what was seen before, and when a queue is full.

A session outlives its connections. Each of its two lanes numbers its records from 1: the data lane keeps
order and pushes back when it is full; the control lane (pause, resume, status) is never blocked by data
and drops its oldest records at its bound. Acknowledgements are cumulative and say what the other side has
*taken*, that is, acted on; a resume says what it has *received*, that is, holds in memory.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker_runtime.wire.frames import DATA_HEADER_BYTES, WireError, data_header, encode_ack
from broker_runtime.wire.records import PREFIX, PREFIX_BYTES, PUBLISH

DATA_LANE: Final = 0
CONTROL_LANE: Final = 1


class Role(Enum):
    BROKER = "broker"
    CLIENT = "client"


class Policy(Enum):
    """What happens when a peer does not keep up and its queue is full."""

    BLOCK = "block"  # push back to whoever publishes
    DISCONNECT = "disconnect"  # end the slow peer's session
    DROP_OLDEST = "drop-oldest"  # forget its oldest notifications, and tell it how many


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """Every bound and every time of a link, with its unit."""

    window_records: int = 16_384
    window_bytes: int = 4 << 20
    frame_bytes: int = 256 << 10
    record_bytes_max: int = 1 << 20
    queue_length_max: int = 20_000
    queue_bytes_max: int = 64 << 20
    control_queue_length_max: int = 5_000
    heartbeat_s: float = 2.0
    dead_after_s: float = 10.0
    handshake_timeout_s: float = 5.0
    session_expiry_s: float = 60.0
    dial_backoff_min_s: float = 0.05
    dial_backoff_max_s: float = 2.0


class Lane:
    """One direction-pair of numbered records."""

    __slots__ = (
        "acked",
        "inflight",
        "inflight_bytes",
        "queued",
        "sent",
        "taken",
        "unsent",
        "unsent_bytes",
    )

    def __init__(self) -> None:
        self.unsent: list[bytes] = []
        self.unsent_bytes = 0
        self.inflight: deque[tuple[int, list[bytes], int]] = deque()  # first number, records, bytes
        self.inflight_bytes = 0
        self.sent = 0  # number of the last record sent
        self.acked = 0  # number of the last record the peer has taken
        self.queued = 0  # number of the last record received
        self.taken = 0  # number of the last record taken

    def next_batch(self, settings: LinkSettings) -> tuple[int, list[bytes], int] | None:
        """Move what the window and one frame allow from unsent to in flight."""
        room = settings.window_records - (self.sent - self.acked)
        room_bytes = min(settings.frame_bytes, settings.window_bytes - self.inflight_bytes)
        if not self.unsent or room <= 0 or room_bytes <= 0:
            return None
        if len(self.unsent) <= room and self.unsent_bytes <= room_bytes:
            batch, size = self.unsent, self.unsent_bytes
            self.unsent, self.unsent_bytes = [], 0
        else:
            batch, size = self._front(room, room_bytes)
        first = self.sent + 1
        self.sent += len(batch)
        self.inflight.append((first, batch, size))
        self.inflight_bytes += size
        return first, batch, size

    def _front(self, room: int, room_bytes: int) -> tuple[list[bytes], int]:
        """The first records that fit, one at least: a record larger than a frame travels alone."""
        count, size = 1, len(self.unsent[0])
        for record in self.unsent[1:room]:
            if size + len(record) > room_bytes:
                break
            count += 1
            size += len(record)
        batch = self.unsent[:count]
        del self.unsent[:count]
        self.unsent_bytes -= size
        return batch, size

    def acknowledge(self, taken: int) -> None:
        if taken <= self.acked:
            return
        if taken > self.sent:
            raise WireError("BAD_ACK", f"record {taken} acknowledged, {self.sent} sent")
        self.acked = taken
        inflight = self.inflight
        while inflight and inflight[0][0] + len(inflight[0][1]) - 1 <= taken:
            self.inflight_bytes -= inflight.popleft()[2]

    def unreceived(self, received: int) -> list[tuple[int, list[bytes]]]:
        """What was sent and did not arrive, given the last number that did."""
        if received > self.sent or received < self.acked:
            raise WireError("BAD_RESUME", f"record {received} received of {self.acked}..{self.sent}")
        again = []
        for first, batch, _ in self.inflight:
            skip = max(0, received + 1 - first)
            if skip < len(batch):
                again.append((first + skip, batch[skip:]))
        return again

    def drop_oldest(self, keep: int, keep_bytes: int) -> int:
        """Forget the oldest unsent publications beyond the bound; how many there were.

        Other records do not count: a notice of drops must not make room for itself by the next drop.
        """
        before = left = sum(record[4] == PUBLISH for record in self.unsent)
        left_bytes = self.unsent_bytes
        kept: list[bytes] = []
        for record in self.unsent:
            if (left > keep or left_bytes > keep_bytes) and record[4] == PUBLISH:
                left -= 1
                left_bytes -= len(record)
            else:
                kept.append(record)
        self.unsent, self.unsent_bytes = kept, left_bytes
        return before - left


class Session:
    """What one end knows of its talk with one peer."""

    __slots__ = (
        "ack_due",
        "ack_held_at",
        "blocked_on",
        "blocking",
        "bytes_in",
        "bytes_out",
        "connection",
        "control",
        "data",
        "dropped",
        "dropped_untold",
        "ended",
        "expires_at",
        "id",
        "input",
        "lanes",
        "peer",
        "policy",
        "queue_length_max",
        "records_in",
        "records_out",
        "role",
        "settings",
        "source",
        "stamp",
    )

    def __init__(self, id_: str, peer: str, role: Role, settings: LinkSettings) -> None:
        self.id = id_
        self.peer = peer
        self.role = role
        self.settings = settings
        self.source = ""
        self.stamp = 0
        self.policy = Policy.BLOCK
        self.queue_length_max = settings.queue_length_max
        self.data = Lane()
        self.control = Lane()
        self.lanes = (self.data, self.control)
        self.input: tuple[deque[tuple[bytes, int, int, float]], ...] = (deque(), deque())
        self.connection: int | None = None
        self.expires_at: float | None = None
        self.ended = False
        self.ack_due = False
        self.ack_held_at: tuple[int, int] | None = None
        self.blocked_on: dict[str, Session] = {}  # destinations that this peer's input waits for
        self.blocking: dict[str, Session] = {}  # peers whose input waits for this destination
        self.records_in = 0
        self.records_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.dropped = 0
        self.dropped_untold = 0

    @property
    def taken(self) -> tuple[int, int]:
        """What is acknowledged: nothing from a refused record on, until its refusal is on its way."""
        if self.ack_held_at is not None:
            return self.ack_held_at
        return (self.data.taken, self.control.taken)

    @property
    def received(self) -> tuple[int, int]:
        return (self.data.queued, self.control.queued)

    @property
    def sent(self) -> tuple[int, int]:
        return (self.data.sent, self.control.sent)

    @property
    def full(self) -> bool:
        """Whether the data queue has reached its bound."""
        return (
            len(self.data.unsent) >= self.queue_length_max
            or self.data.unsent_bytes >= self.settings.queue_bytes_max
        )

    @property
    def drained(self) -> bool:
        """Whether the data queue is at half of its bound or less."""
        return (
            len(self.data.unsent) * 2 <= self.queue_length_max
            and self.data.unsent_bytes * 2 <= self.settings.queue_bytes_max
        )

    @property
    def routing_comes_next(self) -> bool:
        """Whether the data that waits longest holds no publication."""
        for body, position, _, _ in self.input[DATA_LANE]:
            while position + PREFIX_BYTES <= len(body):
                length, kind, _, _ = PREFIX.unpack_from(body, position)
                if kind == PUBLISH:
                    return False
                position += 4 + int(length)
            return True
        return False

    def offer(self, lane: int, record: bytes) -> None:
        queue = self.lanes[lane]
        queue.unsent.append(record)
        queue.unsent_bytes += len(record)

    def refuse(self, record: bytes) -> None:
        """Queue a refusal; the acknowledgement of what it refuses must not overtake it."""
        self.offer(DATA_LANE, record)
        if self.ack_held_at is None:
            self.ack_held_at = (self.data.taken, self.control.taken)

    def accept(self, lane: Lane, first: int, body: bytes) -> int | None:
        """Where the records that are new begin, or None when a frame is missing before this one."""
        if first == lane.queued + 1:
            return DATA_HEADER_BYTES
        if first > lane.queued:
            return None
        return skip_records(body, DATA_HEADER_BYTES, lane.queued + 1 - first)

    def output(self) -> list[bytes]:
        """The bytes that may leave now: new batches, or an acknowledgement that is due."""
        pieces: list[bytes] = []
        for number, lane in enumerate(self.lanes):
            while lane.unsent and (batch := lane.next_batch(self.settings)):
                first, records, size = batch
                pieces.append(data_header(number, first, self.taken, size))
                pieces += records
                self.records_out += len(records)
                self.bytes_out += size
        held = self.ack_held_at is not None
        if held and not self.data.unsent:
            self.ack_held_at = None
        if self.ack_due and (held or not pieces):
            pieces.append(self.heartbeat())
        self.ack_due = False
        return pieces

    def resumed_output(self, received: tuple[int, int]) -> list[bytes]:
        """What the peer did not receive before the connection broke, as it was numbered then.

        These frames acknowledge nothing: a refusal among them must not be overtaken by the acknowledgement of
        what it refuses. The heartbeat behind them does.
        """
        pieces: list[bytes] = []
        for number, lane in enumerate(self.lanes):
            for first, records in lane.unreceived(received[number]):
                pieces.append(data_header(number, first, (0, 0), sum(map(len, records))))
                pieces += records
        pieces.append(self.heartbeat())
        return pieces

    def heartbeat(self) -> bytes:
        return encode_ack(self.taken, self.sent)


def count_records(body: bytes, position: int) -> int:
    """How many whole records follow; WireError when they do not end with the body."""
    count, end = 0, len(body)
    while position < end:
        position = _after_record(body, position, end)
        count += 1
    return count


def skip_records(body: bytes, position: int, count: int) -> int:
    """The position after so many records, or the end of the body."""
    end = len(body)
    while count and position < end:
        position = _after_record(body, position, end)
        count -= 1
    return position


def _after_record(body: bytes, position: int, end: int) -> int:
    if position + PREFIX_BYTES > end:
        raise WireError("BAD_RECORD", "a record is cut off")
    length = PREFIX.unpack_from(body, position)[0]
    position += 4 + int(length)
    if length < 3 or position > end:
        raise WireError("BAD_RECORD", "a record is longer than its frame")
    return position
