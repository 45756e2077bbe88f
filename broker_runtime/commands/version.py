"""`version`: which code this is."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from broker_runtime import VERSION
from broker_runtime.commands import printing
from broker_runtime.commands.exits import Exit, Refusal


def run(arguments: Sequence[str]) -> int:
    if list(arguments) not in ([], ["--json"]):
        if "--help" in arguments:
            printing.result({}, "usage: python -m broker_runtime version [--json]\n\nPrint the version.")
            return Exit.DONE
        raise Refusal(f"unexpected argument {arguments[0]!r}")
    versions = {"broker_runtime": VERSION, "python": platform.python_version()}
    text = "\n".join(f"{name} {number}" for name, number in versions.items())
    printing.result(versions, text, as_json=bool(arguments))
    return Exit.DONE
