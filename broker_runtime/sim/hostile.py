"""Decides what a broken or hostile peer sends: random bytes, damaged frames, and valid ones that lie."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from broker_runtime.link.handshake import CHALLENGE_BYTES, proof
from broker_runtime.sim import contents
from broker_runtime.wire.frames import (
    PROTOCOL_VERSION,
    Bye,
    FrameKind,
    Greeting,
    Hello,
    Reject,
    Welcome,
    data_header,
    encode_ack,
    encode_handshake,
)
from broker_runtime.wire.records import (
    PREFIX,
    Advertise,
    Confirm,
    Flag,
    LinkState,
    Message,
    Notice,
    RecordKind,
    Refuse,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    encode,
    encode_publication,
)

HUGE: Final = (1 << 64) - 1
ODD_NUMBERS: Final = (0, 1, 2, 7, 255, 65_536, 1 << 31, 1 << 62, HUGE)
DEEP: Final = b"\x91" * 5000 + b"\xc0"
BOMBS: Final = (
    DEEP,
    b"\x81\xa1a" * 3000 + b"\xc0",
    b"\xdd\xff\xff\xff\xff",  # a list of four thousand million
    b"\xdf\xff\xff\xff\xff\xa1a\xc0",
    b"\xc6\xff\xff\xff\xffabc",
    b"\xdb\xff\xff\xff\xff",
    b"\xc7\x05\x01\x00\x00\x00\x00\x00",
    b"\xc9\x00\x00\x20\x00\x01" + b"\x7f" * 0x2000,  # an integer of 8 KiB
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",  # NaN
    b"\xa4\xff\xfe\xfd\xfc",  # not UTF-8
    b"\xd7\xff" + b"\xff" * 8,  # a moment beyond all calendars
)
ODD_VALUES: Final[tuple[object, ...]] = (
    None, True, -1, HUGE, 1.5, "", "x" * 300, "evil", b"\x00", [], {}, [[[]]], {"a": {}},
)  # fmt: skip


def damaged(random: Random, data: bytes) -> bytes:
    """The bytes with something cut off, put in, flipped, repeated or exchanged."""
    kind = random.randrange(6)
    if not data or kind == 0:
        return random.randbytes(random.randint(0, 60))
    at = random.randrange(len(data))
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + random.randbytes(random.randint(1, 8)) + data[at:]
    if kind == 3:
        return data[:at] + data[at + random.randint(1, 9) :]
    if kind == 4:
        return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
    return data[:at] + random.choice(BOMBS) + data[at:]


def framed(kind: int, body: bytes) -> bytes:
    return (1 + len(body)).to_bytes(4, "big") + bytes([kind]) + body


def hello(random: Random, name: str, role: str, challenge: bytes, broker: str, token: str) -> Hello:
    """A hello that is right."""
    return Hello(
        version=PROTOCOL_VERSION,
        role=role,
        id=name,
        incarnation=str(1000 + random.randrange(1000)),  # never the one of a client that behaves
        challenge=random.randbytes(CHALLENGE_BYTES),
        proof=proof(token, "hello", challenge, name, broker),
    )


def lying_handshake(random: Random, honest: Hello) -> bytes:
    """A handshake frame with a wrong token, wrong types, another version, or out of turn."""
    fields = msgspec.to_builtins(honest, builtin_types=(bytes,))
    for _ in range(random.randint(1, 3)):
        name = random.choice(list(fields))
        if random.random() < 0.2:
            del fields[name]
        else:
            fields[name] = random.choice((*ODD_VALUES, (HUGE, HUGE), [1, 2, 3], "broker"))
        if not fields:
            break
    body = msgspec.msgpack.encode(fields)
    kind = FrameKind.HELLO if random.random() < 0.8 else random.choice(list(FrameKind))
    return framed(kind, body if random.random() < 0.7 else damaged(random, body))


def handshake(random: Random) -> bytes:
    """Any handshake frame, right in itself."""
    both = (random.choice(ODD_NUMBERS[:8]), random.choice(ODD_NUMBERS[:8]))
    name = random.choice(("B", "evil", "P", "S", "", "B:1", "x" * 99))
    return encode_handshake(
        random.choice(
            (
                Greeting(
                    version=random.choice((1, 1, 1, 0, 2)),
                    broker=name,
                    challenge=random.randbytes(random.choice((0, 16, 99))),
                    token_required=random.random() < 0.3,
                ),
                Hello(version=1, role="client", id=name, challenge=b"", incarnation="666", received=both),
                Welcome(session="aa", incarnation="1", resumed=random.random() < 0.5, received=both),
                Reject(code=random.choice(("CYCLE", "BUSY", "AUTHENTICATION", "")), message="no"),
                Bye(reason="enough"),
            )
        )
    )


def record(random: Random, source: str) -> bytes:
    """A record, right or wrong, from somebody who calls himself `source`."""
    kind = random.random()
    if kind < 0.25:
        return random_publication(random, source)
    if kind < 0.75:
        good = encode(message(random, source))
        return good if random.random() < 0.4 else redressed(damaged(random, good[7:]), good[4])
    if kind < 0.9:
        return redressed(random.choice(BOMBS), random.choice(list(RecordKind)), random.randrange(16))
    return damaged(random, random_publication(random, source))


def random_publication(random: Random, source: str) -> bytes:
    said = dict(contents.content(random, None))
    if random.random() < 0.1:
        said["class"] = random.choice(("BROKER_CONTROL", "BROKER_INFO"))
        said.update(broker="*", command=random.choice(("info", "tables", "inject", "nonsense")))
    flags = 0 if random.random() < 0.6 else random.choice((*Flag, 255))
    payload = b"p" if random.random() < 0.2 else b""
    number = random.choice((1, 2, 3, 0, -1, 1 << 40))
    good = encode_publication(source, number, random.random(), said, payload)
    return redressed(good[7:], good[4], flags or good[5])


def redressed(body: bytes, kind: int, flags: int = 0) -> bytes:
    """A record whose length is right, whatever is in it."""
    return PREFIX.pack(len(body) + 3, kind, flags, 0) + body


def message(random: Random, source: str) -> Message:
    id_ = f"{source}:{random.randint(1, 6)}"
    if random.random() < 0.2:
        id_ = random.choice(("", "P:1:1", "x" * 300))
    names = ("B", "evil0", "X", "Y")
    return random.choice(
        (
            Advertise(id_, contents.advertisement(random)),
            Subscribe(id_, contents.subscription(random)),
            Unadvertise(id_),
            Unsubscribe(id_),
            Confirm(id_),
            Refuse(id_, "NO", "no"),
            Notice("N", "n", random.choice((-1, 0, 1 << 40))),
            LinkState(
                random.choice(("B", "evil0", "X", "")),
                (random.choice((0, 1, 1 << 50, HUGE)), random.choice((0, 1, 1 << 50, HUGE))),
                {random.choice(names): random.choice((0, 1, 2, -1, HUGE)) for _ in range(2)},
            ),
        )
    )


def data_frame(random: Random, source: str, first: int) -> tuple[bytes, int]:
    """A DATA frame and how many records it claims; mostly with the right number and harmless counts."""
    records = [record(random, source) for _ in range(random.choice((0, 1, 1, 1, 3)))]
    body = b"".join(records)
    lane = 0 if random.random() < 0.85 else random.choice((1, 1, 2, 255))
    if random.random() < 0.1:
        first = random.choice(ODD_NUMBERS)
    taken = (0, 0) if random.random() < 0.9 else (random.choice(ODD_NUMBERS), random.choice(ODD_NUMBERS))
    frame = data_header(lane, first, taken, len(body)) + body
    return (frame if random.random() < 0.9 else damaged(random, frame)), len(records)


def ack_frame(random: Random) -> bytes:
    numbers = [0 if random.random() < 0.6 else random.choice(ODD_NUMBERS) for _ in range(4)]
    frame = encode_ack((numbers[0], numbers[1]), (numbers[2], numbers[3]))
    return frame if random.random() < 0.8 else damaged(random, frame)
