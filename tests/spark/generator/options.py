"""Decides what a generated run is made of: sizes, clocks and what is planted in it; generates nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

REASONS: Final = (
    "not JSON",
    "not UTF-8",
    "unknown version",
    "missing field",
    "wrong type",
    "gigantic",
    "truncated",
)
SEVERAL_CLOCKS_S: Final = 1e-3  # beyond the clocks' own errors, so that rounding decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A run. Same options, same files.

    Whether a threshold was passed never depends on a clock's error: no publication is made, and nothing
    arrives, within `margin_s` of one.
    """

    seed: int = 0
    name: str = "generated"
    began: float = 1_795_000_000.0  # by the controller's clock, which is the true one

    # Sizes
    hosts: int = 3
    brokers: int = 4
    publishers: int = 2
    subscribers: int = 4
    subscriptions_each: int = 2
    shared_filters: float = 0.25  # share of subscriptions that ask for what another client asks for
    publications: int = 200
    log_events: int | None = None  # instead of `publications`: so many lines in all logs, within 2 %
    rate_per_s: float = 20.0  # of all publishers together
    classes: int = 2
    attributes: int = 6
    contents: int = 60  # different ones; each publication has a serial number of its own besides
    log_every: int = 1
    names_subscriptions: bool = True  # deliver lines have `to`
    compressed: bool = False  # every second log as .gz

    # Clocks
    skew_s: float = 0.05
    drift: float = 2e-5
    clock_error_s: float = 5e-4
    clock_every_s: float = 10.0

    # Thresholds that the truth is for
    settle_s: float = 1.0
    late_s: float = 1.0

    # Planted, each so often
    losses: int = 0
    duplicates: int = 0
    reorderings: int = 0
    unexpected: int = 0  # deliveries whose content the subscription does not match
    strangers: int = 0  # deliveries of publications of which no other log knows
    detections: int = 0
    unjudged: int = 0  # subscriptions with an operator that a program registered
    starting: int = 0  # subscriptions that begin in mid-run
    ending: int = 0  # subscriptions that are withdrawn in mid-run
    removed: int = 0  # subscribers that are stopped in mid-run
    killed: int = 0  # subscribers that are killed in mid-run: the log ends in mid-line
    pauses: int = 0  # of subscribers, by SIGSTOP: late deliveries
    cuts: int = 0  # of links
    broker_restarts: int = 0  # by KILL and RESTART
    fault_s: float = 2.5  # at most; shorter where faults would meet
    missing_hosts: int = 0  # of which nothing came home
    foreign_lines: int = 0  # good lines of kinds and with fields that nobody knows
    bad_lines: tuple[str, ...] = ()  # reasons of quarantine, one line each
    gigantic_bytes: int = 2_000_000

    keeps_rows: bool = True  # False: the truth has counts only, for large runs

    def __post_init__(self) -> None:
        unknown = set(self.bad_lines) - set(REASONS)
        assert not unknown, f"no reasons: {unknown}"
        assert self.missing_hosts <= self.hosts
        assert self.brokers > 0 or not (self.publishers or self.subscribers)
        assert self.names_subscriptions or not (self.starting or self.ending or self.unjudged), (
            "without `to` a delivery is for every subscription of the client that matches, at any time"
        )

    @property
    def margin_s(self) -> float:
        return 2 * self.clock_error_s + SEVERAL_CLOCKS_S

    @property
    def run(self) -> str:
        return f"20261118-{self.seed % 1_000_000:06d}-{self.name}"


def everything(**changes: Any) -> Options:
    """A run of moderate size in which everything is planted."""
    return replace(
        Options(
            seed=7,
            name="everything",
            hosts=4,
            brokers=6,
            publishers=4,
            subscribers=8,
            subscriptions_each=3,
            publications=3000,
            rate_per_s=60.0,
            classes=3,
            losses=12,
            duplicates=9,
            reorderings=8,
            unexpected=7,
            strangers=5,
            detections=6,
            unjudged=2,
            starting=2,
            ending=2,
            removed=1,
            killed=1,
            pauses=2,
            cuts=2,
            broker_restarts=1,
            foreign_lines=4,
            bad_lines=REASONS * 2,
        ),
        **changes,
    )


def large(log_events: int, **changes: Any) -> Options:
    """A run for benchmarks: many lines, a little of everything, a truth of counts only."""
    planted = max(1, log_events // 20_000)
    return replace(
        Options(
            seed=11,
            name="large",
            hosts=8,
            brokers=16,
            publishers=12,
            subscribers=60,
            subscriptions_each=2,
            log_events=log_events,
            rate_per_s=max(50.0, log_events / 3000),
            classes=16,
            contents=320,
            losses=planted,
            duplicates=planted,
            reorderings=planted,
            unexpected=planted,
            starting=4,
            ending=4,
            removed=2,
            killed=1,
            pauses=3,
            cuts=3,
            broker_restarts=1,
            bad_lines=REASONS,
            keeps_rows=False,
        ),
        **changes,
    )
