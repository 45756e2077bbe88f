"""Decides where the shared token comes from: an argument, a file or the environment, never an option."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

TOKEN_VARIABLE: Final = "PANDA_TOKEN"  # noqa: S105 — the variable's name
TOKEN_BYTES_MAX: Final = 4096


def find_token(token: str = "", file: Path | str | None = None) -> str:
    """The token, or "" when there is none. ValueError when the file holds none; OSError when unreadable."""
    if token:
        return token
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "")
    with Path(file).open(encoding="utf-8") as opened:
        text = opened.read(TOKEN_BYTES_MAX + 1).strip()
    if not text or len(text) > TOKEN_BYTES_MAX or "\n" in text:
        raise ValueError(f"{file} must hold one token of 1 to {TOKEN_BYTES_MAX} bytes on one line")
    return text
