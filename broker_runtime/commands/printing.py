"""The one file of the runtime that prints: results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping

from broker_runtime.commands.exits import Exit, Refusal


def prepare() -> None:
    """Have characters that the terminal does not know written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def result(data: Mapping[str, object], text: str, *, as_json: bool = False) -> None:
    """Print what was asked for, for a reader or for a program; flushed, so that a pipe sees it at once.

    Refusal when it cannot be written; BrokenPipeError when whoever read it has gone.
    """
    line = json.dumps(data, ensure_ascii=False, default=str) if as_json else text
    if sys.stdout is None:  # it was closed before we started
        raise Refusal("cannot write: stdout is closed", Exit.FAILED)
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError as error:
        # It must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise Refusal(f"cannot write: {error.strerror}", Exit.FAILED) from None


def note(text: str) -> None:
    """Say something on stderr, if anybody can be told."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
