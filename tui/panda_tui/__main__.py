"""`python -m panda_tui`: what `panda console` becomes. Its arguments have been checked there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from broker_runtime.client import find_token
from panda_tui.options import Options

REFUSED = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="panda console")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--run", default="")
    parser.add_argument("--broker", default="")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--web", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    found = parser.parse_args()
    if found.web:
        return _serve(found)
    from panda_tui.app import DARK, LIGHT, ConsoleApp

    theme = LIGHT if found.light else DARK
    token = find_token(file=found.token_file)
    app = ConsoleApp(Options(found.runs, found.run, found.broker, token, theme))
    app.run()
    return app.return_code or 0


def _serve(found: argparse.Namespace) -> int:
    from panda_tui.web import ConsoleServer, listen

    words = ["--runs", str(found.runs), *(["--light"] if found.light else [])]
    for name, value in (("--run", found.run), ("--broker", found.broker), ("--token-file", found.token_file)):
        words += [name, str(value)] if value else []
    try:
        listening = listen(found.port)
    except OSError as error:
        print(f"panda: port {found.port}: {error.strerror}", file=sys.stderr)
        return REFUSED
    server = ConsoleServer(words, listening)
    print(server.address, flush=True)
    print("one browser can open it, once; ^C ends it", file=sys.stderr, flush=True)
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
