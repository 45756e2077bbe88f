"""Runs a benchmark by name, or all of them: `python -m benchmarks [name] [--quick] [--json FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def matching(argv: Sequence[str]) -> int:
    from benchmarks.matching import main

    return main(argv)


def broker(argv: Sequence[str]) -> int:
    from benchmarks.broker import main

    return main(argv)


def deploy(argv: Sequence[str]) -> int:
    from benchmarks.deploy import main

    return main(argv)


def spark(argv: Sequence[str]) -> int:
    from benchmarks.spark import main

    return main(argv)


def console(argv: Sequence[str]) -> int:
    from benchmarks.console import main

    return main(argv)


BENCHMARKS: dict[str, Callable[[Sequence[str]], int]] = {
    "matching": matching,
    "broker": broker,
    "deploy": deploy,
    "spark": spark,
    "console": console,
}


def main(argv: Sequence[str]) -> int:
    if argv and argv[0] in BENCHMARKS:
        return BENCHMARKS[argv[0]](argv[1:])
    if argv and not argv[0].startswith("-"):
        print(f"no benchmark {argv[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    return max(run(argv) for run in BENCHMARKS.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
