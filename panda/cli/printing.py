"""The one file that prints: results go to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON, one document per line.")]


def result(data: Mapping[str, object], text: str, *, as_json: bool = False) -> None:
    """Print what was asked for, for a reader or for a program.

    Flushed at once, so that a pipe sees results as they come and a closed pipe is noticed here.
    """
    print(json.dumps(data, ensure_ascii=False) if as_json else text, flush=True)


def note(text: str) -> None:
    """Say something about the work: progress, a hint, a warning."""
    print(text, file=sys.stderr, flush=True)


def problem(text: str) -> None:
    """Say what went wrong, in one line."""
    note(f"panda: {text}")
