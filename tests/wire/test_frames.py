"""Frames: any chunking of the stream gives the same frames, and hostile streams end in a typed error."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.wire.frames import (
    ACK,
    DATA,
    Ack,
    Bye,
    Data,
    FrameReader,
    Greeting,
    Hello,
    Reject,
    Welcome,
    WireError,
    data_header,
    decode_ack,
    decode_data,
    decode_handshake,
    encode_ack,
    encode_handshake,
)

numbers = st.integers(0, 2**64 - 1)
pairs = st.tuples(numbers, numbers)

greetings = st.builds(
    Greeting,
    version=st.integers(0, 9),
    broker=st.text(max_size=20),
    challenge=st.binary(max_size=16),
    token_required=st.booleans(),
)
hellos = st.builds(
    Hello,
    version=st.integers(0, 9),
    role=st.sampled_from(["broker", "client"]),
    id=st.text(max_size=20),
    challenge=st.binary(max_size=16),
    session=st.text(max_size=16),
    received=pairs,
)
welcomes = st.builds(
    Welcome, session=st.text(max_size=16), incarnation=st.text(), resumed=st.booleans(), received=pairs
)
rejects = st.builds(Reject, code=st.text(max_size=10), message=st.text(max_size=40))
handshakes = st.one_of(greetings, hellos, welcomes, rejects, st.builds(Bye, reason=st.text(max_size=9)))


def cut(stream: bytes, sizes: list[int]) -> list[bytes]:
    chunks, position = [], 0
    for size in sizes:
        chunks.append(stream[position : position + size])
        position += size
    return [*chunks, stream[position:]]


@given(st.lists(handshakes, max_size=5), st.lists(st.integers(0, 30), max_size=40))
def test_any_chunking_gives_the_same_frames(messages, sizes):
    stream = b"".join(map(encode_handshake, messages))
    reader = FrameReader()
    frames = [frame for chunk in cut(stream, sizes) for frame in reader.feed(chunk)]
    assert [decode_handshake(kind, body) for kind, body in frames] == messages
    assert reader.buffered == 0


@given(st.sampled_from([0, 1]), st.integers(1, 2**64 - 1), pairs, st.binary(max_size=50))
def test_a_data_frame_reads_as_it_was_written(lane, first, taken, records):
    [(kind, body)] = FrameReader().feed(data_header(lane, first, taken, len(records)) + records)
    assert kind == DATA
    assert decode_data(body) == Data(lane, first, taken)
    assert body.endswith(records)


@given(pairs, pairs)
def test_an_acknowledgement_reads_as_it_was_written(taken, sent):
    [(kind, body)] = FrameReader().feed(encode_ack(taken, sent))
    assert (kind, decode_ack(body)) == (ACK, Ack(taken, sent))


def test_a_frame_beyond_the_limit_is_refused_before_it_is_collected():
    reader = FrameReader(frame_bytes_max=100)
    with pytest.raises(WireError) as refused:
        reader.feed(b"\x00\x00\x00\x65\x05")
    assert refused.value.code == "TOO_LARGE"


def test_an_empty_frame_is_refused():
    with pytest.raises(WireError):
        FrameReader().feed(bytes(5))


@given(st.integers(0, 255), st.binary(max_size=200))
def test_hostile_frame_bodies_end_in_a_typed_error(kind, body):
    for decode in (lambda: decode_handshake(kind, body), lambda: decode_data(body), lambda: decode_ack(body)):
        with suppress(WireError):
            decode()


def test_a_lane_that_does_not_exist_is_refused():
    [(_, body)] = FrameReader().feed(data_header(2, 1, (0, 0), 0))
    with pytest.raises(WireError):
        decode_data(body)
