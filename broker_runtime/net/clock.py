"""Decides what time it is: seconds since the epoch that never run backwards while the process lives."""

from __future__ import annotations

import time
from typing import Final

_OFFSET: Final = time.time() - time.monotonic()


def now() -> float:
    return _OFFSET + time.monotonic()
