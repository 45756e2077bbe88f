"""Decides whether the checkers have teeth: a planted bug that no seed finds is a hole in the simulator."""

from __future__ import annotations

import time
from collections.abc import Iterable

from broker_runtime.sim.execution import execute
from broker_runtime.sim.mutants import MUTANTS, Planting


def hunt(plant: Planting, seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed that finds the planted bug, and what it says."""
    with plant():
        for seed in seeds:
            problems = execute(seed).problems
            if problems:
                return seed, problems[0]
    return None


def hunt_all(seeds_max: int) -> int:
    began = time.monotonic()
    escaped = 0
    width = max(len(plant.__name__) for plant in MUTANTS)
    for plant in MUTANTS:
        found = hunt(plant, range(seeds_max))
        name = plant.__name__.replace("_", " ")
        if found is None:
            escaped += 1
            print(f"{name:{width}}  not found in {seeds_max} seeds", flush=True)
        else:
            print(f"{name:{width}}  seed {found[0]:4}  {found[1][:110]}", flush=True)
    print(f"{len(MUTANTS) - escaped} of {len(MUTANTS)} found, {time.monotonic() - began:.0f} s")
    return 1 if escaped else 0
