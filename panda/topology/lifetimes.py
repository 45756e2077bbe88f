"""Decides from when to when the processes of a topology are there; never judges it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from panda.topology.model import Action, Process, Topology


def removals(topology: Topology) -> dict[str, float]:
    """When processes are removed for good."""
    found: dict[str, float] = {}
    for step in topology.steps:
        if step.action is Action.REMOVE and step.for_s is None:
            found.setdefault(step.process, step.at_s)
    return found


def overlap(one: Process, other: Process, removed: Mapping[str, float]) -> bool:
    """Whether there is a time at which both are there."""
    start = max(one.at_s, other.at_s)
    return start < min(removed.get(one.id, math.inf), removed.get(other.id, math.inf))
