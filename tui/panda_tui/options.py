"""What the console is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    runs: Path = Path("runs")
    run: str = ""  # its id or a part of it; empty: none yet
    broker: str = ""  # the address of a broker to begin at, with or without a run
    token: str = field(default="", repr=False)
    theme: str = "textual-dark"
