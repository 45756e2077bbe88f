"""Lanes and sessions: what is sent, sent again, acknowledged, held back and dropped."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.link.session import (
    CONTROL_LANE,
    DATA_LANE,
    LinkSettings,
    Role,
    Session,
    count_records,
    skip_records,
)
from broker_runtime.wire.frames import (
    DATA,
    DATA_HEADER_BYTES,
    FrameReader,
    WireError,
    decode_ack,
    decode_data,
)
from broker_runtime.wire.records import Confirm, encode, encode_publication

SMALL = LinkSettings(window_records=4, window_bytes=10_000, frame_bytes=300, queue_length_max=10)


def publication(number: int, size: int = 10) -> bytes:
    return encode_publication("P:1", number, 0.0, {"class": "X", "text": "x" * size})


def session(settings: LinkSettings = SMALL) -> Session:
    return Session("s", "peer", Role.CLIENT, settings)


def frames(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    return FrameReader().feed(b"".join(pieces))


def records_of(body: bytes) -> list[bytes]:
    found, position = [], DATA_HEADER_BYTES
    while position < len(body):
        stop = skip_records(body, position, 1)
        found.append(body[position:stop])
        position = stop
    return found


def test_no_more_than_the_window_is_in_flight():
    one = session()
    for n in range(1, 8):
        one.offer(DATA_LANE, publication(n))
    sent = [record for kind, body in frames(one.output()) for record in records_of(body) if kind == DATA]
    assert sent == [publication(n) for n in range(1, 5)]
    assert one.output() == []
    one.data.acknowledge(3)
    [(_, body)] = frames(one.output())
    assert decode_data(body).first == 5
    assert records_of(body) == [publication(n) for n in range(5, 8)]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.data())
def test_a_resume_sends_exactly_what_was_not_received(sizes, data):
    one = session(LinkSettings(window_records=100, frame_bytes=500))
    sent = [publication(n, size) for n, size in enumerate(sizes, 1)]
    for record in sent:
        one.offer(DATA_LANE, record)
    one.output()
    received = data.draw(st.integers(0, len(sent)))
    taken = data.draw(st.integers(0, received))
    one.data.acknowledge(taken)
    again = [body for kind, body in frames(one.resumed_output((received, 0))) if kind == DATA]
    assert [record for body in again for record in records_of(body)] == sent[received:]
    if again:
        assert decode_data(again[0]).first == received + 1


def test_a_record_larger_than_a_frame_travels_alone():
    one = session()
    for n, size in ((1, 10), (2, 2_000), (3, 10)):
        one.offer(DATA_LANE, publication(n, size))
    counts = [len(records_of(body)) for _, body in frames(one.output())]
    assert counts == [1, 1, 1]


def test_a_frame_seen_before_is_skipped_and_a_gap_is_noticed():
    one, other = session(), session()
    for n in range(1, 4):
        one.offer(DATA_LANE, publication(n))
    [(_, body)] = frames(one.output())
    assert other.accept(other.data, 1, body) == DATA_HEADER_BYTES
    other.data.queued = 3
    assert other.accept(other.data, 1, body) == len(body)
    other.data.queued = 2
    assert records_of(body[:DATA_HEADER_BYTES] + body[other.accept(other.data, 1, body) :]) == [
        publication(3)
    ]
    other.data.queued = 0
    assert other.accept(other.data, 2, body) is None


def test_acknowledging_what_was_never_sent_is_refused():
    with pytest.raises(WireError):
        session().data.acknowledge(1)
    with pytest.raises(WireError):
        session().data.unreceived(1)


def test_a_refusal_is_never_overtaken_by_the_acknowledgement_of_what_it_refuses():
    one = session()
    for n in range(1, 5):
        one.offer(DATA_LANE, publication(n))
    one.output()  # the window is full now
    one.refuse(encode(Confirm("x")))
    one.data.queued = one.data.taken = 9
    one.ack_due = True
    [(_, held)] = frames(one.output())
    assert decode_ack(held).taken == (0, 0)
    one.data.acknowledge(4)
    one.ack_due = True
    refusal, acknowledgement = frames(one.output())
    assert decode_data(refusal[1]).taken == (0, 0)
    assert decode_ack(acknowledgement[1]).taken == (9, 0)


def test_dropping_the_oldest_spares_everything_but_publications():
    one = session()
    answer = encode(Confirm("x"))
    one.offer(DATA_LANE, answer)
    for n in range(1, 13):
        one.offer(DATA_LANE, publication(n))
    assert one.data.drop_oldest(10, 1_000_000) == 2
    assert one.data.unsent == [answer, *(publication(n) for n in range(3, 13))]
    assert one.data.unsent_bytes == sum(map(len, one.data.unsent))


def test_the_control_lane_goes_on_when_the_data_window_is_closed():
    one = session()
    for n in range(1, 10):
        one.offer(DATA_LANE, publication(n))
    one.output()
    one.offer(CONTROL_LANE, publication(1))
    [(_, body)] = frames(one.output())
    assert decode_data(body)[:2] == (CONTROL_LANE, 1)


@given(st.binary(max_size=60))
def test_hostile_records_are_counted_or_refused(body):
    with suppress(WireError):
        assert count_records(body, 0) >= 0
