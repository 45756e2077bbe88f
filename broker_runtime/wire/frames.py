"""Decides where one frame ends and the next begins, and what a frame of each kind holds.

A connection carries frames: `u32 length | u8 kind | body`. Handshake frames hold one msgpack map. A DATA
frame holds consecutive records of one lane and the number of the first, so one number and one write serve
a whole batch; the records themselves are the same bytes for every destination. See docs/wire-protocol.md.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

PROTOCOL_VERSION: Final = 1
FRAME_BYTES_MAX: Final = 4 << 20
HANDSHAKE_BYTES_MAX: Final = 16 << 10

LENGTH: Final = Struct(">I")
_DATA: Final = Struct(">IBBQQQ")  # length, kind, lane, first number, taken in lane 0, taken in lane 1
_DATA_BODY: Final = Struct(">BQQQ")
_ACK: Final = Struct(">IBQQQQ")  # length, kind, taken per lane, sent per lane
_ACK_BODY: Final = Struct(">QQQQ")
DATA_HEADER_BYTES: Final = _DATA_BODY.size


class FrameKind(IntEnum):
    GREETING = 1
    HELLO = 2
    WELCOME = 3
    REJECT = 4
    DATA = 5
    ACK = 6
    BYE = 7


DATA: Final = int(FrameKind.DATA)
ACK: Final = int(FrameKind.ACK)

Frame = tuple[int, bytes]  # kind and body


class WireError(Exception):
    """The peer sent what the protocol does not allow. The code goes back to the peer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """The listening side speaks first: who it is, and a challenge to prove knowledge of the token."""

    version: int
    broker: str
    challenge: bytes
    token_required: bool


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The dialling side: who it is, and the session it wants to go on with, if any."""

    version: int
    role: str
    id: str
    challenge: bytes
    proof: bytes = b""
    incarnation: str = ""
    address: str = ""
    session: str = ""
    received: tuple[int, int] = (0, 0)
    stamp: int = 0
    policy: str = ""
    queue_length_max: int = 0


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The listening side accepts; `resumed` says whether the session of the hello goes on."""

    session: str
    incarnation: str
    resumed: bool
    received: tuple[int, int]
    proof: bytes = b""
    stamp: int = 0
    window_records: int = 0
    window_bytes: int = 0
    record_bytes_max: int = 0


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """The last frame before a connection is closed for cause."""

    code: str
    message: str


class Bye(msgspec.Struct, frozen=True, kw_only=True):
    """The peer leaves for good: its session ends, and everything it asked for is withdrawn."""

    reason: str = ""


class Data(NamedTuple):
    lane: int
    first: int
    taken: tuple[int, int]


class Ack(NamedTuple):
    taken: tuple[int, int]
    sent: tuple[int, int]


Handshake = Greeting | Hello | Welcome | Reject | Bye

_CLASS_BY_KIND: Final[dict[int, type]] = {
    FrameKind.GREETING: Greeting,
    FrameKind.HELLO: Hello,
    FrameKind.WELCOME: Welcome,
    FrameKind.REJECT: Reject,
    FrameKind.BYE: Bye,
}
_KIND_BY_CLASS: Final = {cls: kind for kind, cls in _CLASS_BY_KIND.items()}
_DECODERS: Final[dict[int, msgspec.msgpack.Decoder[Any]]] = {
    kind: msgspec.msgpack.Decoder(cls) for kind, cls in _CLASS_BY_KIND.items()
}
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode_handshake(message: Handshake) -> bytes:
    body = _ENCODER.encode(message)
    return LENGTH.pack(len(body) + 1) + bytes((_KIND_BY_CLASS[type(message)],)) + body


def decode_handshake(kind: int, body: bytes) -> Handshake:
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise WireError("BAD_FRAME", f"frame kind {kind} is unknown")
    if len(body) > HANDSHAKE_BYTES_MAX:
        raise WireError("TOO_LARGE", f"a handshake frame holds at most {HANDSHAKE_BYTES_MAX} bytes")
    try:
        message: Handshake = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError("BAD_FRAME", f"{FrameKind(kind).name} does not decode: {error}") from error
    return message


def data_header(lane: int, first: int, taken: tuple[int, int], records_bytes: int) -> bytes:
    return _DATA.pack(1 + DATA_HEADER_BYTES + records_bytes, DATA, lane, first, *taken)


def decode_data(body: bytes) -> Data:
    """The header of a DATA frame; its records start at DATA_HEADER_BYTES."""
    if len(body) < DATA_HEADER_BYTES:
        raise WireError("BAD_FRAME", "a DATA frame is shorter than its header")
    lane, first, taken_0, taken_1 = _DATA_BODY.unpack_from(body)
    if lane > 1 or first == 0:
        raise WireError("BAD_FRAME", f"a DATA frame names lane {lane} and number {first}")
    return Data(lane, first, (taken_0, taken_1))


def encode_ack(taken: tuple[int, int], sent: tuple[int, int]) -> bytes:
    return _ACK.pack(1 + _ACK_BODY.size, ACK, *taken, *sent)


def decode_ack(body: bytes) -> Ack:
    if len(body) != _ACK_BODY.size:
        raise WireError("BAD_FRAME", "an ACK frame is of the wrong length")
    taken_0, taken_1, sent_0, sent_1 = _ACK_BODY.unpack(body)
    return Ack((taken_0, taken_1), (sent_0, sent_1))


class FrameReader:
    """Cuts a stream of bytes, however chunked, into frames."""

    __slots__ = ("_buffer", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = b""
        self.frame_bytes_max = frame_bytes_max

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by this data. WireError: the stream cannot be read on."""
        buffer = self._buffer + data if self._buffer else data
        frames: list[Frame] = []
        position, end = 0, len(buffer)
        while end - position >= 5:
            (length,) = LENGTH.unpack_from(buffer, position)
            if length == 0 or length > self.frame_bytes_max:
                raise WireError(
                    "TOO_LARGE", f"a frame of {length} bytes; 1 to {self.frame_bytes_max} are allowed"
                )
            stop = position + 4 + length
            if stop > end:
                break
            frames.append((buffer[position + 4], buffer[position + 5 : stop]))
            position = stop
        self._buffer = buffer[position:]
        return frames

    @property
    def buffered(self) -> int:
        return len(self._buffer)
