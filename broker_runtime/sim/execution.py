"""Decides what one seed comes to: its options, its program, its history, and what the checkers say."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from random import Random

from broker_runtime.sim.checkers import check
from broker_runtime.sim.cluster import Cluster
from broker_runtime.sim.deliveries import owed_deliveries
from broker_runtime.sim.history import History
from broker_runtime.sim.network import Trace
from broker_runtime.sim.options import Options, drawn
from broker_runtime.sim.program import Program


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    problems: list[str]
    events: int
    published: int
    delivered: int
    owed: int  # deliveries that the oracle insisted on
    virtual_s: float


def execute(seed: int, options: Options | None = None, trace: Trace | None = None) -> Outcome:
    """Run one seed and check it. The core must never raise; when it does, that is the problem."""
    options = options or drawn(seed)
    random = Random(f"program {seed}")
    cluster = Cluster(options, random, trace=trace)
    try:
        Program(cluster, options, random).run()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        cluster.history.problems.append(
            f"handle raised: {type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        )
        if trace is not None:
            trace("".join(traceback.format_exception(error)))
    return outcome(seed, cluster, check(cluster.history))


def outcome(seed: int, cluster: Cluster, problems: list[str]) -> Outcome:
    history: History = cluster.history
    published = sum(call.kind == "publish" for call in history.calls)
    owed = sum(len(calls) for each in owed_deliveries(history).values() for calls in each.values())
    network = cluster.network
    return Outcome(seed, problems, network.events, published, len(history.arrivals), owed, network.now)
