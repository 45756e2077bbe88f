"""Records: encoding and decoding are inverse, forwarding changes nothing but the hops."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.language import parse_subscription
from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.language.predicates import (
    CustomOperator,
    Op,
    Variable,
    predicate,
    register_operator,
    unregister_operator,
)
from broker_runtime.language.values import Type
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    HOPS_MAX,
    PREFIX,
    PREFIX_BYTES,
    Advertise,
    Confirm,
    Flag,
    LinkState,
    Notice,
    RecordRefused,
    Refuse,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    decode,
    decode_publication,
    encode,
    encode_publication,
    forwarded,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
numbers = st.one_of(st.integers(), st.integers(-(2**200), 2**200), st.floats())
dates = st.integers(0, 4_000_000_000_000_000).map(lambda us: EPOCH + timedelta(microseconds=us))
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.one_of(strings, numbers, st.booleans(), dates)
contents = st.dictionaries(names, values, max_size=6).map(lambda extra: {**extra, "class": "STOCK"})


def same(a, b):
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


def split(record):
    length, kind, flags, hops = PREFIX.unpack_from(record)
    assert length + 4 == len(record)
    return kind, flags, hops, record[PREFIX_BYTES:]


@given(contents, st.binary(max_size=40))
def test_a_publication_reads_as_it_was_written(content, payload):
    _, flags, hops, body = split(encode_publication("P:1", 7, 1.5, content, payload))
    head, carried = decode_publication(body, flags)
    assert (head.source, head.number, head.time, hops) == ("P:1", 7, 1.5, 0)
    assert carried == payload
    assert list(head.content) == list(content)
    assert all(same(head.content[name], value) for name, value in content.items())


@given(contents, st.binary(max_size=9), st.integers(0, HOPS_MAX))
def test_forwarding_changes_the_hops_alone(content, payload, hops):
    record = encode_publication("P:1", 7, 1.5, content, payload)
    kind, flags, _, body = split(record)
    passed_on = split(forwarded(body, flags, hops))
    assert passed_on == (kind, flags, min(hops + 1, HOPS_MAX), body)


operands = st.one_of(strings, st.integers(), st.floats(allow_nan=False), dates)
predicates = st.one_of(
    st.builds(predicate, names, st.sampled_from([Op.EQ, Op.NEQ, Op.LT, Op.GE]), operands),
    st.builds(predicate, names, st.just(Op.PRESENT), st.sampled_from(Type)),
    st.builds(predicate, names, st.sampled_from([Op.PREFIX, Op.CONTAINS]), strings),
    st.builds(predicate, names, st.just(Op.IN), st.lists(st.integers(), min_size=1, max_size=4)),
)
variables = st.builds(
    predicate,
    names,
    st.just(Op.EQ),
    st.builds(Variable, st.just("X"), st.one_of(st.integers(0, 9), st.just(timedelta(seconds=3)))),
)
the_class = predicate("class", Op.EQ, "STOCK")
messages = st.one_of(
    st.builds(
        lambda ps: Subscribe("S:1:1", Subscription([the_class, *ps])),
        st.lists(st.one_of(predicates, variables), max_size=5),
    ),
    st.builds(
        lambda ps: Advertise("P:1:1", Advertisement([the_class, *ps])), st.lists(predicates, max_size=5)
    ),
    st.sampled_from(
        [
            Unsubscribe("S:1:1"),
            Unadvertise("P:1:1"),
            Confirm("S:1:1"),
            Refuse("P:1:2", "CODE", "text"),
            Notice("DROPPED", "text", 4),
            LinkState("B1", (3, 4), {"B2": 5}),
        ]
    ),
)


@given(messages)
def test_every_message_reads_as_it_was_written(message):
    kind, _, _, body = split(encode(message))
    assert decode(kind, body) == message


@given(st.integers(0, 255), st.binary(max_size=120))
def test_hostile_records_end_in_a_typed_error(kind, body):
    for read in (lambda: decode(kind, body), lambda: decode_publication(body, kind)):
        with suppress(WireError):
            read()


@given(messages, st.data())
def test_mutated_records_end_in_a_message_or_a_typed_error(message, data):
    kind, _, _, body = split(encode(message))
    position = data.draw(st.integers(0, len(body) - 1))
    damaged = body[:position] + data.draw(st.binary(max_size=3)) + body[position + 1 :]
    with suppress(WireError):
        decode(kind, damaged)


def test_an_operator_unknown_to_the_receiver_refuses_the_message_not_the_connection():
    near = CustomOperator("near", lambda value, operand: value == operand)
    register_operator(near)
    try:
        wanted = parse_subscription("[class,eq,'X'],[at,near,'Y']")
        kind, _, _, body = split(encode(Subscribe("S:1:1", wanted)))
    finally:
        unregister_operator("near")
    with pytest.raises(RecordRefused) as refused:
        decode(kind, body)
    assert (refused.value.id, refused.value.code) == ("S:1:1", "UNKNOWN_OPERATOR")


def test_a_nested_value_is_not_content():
    record = encode_publication("P:1", 1, 0.0, {"class": "X", "list": [1]})  # type: ignore[dict-item]
    _, flags, _, body = split(record)
    for claimed in (flags, flags | Flag.EXTENDED):
        with pytest.raises(WireError):
            decode_publication(body, claimed)
