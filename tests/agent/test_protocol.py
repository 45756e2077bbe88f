"""Frames arrive whole however the stream is divided, and what is no frame is refused."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.agent.protocol import (
    BANNER_BYTES_MAX,
    FRAME_BYTES_MAX,
    PREAMBLE,
    BadFrame,
    Code,
    FrameReader,
    PreambleReader,
    RequestRefused,
    answer,
    encode,
    refusal,
    result,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(st.text(), json_values, max_size=4)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@given(st.lists(messages, max_size=5), st.lists(st.integers(0, 10_000), max_size=10))
def test_messages_survive_any_division_of_the_stream(sent: list[dict[str, object]], cuts: list[int]) -> None:
    reader = FrameReader()
    data = b"".join(map(encode, sent))
    received = [message for piece in pieces(data, cuts) for message in reader.feed(piece)]
    assert received == sent


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_other_than_by_bad_frame(data: bytes) -> None:
    try:
        FrameReader().feed(data)
    except BadFrame:
        return


@pytest.mark.parametrize(
    "body", [b"[1]", b"7", b"{", b"\xff", b'{"a":NaN}', b'{"a":Infinity}', b"[" * 100_000, b""]
)
def test_a_frame_without_an_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadFrame):
        FrameReader().feed(len(body).to_bytes(4, "big") + body)


def test_a_frame_over_the_limit_is_refused_by_its_header() -> None:
    with pytest.raises(BadFrame, match="over the limit"):
        FrameReader().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))


@given(st.lists(st.integers(0, 10_000), max_size=5))
def test_what_a_login_script_prints_is_skipped_up_to_the_preamble(cuts: list[int]) -> None:
    reader = PreambleReader()
    data = b"Welcome to PANDA-AGENT 1\nnot yet\n" + PREAMBLE + b"frames"
    rest = b""
    found = False
    for piece in pieces(data, cuts):
        if found:
            rest += piece
        elif (after := reader.feed(piece)) is not None:
            rest, found = after, True
    assert rest == b"frames"


def test_a_stream_that_never_becomes_an_agent_is_given_up() -> None:
    reader = PreambleReader()
    assert reader.feed(b"x" * BANNER_BYTES_MAX) is None
    with pytest.raises(BadFrame, match="not that it is an agent"):
        reader.feed(b"x")


def test_a_refusal_comes_back_as_an_exception_with_its_code() -> None:
    assert result(answer(1, {"a": 1})) == {"a": 1}
    with pytest.raises(RequestRefused) as refused:
        result(refusal(1, Code.LOCKED, "Ann steers"))
    assert refused.value.code is Code.LOCKED
    assert refused.value.message == "Ann steers"
