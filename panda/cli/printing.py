"""The one file that prints: results go to stdout, everything else to stderr."""

import contextlib
import io
import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON, one document per line.")]


class CannotWrite(Exception):
    """Results cannot be printed, and why."""


def prepare() -> None:
    """Have characters that the terminal does not know written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def result(data: Mapping[str, object], text: str, *, as_json: bool = False) -> None:
    """Print what was asked for, for a reader or for a program.

    Flushed at once, so that a pipe sees results as they come and a closed pipe is noticed here.
    """
    if sys.stdout is None:  # it was closed before we started
        raise CannotWrite("stdout is closed")
    try:
        print(json.dumps(data, ensure_ascii=False) if as_json else text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotWrite(error.strerror) from None


def at_terminal() -> bool:
    """Whether a person can be asked, and sees what is said."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 host`, `2 hosts`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def note(text: str) -> None:
    """Say something about the work: progress, a hint, a warning."""
    if sys.stderr is not None:  # else print would take stdout
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def problem(text: str) -> None:
    """Say what went wrong, in one line."""
    note(f"panda: {text}")
