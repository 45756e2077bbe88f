"""Decides how many notifications are shown: all, unless more come than anybody could read."""

from __future__ import annotations

from collections import deque
from typing import Final

SHOWN_AT_ONCE_MAX: Final = 200


class Arrivals:
    """Lines that wait to be shown; the oldest give way, and are counted."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque(maxlen=SHOWN_AT_ONCE_MAX)
        self._arrived = 0
        self.total = 0

    def add(self, line: str) -> None:
        self._waiting.append(line)
        self._arrived += 1
        self.total += 1

    def take(self) -> tuple[int, list[str]]:
        """How many are left out, and the rest."""
        lines = list(self._waiting)
        left_out = self._arrived - len(lines)
        self._waiting.clear()
        self._arrived = 0
        return left_out, lines
