"""Decides which small runs property tests look at: a few brokers, tens of publications, anything planted."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.spark.generator.options import REASONS, Options

_few = st.integers(0, 2)
_one_or_none = st.integers(0, 1)

_sizes = st.builds(
    Options,
    seed=st.integers(0, 2**16),
    hosts=st.integers(1, 4),
    brokers=st.integers(1, 5),
    publishers=st.integers(0, 3),
    subscribers=st.integers(0, 5),
    subscriptions_each=st.integers(1, 3),
    shared_filters=st.sampled_from((0.0, 0.5)),
    publications=st.integers(0, 80),
    rate_per_s=st.sampled_from((3.0, 6.0, 20.0)),
    classes=st.integers(1, 3),
    attributes=st.integers(0, 8),
    contents=st.integers(1, 20),
    log_every=st.sampled_from((1, 1, 2, 3)),
    compressed=st.booleans(),
    skew_s=st.sampled_from((0.0, 0.05, 30.0)),
    drift=st.sampled_from((0.0, 2e-5, 1e-4)),
    clock_error_s=st.sampled_from((0.0, 5e-4, 5e-3)),
    losses=_few,
    duplicates=_few,
    reorderings=_few,
    unexpected=_few,
    strangers=_few,
    removed=_one_or_none,
    killed=_one_or_none,
    pauses=_one_or_none,
    cuts=_one_or_none,
    broker_restarts=_one_or_none,
    detections=_one_or_none,
    foreign_lines=_one_or_none,
    bad_lines=st.lists(st.sampled_from(REASONS), max_size=3).map(tuple),
)


@st.composite
def small_options(draw: st.DrawFn) -> Options:
    options = draw(_sizes)
    options = replace(options, missing_hosts=draw(st.sampled_from((0, 0, min(1, options.hosts - 1)))))
    if draw(st.booleans()):
        return replace(options, starting=draw(_few), ending=draw(_few), unjudged=draw(_few))
    return replace(options, names_subscriptions=draw(st.booleans()))
