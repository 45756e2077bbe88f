"""`python -m tests.soak [NAME …] [--count N] [--seed S] [--jobs J]`: exit code 1 if anything was wrong."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.soak import soak_controller, soak_gate, soak_hosts, soak_prepare, soak_scale, soak_schedule
from tests.soak.ground import Options

SOAKS: dict[str, Callable[[Options], list[str]]] = {
    "gate": soak_gate.soak,
    "schedule": soak_schedule.soak,
    "scale": soak_scale.soak,
    "controller": soak_controller.soak,
    "hosts": soak_hosts.soak,
    "prepare": soak_prepare.soak,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SOAKS)}; all of them")
    parser.add_argument("--count", type=int, default=0, help="how many runs, steps, brokers or hosts")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next ones count on")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at a time")
    parser.add_argument("--keep", type=Path, help="keep the folders of the runs here")
    told = parser.parse_args()
    unknown = [name for name in told.names if name not in SOAKS]
    if unknown:
        parser.error(f"no long run {', '.join(unknown)}; there are: {', '.join(SOAKS)}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="panda-soak-") as temporary:
        for name in told.names or SOAKS:
            folder = (told.keep or Path(temporary)) / name
            folder.mkdir(parents=True)
            begun = time.monotonic()
            print(f"{name}: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
            found = SOAKS[name](Options(told.count, told.seed, told.jobs, folder))
            for text in found:
                print(f"  WRONG {text}", flush=True)
            wrong += len(found)
            ended = "as it should be" if not found else f"{len(found)} wrong"
            print(f"{name}: {ended}, {time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
