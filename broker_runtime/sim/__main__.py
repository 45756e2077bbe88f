"""Decides how the simulator is called: run seeds, replay one, plant bugs, throw broken input."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from multiprocessing import Pool

from broker_runtime.sim.execution import Outcome, execute
from broker_runtime.sim.options import drawn
from broker_runtime.sim.shrinking import overridden, shrink, written

CHUNK = 20
PROGRESS_EVERY_S = 5.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m broker_runtime.sim", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="simulate many seeds and check each")
    run.add_argument("--seeds", type=int, default=1000, help="how many")
    run.add_argument("--start", type=int, default=0, help="the first seed")
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    replay = commands.add_parser("replay", help="simulate one seed again")
    replay.add_argument("seed", type=int)
    replay.add_argument("--trace", action="store_true", help="print every input, call and log line")
    replay.add_argument("--with", dest="settings", nargs="*", default=[], metavar="OPTION=VALUE")
    shrink = commands.add_parser("shrink", help="find what a failing seed does not need")
    shrink.add_argument("seed", type=int)
    mutants = commands.add_parser("mutants", help="plant known bugs and see which seed finds each")
    mutants.add_argument("--seeds", type=int, default=2000, help="give up on a bug after so many")
    fuzz = commands.add_parser("fuzz", help="throw broken input at parsers, brokers and clients")
    fuzz.add_argument("--cases", type=int, default=20_000)
    fuzz.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.command == "run":
        return _run(given.start, given.seeds, given.jobs)
    if given.command == "replay":
        return _replay(given.seed, given.trace, given.settings)
    if given.command == "shrink":
        return _shrink(given.seed)
    if given.command == "mutants":
        from broker_runtime.sim.hunting import hunt_all

        return hunt_all(given.seeds)
    from broker_runtime.sim.fuzz import fuzz_all

    return fuzz_all(given.cases, given.seed)


def _run(start: int, count: int, jobs: int) -> int:
    began = told = time.monotonic()
    failed: list[Outcome] = []
    done = events = published = delivered = owed = 0
    for outcome in _outcomes(range(start, start + count), jobs):
        done += 1
        events += outcome.events
        published += outcome.published
        delivered += outcome.delivered
        owed += outcome.owed
        if outcome.problems:
            failed.append(outcome)
            print(f"seed {outcome.seed}: {outcome.problems[0]}", file=sys.stderr)
        if time.monotonic() - told > PROGRESS_EVERY_S:
            told = time.monotonic()
            print(f"{done} of {count} seeds, {len(failed)} failed", file=sys.stderr)
    seconds = time.monotonic() - began
    print(
        f"{done} seeds, {events} events, {published} published, {delivered} delivered ({owed} owed),"
        f" {len(failed)} failed, {seconds:.0f} s"
    )
    for outcome in sorted(failed, key=lambda each: each.seed):
        print(f"{outcome.problems[0]}\n  python -m broker_runtime.sim replay {outcome.seed} --trace")
    return 1 if failed else 0


def _outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs <= 1:
        yield from map(execute, seeds)
        return
    with Pool(jobs) as pool:
        yield from pool.imap_unordered(execute, seeds, chunksize=CHUNK)


def _shrink(seed: int) -> int:
    overrides = shrink(seed)
    if overrides is None:
        print(f"seed {seed} passes")
        return 0
    print(f"python -m broker_runtime.sim replay {seed} --trace --with {' '.join(written(overrides))}")
    return 1


def _replay(seed: int, traced: bool, settings: list[str]) -> int:
    options = overridden(drawn(seed), settings)
    print(options)
    outcome = execute(seed, options, print if traced else None)
    print(
        f"seed {seed}: {outcome.events} events in {outcome.virtual_s:.1f} s of virtual time,"
        f" {outcome.published} published, {outcome.delivered} delivered ({outcome.owed} owed)"
    )
    for problem in outcome.problems:
        print(problem)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
