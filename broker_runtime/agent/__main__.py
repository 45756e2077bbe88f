"""`python3 -m broker_runtime.agent relay --root DIR --run RUN`: see docs/agent-protocol.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from broker_runtime.agent.folder import Folder


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m broker_runtime.agent", description=__doc__)
    words = parser.add_subparsers(dest="word", required=True)
    relay = words.add_parser("relay", help="connect stdin and stdout with the agent of a run")
    supervise = words.add_parser("supervise", help="be the agent of a run; the relay starts it")
    for word in (relay, supervise):
        word.add_argument("--root", required=True, help="the folder of all runs and bundles on this host")
        word.add_argument("--run", required=True, help="the name of the run")
    relay.add_argument("--no-start", action="store_true", help="fail if there is no agent")
    supervise.add_argument("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)
    nursery = words.add_parser("nursery", help="be the warm parent of an agent; the agent starts it")
    nursery.add_argument("--fd", type=int, required=True)
    options = parser.parse_args(arguments)
    if options.word == "nursery":
        from broker_runtime.agent import nursery as warm

        return warm.main(options.fd)
    try:
        folder = Folder(Path(options.root).expanduser().absolute(), options.run)
    except ValueError as error:
        parser.error(str(error))
    if options.word == "relay":
        from broker_runtime.agent.relay import relay as connect

        return connect(folder, start=not options.no_start)
    from broker_runtime.agent.supervisor import supervise as live

    return live(folder, options.ready_fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
