"""`python -m panda_tui`: what `panda console` becomes. Its arguments have been checked there."""

from __future__ import annotations

import argparse
from pathlib import Path

from broker_runtime.client import find_token
from panda_tui.options import Options


def main() -> None:
    parser = argparse.ArgumentParser(prog="panda console")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--run", default="")
    parser.add_argument("--broker", default="")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--light", action="store_true")
    found = parser.parse_args()
    from panda_tui.app import DARK, LIGHT, ConsoleApp

    theme = LIGHT if found.light else DARK
    token = find_token(file=found.token_file)
    ConsoleApp(Options(found.runs, found.run, found.broker, token, theme)).run()


if __name__ == "__main__":
    main()
