"""Makes one large run by hand: python -m tests.spark.generator RUNS --events 1000000."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.spark.generator import everything, generate, large


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.generator")
    parser.add_argument("runs", type=Path, help="folder in which the run's folder is made")
    parser.add_argument("--events", type=int, help="lines in all logs; without: a small run with everything")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    began = time.perf_counter()
    options = everything(seed=said.seed) if said.events is None else large(said.events, seed=said.seed)
    truth = generate(options, said.runs)
    truth.write(Path(truth.folder).with_suffix(".truth.json"))
    took_s = time.perf_counter() - began
    sys.stdout.write(f"{truth.folder}: {truth.log_lines} lines in {took_s:.1f} s, {dict(truth.counts())}\n")


if __name__ == "__main__":
    main()
