"""The plain program's command line; see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.spark.plain import LATE_S, SETTLE_S, analyze, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.plain")
    parser.add_argument("folders", nargs="+", type=Path, metavar="RUNFOLDER")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--late", type=float, default=LATE_S)
    parser.add_argument("--settle", type=float, default=SETTLE_S)
    said = parser.parse_args()
    write(analyze(said.folders, said.late, said.settle), said.out)


if __name__ == "__main__":
    main()
