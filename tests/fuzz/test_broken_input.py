"""Broken and hostile input stays the problem of whoever sent it."""

from contextlib import suppress
from random import Random

import msgspec
import pytest

from broker_runtime.seam import Malformed, Opened, Received
from broker_runtime.sim import hostile
from broker_runtime.sim.fuzz import Siege, besiege, mislead, misread
from broker_runtime.wire.frames import FrameKind, WireError, decode_handshake

CASES = 400


@pytest.mark.parametrize("seed", range(6))
def test_a_besieged_broker_serves_its_clients(seed: int) -> None:
    codes = besiege(seed, CASES)
    assert {"BAD_FRAME", "BAD_RECORD", "ID_IN_USE", "OUT_OF_TURN"} <= codes.keys()


@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_a_client_survives_a_hostile_broker(start: int) -> None:
    for case in range(start, start + 500):
        mislead(Random(f"test {case}"))


@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_damaged_text_is_refused_in_words(start: int) -> None:
    for case in range(start, start + 500):
        misread(Random(f"test {case}"))


@pytest.mark.parametrize("bomb", hostile.BOMBS)
@pytest.mark.parametrize("kind", [FrameKind.GREETING, FrameKind.HELLO, FrameKind.WELCOME, FrameKind.BYE])
def test_a_bomb_in_a_handshake_is_a_bad_frame_at_worst(bomb: bytes, kind: FrameKind) -> None:
    """Also where a decoder skips it: under a name that nobody knows."""
    for body in (bomb, b"\x81\xa3odd" + bomb):
        with suppress(WireError):
            decode_handshake(kind, body)


@pytest.mark.parametrize("stamp", [-1, 1 << 53, (1 << 64) - 1])
def test_a_stamp_from_the_far_future_does_not_stop_the_clock(stamp: int) -> None:
    siege = Siege(Random("stamps"))
    network, node = siege.network, siege.node
    network.hand(node, Opened(77))
    hello = {"version": 1, "role": "client", "id": "evil", "challenge": b"", "incarnation": "1"}
    body = msgspec.msgpack.encode({**hello, "stamp": stamp})
    network.hand(node, Received(77, [(FrameKind.HELLO, body)]))
    assert siege.cluster.brokers["B"].endpoint.clock < 100
    siege.check_peace()


def test_a_connection_that_says_nothing_is_closed() -> None:
    siege = Siege(Random("silence"))
    for connection in range(50):
        siege.network.hand(siege.node, Opened(1000 + connection))
    siege.network.run_until(siege.network.now + 5.0)
    siege.check_end()


def test_bytes_that_are_no_frames_end_one_connection_only() -> None:
    siege = Siege(Random("noise"))
    siege.network.hand(siege.node, Opened(1000))
    siege.network.hand(siege.node, Malformed(1000, "TOO_LARGE", "a frame of 4294967295 bytes"))
    siege.check_end()
