"""The one file of the runtime that prints: results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping


def result(data: Mapping[str, object], text: str, *, as_json: bool = False) -> None:
    """Print what was asked for, for a reader or for a program; flushed, so that a pipe sees it at once."""
    line = json.dumps(data, ensure_ascii=False, default=str) if as_json else text
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
