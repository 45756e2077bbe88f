"""Decides how one message of the network looks as bytes, and back.

A record is `u32 length | u8 kind | u8 flags | u8 hops | body`. Brokers forward a publication by writing a
new seven-byte prefix before the body that came in: content is encoded once, by its publisher. A payload
follows the head and is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from broker_runtime.language.limits import ATTRIBUTES_MAX_PER_PUBLICATION, PREDICATES_MAX_PER_MESSAGE
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import (
    CustomOperator,
    Op,
    Predicate,
    Variable,
    custom_operator,
    predicate,
)
from broker_runtime.language.values import Type, Value, checked
from broker_runtime.wire.frames import WireError

PREFIX: Final = Struct(">IBBB")  # length of what follows it, kind, flags, hops
PREFIX_BYTES: Final = PREFIX.size
HOPS_MAX: Final = 255
RECORD_BYTES_MAX: Final = 1 << 20
ATTRIBUTES_MAX: Final = ATTRIBUTES_MAX_PER_PUBLICATION
PREDICATES_MAX: Final = PREDICATES_MAX_PER_MESSAGE
ID_LENGTH_MAX: Final = 200
LINKS_MAX: Final = 1_000
PRESENT_KEPT: Final = 1_024
LINK_NUMBER_MAX: Final = 1 << 53  # room to count on: what follows is still a 64-bit number
_HEAD_LENGTH: Final = Struct(">I")
_BIG_INTEGER: Final = 1  # extension code; msgpack's own integers end at 64 bits
_BIG_INTEGER_BYTES_MAX: Final = 4096


class RecordKind(IntEnum):
    PUBLISH = 1
    ADVERTISE = 2
    UNADVERTISE = 3
    SUBSCRIBE = 4
    UNSUBSCRIBE = 5
    CONFIRM = 6
    REFUSE = 7
    NOTICE = 8
    OVERLAY = 9


class Flag(IntEnum):
    """Bits of a publication's flags."""

    EXTENDED = 1  # the content holds dates or big integers
    PAYLOAD = 2  # the head's length comes first, a payload follows the head
    TRACE = 4  # every broker reports that the publication came by
    URGENT = 8  # of a control class: travels in the control lane


PUBLISH: Final = int(RecordKind.PUBLISH)


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a broker decodes of a publication: who published it, its number, when, and what it says."""

    source: str
    number: int
    time: float
    content: dict[str, str | int | float | bool]


class ExtendedHead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    source: str
    number: int
    time: float
    content: dict[str, Any]


class Advertise(msgspec.Struct, frozen=True):
    id: str
    advertisement: Advertisement


class Unadvertise(msgspec.Struct, frozen=True):
    id: str


class Subscribe(msgspec.Struct, frozen=True):
    id: str
    subscription: Subscription


class Unsubscribe(msgspec.Struct, frozen=True):
    id: str


class Confirm(msgspec.Struct, frozen=True):
    """An unsubscription has been carried out by every broker that held the subscription."""

    id: str


class Refuse(msgspec.Struct, frozen=True):
    """The message with this id was not taken, and why."""

    id: str
    code: str
    message: str


class Notice(msgspec.Struct, frozen=True):
    """Something the peer should know of its session, such as notifications dropped by its policy."""

    code: str
    message: str
    count: int = 0


class LinkState(msgspec.Struct, frozen=True, array_like=True):
    """One broker's links as it knows them: neighbour → stamp of the link."""

    broker: str
    version: tuple[int, int]
    links: dict[str, int]


class RecordRefused(WireError):
    """One message cannot be taken; the connection goes on."""

    def __init__(self, id_: str, code: str, message: str) -> None:
        super().__init__(code, message)
        self.id = id_


Message = Advertise | Unadvertise | Subscribe | Unsubscribe | Confirm | Refuse | Notice | LinkState

_ENCODER: Final = msgspec.msgpack.Encoder()
decode_head: Final = msgspec.msgpack.Decoder(Head).decode


def _decode_extension(code: int, data: memoryview) -> object:
    if code == _BIG_INTEGER and len(data) <= _BIG_INTEGER_BYTES_MAX:
        return int.from_bytes(bytes(data), "big", signed=True)
    raise ValueError(f"extension {code} is unknown or too long")


_decode_extended: Final = msgspec.msgpack.Decoder(ExtendedHead, ext_hook=_decode_extension).decode


def encode_publication(
    source: str,
    number: int,
    time: float,
    content: Mapping[str, Value],
    payload: bytes = b"",
    flags: int = 0,
) -> bytes:
    """The record of a publication, for checked content."""
    try:
        head = _ENCODER.encode((source, number, time, content))
        if datetime in map(type, content.values()):
            flags |= Flag.EXTENDED
    except OverflowError:
        wrapped = {name: _wrapped(value) for name, value in content.items()}
        head = _ENCODER.encode((source, number, time, wrapped))
        flags |= Flag.EXTENDED
    if payload:
        flags |= Flag.PAYLOAD
        head = _HEAD_LENGTH.pack(len(head)) + head + payload
    return PREFIX.pack(len(head) + 3, PUBLISH, flags, 0) + head


def _wrapped(value: Value) -> object:
    if value.__class__ is int and value.bit_length() >= 63:
        number: int = value
        return Ext(_BIG_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))
    return value


def decode_publication(body: bytes, flags: int) -> tuple[Head | ExtendedHead, bytes]:
    """Head and payload of a publication's body. WireError when it is not one."""
    try:
        payload = b""
        if flags & Flag.PAYLOAD:
            (length,) = _HEAD_LENGTH.unpack_from(body)
            if length > len(body) - 4:
                raise WireError("BAD_RECORD", "a publication's head is longer than its record")
            body, payload = body[4 : 4 + length], body[4 + length :]
        head: Head | ExtendedHead
        if flags & Flag.EXTENDED:
            head = _decode_extended(body)
            for name, value in head.content.items():
                if checked(value) is not value and value.__class__ is not datetime:
                    raise WireError("BAD_RECORD", f"attribute {name!r} holds a {type(value).__name__}")
                if value.__class__ is datetime and value.tzinfo is not UTC:
                    raise WireError("BAD_RECORD", f"attribute {name!r} is a date without time zone")
        else:
            head = decode_head(body)
    except WireError:
        raise
    except Exception as error:  # msgspec raises several kinds on hostile bytes
        raise WireError("BAD_RECORD", f"a publication does not decode: {error}") from error
    check_head(head)
    return head, payload


def check_head(head: Head | ExtendedHead) -> None:
    content = head.content
    if len(content) > ATTRIBUTES_MAX:
        raise WireError("TOO_LARGE", f"a publication holds at most {ATTRIBUTES_MAX} attributes")
    if CLASS not in content or "" in content:
        raise WireError("BAD_RECORD", "a publication lacks its class or names an empty attribute")
    if len(head.source) > ID_LENGTH_MAX or head.number < 1:
        raise WireError("BAD_RECORD", "a publication's id is not one")


def forwarded(body: bytes, flags: int, hops: int) -> bytes:
    """The record that passes a publication on, one hop further."""
    return PREFIX.pack(len(body) + 3, PUBLISH, flags, hops + 1 if hops < HOPS_MAX else hops) + body


def encode(message: Message) -> bytes:
    """The record of any message but a publication."""
    kind, fields = _fields(message)
    body = _ENCODER.encode(fields)
    return PREFIX.pack(len(body) + 3, kind, 0, 0) + body


def _fields(message: Message) -> tuple[RecordKind, object]:
    if isinstance(message, Advertise):
        return RecordKind.ADVERTISE, (message.id, _packed(message.advertisement.predicates))
    if isinstance(message, Subscribe):
        return RecordKind.SUBSCRIBE, (message.id, _packed(message.subscription.predicates))
    if isinstance(message, Unadvertise):
        return RecordKind.UNADVERTISE, (message.id,)
    if isinstance(message, Unsubscribe):
        return RecordKind.UNSUBSCRIBE, (message.id,)
    if isinstance(message, Confirm):
        return RecordKind.CONFIRM, (message.id,)
    if isinstance(message, Refuse):
        return RecordKind.REFUSE, (message.id, message.code, message.message)
    if isinstance(message, Notice):
        return RecordKind.NOTICE, (message.code, message.message, message.count)
    return RecordKind.OVERLAY, message


def _packed(predicates: Iterable[Predicate]) -> list[tuple[object, ...]]:
    return [_packed_predicate(each) for each in predicates]


def _packed_predicate(each: Predicate) -> tuple[object, ...]:
    op = each.op.value if isinstance(each.op, Op) else each.op.name
    operand = each.operand
    if isinstance(operand, Variable):
        shift = operand.shift
        if isinstance(shift, timedelta):
            return (each.attribute, op, operand.name, "s", shift.total_seconds())
        return (each.attribute, op, operand.name, "", shift)
    if isinstance(operand, Type):
        return (each.attribute, op, operand.value)
    if isinstance(operand, tuple):
        return (each.attribute, op, [_wrapped(value) for value in operand])
    return (each.attribute, op, _wrapped(operand))


def decode(kind: int, body: bytes) -> Message:
    """Any message but a publication. WireError when the bytes are not one."""
    reader = _READERS.get(kind)
    if reader is None:
        raise WireError("BAD_RECORD", f"record kind {kind} is unknown")
    try:
        return reader(body)
    except WireError:
        raise
    except Exception as error:  # msgspec and the language raise several kinds on hostile bytes
        raise WireError("BAD_RECORD", f"{RecordKind(kind).name} does not decode: {error}") from error


_decode_filter: Final = msgspec.msgpack.Decoder(
    tuple[str, list[list[Any]]], ext_hook=_decode_extension
).decode
_decode_id: Final = msgspec.msgpack.Decoder(tuple[str]).decode
_decode_refuse: Final = msgspec.msgpack.Decoder(tuple[str, str, str]).decode
_decode_notice: Final = msgspec.msgpack.Decoder(tuple[str, str, int]).decode
_decode_links: Final = msgspec.msgpack.Decoder(LinkState).decode


def _id(text: str) -> str:
    if not text or len(text) > ID_LENGTH_MAX:
        raise WireError("BAD_RECORD", f"an id has 1 to {ID_LENGTH_MAX} characters")
    return text


def _links(state: LinkState) -> LinkState:
    numbers = (*state.version, *state.links.values())
    if len(state.links) > LINKS_MAX or not all(0 <= number < LINK_NUMBER_MAX for number in numbers):
        raise WireError("BAD_RECORD", f"at most {LINKS_MAX} links, versions and stamps below 2**53")
    if not all(0 < len(name) <= ID_LENGTH_MAX for name in (state.broker, *state.links)):
        raise WireError("BAD_RECORD", "a broker's id is empty or too long")
    return state


def _filter(body: bytes) -> tuple[str, list[Predicate]]:
    id_, packed = _decode_filter(body)
    if len(packed) > PREDICATES_MAX:
        raise WireError("TOO_LARGE", f"a message holds at most {PREDICATES_MAX} predicates")
    try:
        return _id(id_), [_unpacked(each) for each in packed]
    except WireError as error:
        raise RecordRefused(id_, error.code, error.message) from error
    except (ValueError, TypeError) as error:
        raise RecordRefused(id_, "BAD_MESSAGE", str(error)) from error


_OPS: Final[dict[str, Op]] = {op.value: op for op in Op}


@lru_cache(PRESENT_KEPT)
def _present(attribute: str, type_: str) -> Predicate:
    """Most of what brokers advertise of themselves, and the same from each of them."""
    return predicate(attribute, Op.PRESENT, Type(type_))


def _unpacked(packed: list[Any]) -> Predicate:
    attribute, name, operand, *shift = packed
    if name == Op.PRESENT.value and not shift and isinstance(attribute, str) and isinstance(operand, str):
        return _present(attribute, operand)
    if not isinstance(attribute, str) or not isinstance(name, str):
        raise ValueError("attribute and operator are strings")
    op: Op | CustomOperator | None = _OPS.get(name) or custom_operator(name)
    if op is None:
        raise WireError("UNKNOWN_OPERATOR", f"operator {name!r} is not known to this broker")
    if shift:
        unit, amount = shift
        if not isinstance(operand, str) or type(amount) not in (int, float):
            raise ValueError("a variable has a name and a shift")
        operand = Variable(operand, timedelta(seconds=amount) if unit == "s" else amount)
    elif op is Op.PRESENT:
        operand = Type(operand)
    return predicate(attribute, op, operand)


_READERS: Final[dict[int, Callable[[bytes], Message]]] = {
    int(RecordKind.ADVERTISE): lambda body: _advertise(*_filter(body)),
    int(RecordKind.SUBSCRIBE): lambda body: _subscribe(*_filter(body)),
    int(RecordKind.UNADVERTISE): lambda body: Unadvertise(_id(_decode_id(body)[0])),
    int(RecordKind.UNSUBSCRIBE): lambda body: Unsubscribe(_id(_decode_id(body)[0])),
    int(RecordKind.CONFIRM): lambda body: Confirm(_id(_decode_id(body)[0])),
    int(RecordKind.REFUSE): lambda body: Refuse(*_decode_refuse(body)),
    int(RecordKind.NOTICE): lambda body: Notice(*_decode_notice(body)),
    int(RecordKind.OVERLAY): lambda body: _links(_decode_links(body)),
}


def _advertise(id_: str, predicates: list[Predicate]) -> Advertise:
    try:
        return Advertise(id_, Advertisement(predicates))
    except ValueError as error:
        raise RecordRefused(id_, "BAD_MESSAGE", str(error)) from error


def _subscribe(id_: str, predicates: list[Predicate]) -> Subscribe:
    try:
        return Subscribe(id_, Subscription(predicates))
    except ValueError as error:
        raise RecordRefused(id_, "BAD_MESSAGE", str(error)) from error
