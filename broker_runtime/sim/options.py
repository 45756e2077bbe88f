"""Decides what kind of world a seed lives in: every choice is a named probability, size or time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from broker_runtime.link.session import LinkSettings
from broker_runtime.routing.forwarding import Covering


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One world. The defaults are a peaceful one; `drawn` makes the others."""

    # Who is there
    brokers: int = 3
    shape: str = "chain"  # chain, star, tree
    clients: int = 3
    covering: Covering = Covering.ACTIVE
    scan_engine: bool = True  # the oracle of the matching room instead of its default
    monitors: bool = False
    status_every_s: float = 3.0
    dialled_from_both_ends: bool = False
    token: str = ""
    log_every: int = 0

    # Bounds and times of the links
    window_records: int = 64
    queue_length_max: int = 64
    frame_bytes: int = 4096
    heartbeat_s: float = 1.0
    dead_after_s: float = 4.0
    session_expiry_s: float = 15.0

    # How long, and how much
    rounds: int = 2
    actions: int = 30
    chaos_s: float = 6.0
    burst_max: int = 3

    # The network: per frame, per dial
    delay_s: float = 0.005
    delay_spread: float = 1.0  # slowest link over fastest
    jitter: float = 0.5
    frames_grouped: float = 0.5
    frame_lost: float = 0.0
    frame_repeated: float = 0.0
    connection_cut: float = 0.0
    cut_silently: float = 0.3
    dial_failed: float = 0.0

    # Weights of what happens among the actions
    weight_outage: float = 0.0
    weight_pause: float = 0.0
    weight_control_pause: float = 0.0
    weight_memory: float = 0.0
    weight_churn: float = 0.0
    weight_hold: float = 0.0
    weight_restart: float = 0.0
    weight_cycle: float = 0.0
    outage_beyond_expiry: float = 0.0

    # Clients
    slow_block: float = 1.0  # weights of the three policies
    slow_drop: float = 0.0
    slow_disconnect: float = 0.0

    @property
    def link(self) -> LinkSettings:
        return LinkSettings(
            window_records=self.window_records,
            frame_bytes=self.frame_bytes,
            queue_length_max=self.queue_length_max,
            heartbeat_s=self.heartbeat_s,
            dead_after_s=self.dead_after_s,
            handshake_timeout_s=2.0,
            session_expiry_s=self.session_expiry_s,
            dial_backoff_max_s=1.0,
        )

    @property
    def calm_within_s(self) -> float:
        """A healed network that is not quiet after so long is taken to be stuck."""
        return 60.0 + 3 * (self.session_expiry_s + self.dead_after_s)


def drawn(seed: int) -> Options:
    """The world of this seed."""
    random = Random(f"options {seed}")
    tiny = random.random() < 0.4
    faulty = random.random() < 0.85
    fault = random.choice((0.0, 0.0, 0.01, 0.03, 0.08)) if faulty else 0.0
    brokers = random.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 8))

    def sometimes(probability: float, value: float) -> float:
        return value if random.random() < probability else 0.0

    return Options(
        brokers=brokers,
        shape=random.choice(("chain", "star", "tree", "tree")),
        clients=random.randint(2, 6),
        covering=random.choice((Covering.OFF, Covering.LAZY, Covering.ACTIVE, Covering.ACTIVE)),
        scan_engine=random.random() < 0.6,
        monitors=random.random() < 0.25,
        status_every_s=30.0 if tiny else 3.0,  # with a window of one, statuses alone can fill a slow link
        dialled_from_both_ends=random.random() < 0.3,
        token="open sesame" if random.random() < 0.2 else "",
        log_every=random.choice((0, 0, 0, 1, 3)),
        window_records=random.choice((1, 2, 3, 5)) if tiny else 64,
        queue_length_max=random.choice((1, 2, 3, 6)) if tiny else 64,
        frame_bytes=random.choice((64, 200, 4096)),
        session_expiry_s=random.choice((5.0, 15.0, 15.0)),
        rounds=random.randint(2, 3),
        actions=random.randint(12, 40),
        chaos_s=random.choice((0.3, 2.0, 5.0, 8.0)),
        burst_max=random.choice((1, 3, 12)) if tiny else 3,
        delay_s=random.choice((0.001, 0.005, 0.02)),
        delay_spread=random.choice((1.0, 4.0, 10.0)),
        jitter=random.choice((0.0, 0.5, 2.0)),
        frames_grouped=random.choice((0.0, 0.5, 1.0)),
        frame_lost=fault * random.random(),
        frame_repeated=sometimes(0.5, fault * random.random()) * 2,
        connection_cut=sometimes(0.7, fault * random.random()),
        cut_silently=random.choice((0.0, 0.2, 0.6)),
        dial_failed=sometimes(0.3, 0.3) if faulty else 0.0,
        weight_outage=sometimes(0.4, 1.0) if faulty else 0.0,
        weight_pause=sometimes(0.4, 1.0) if faulty else 0.0,
        weight_control_pause=sometimes(0.5, 1.0),
        weight_memory=sometimes(0.15, 0.5),
        weight_churn=sometimes(0.5, 1.5),
        weight_hold=sometimes(0.9 if tiny else 0.2, 2.0),
        weight_restart=sometimes(0.1, 0.5) if faulty else 0.0,
        weight_cycle=sometimes(0.2, 1.0) if brokers > 2 else 0.0,
        outage_beyond_expiry=random.choice((0.0, 0.0, 0.3)),
        slow_block=1.0,
        slow_drop=sometimes(0.5, 2.0),
        slow_disconnect=sometimes(0.3, 1.0),
    )
