"""Decides which lines of a log are good, and what a host's clock must be corrected by."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINE_MAX_BYTES = 1 << 20
LANES = ("texts", "integers", "floats", "dates", "flags")
NUMBER, TEXT, WHOLE, TABLE, LIST = (int, float), (str,), (int,), (dict,), (list,)
COMMON: dict[str, tuple[type, ...]] = {"t": NUMBER, "host": TEXT, "run": TEXT, "proc": TEXT, "kind": TEXT}
REQUIRED: dict[str, dict[str, tuple[type, ...]]] = {
    "publish": {"id": TEXT, "client": TEXT, "time": NUMBER},
    "deliver": {"id": TEXT, "client": TEXT, "hops": WHOLE},
    "subscribe": {"id": TEXT, "client": TEXT, "text": TEXT, "filter": LIST},
    "unsubscribe": {"id": TEXT, "client": TEXT},
    "connected": {"broker": TEXT},
    "disconnected": {"reason": TEXT},
}
OPTIONAL: dict[str, dict[str, tuple[type, ...]]] = {
    "publish": {"ack_s": NUMBER, "class": TEXT, **dict.fromkeys(LANES, TABLE)},
    "deliver": {"time": NUMBER, "latency_s": NUMBER, "subscriptions": WHOLE, "to": LIST},
    "subscribe": {"ack_s": NUMBER},
}
NOTHING: dict[str, Any] = {}


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            if len(line) > LINE_MAX_BYTES:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def has(line: dict[str, Any], fields: dict[str, tuple[type, ...]], *, required: bool) -> bool:
    for name, types in fields.items():
        value = line.get(name)
        if value is None and (required or name in line):
            return False
        if value is not None and (not isinstance(value, types) or value is True or value is False):
            return False
    return True


def is_good(line: dict[str, Any]) -> bool:
    if line.get("v") != 1 or line["v"] is True or not has(line, COMMON, required=True):
        return False
    kind = line["kind"]
    return has(line, REQUIRED.get(kind, NOTHING), required=True) and has(
        line, OPTIONAL.get(kind, NOTHING), required=False
    )


class Clock:
    """One host's clock, by its measurements."""

    def __init__(self, measured: list[tuple[float, float, float]]) -> None:
        measured.sort()
        self.times = [each[0] for each in measured]
        self.offsets = [each[1] for each in measured]
        self.errors = [each[2] for each in measured]

    def at(self, t: float) -> tuple[float, float | None]:
        """Offset and error at a time of its own; no bound of the error when it was never measured."""
        times = self.times
        right = bisect_right(times, t)
        if right == 0:
            return (self.offsets[0], self.errors[0]) if times else (0.0, None)
        if right == len(times):
            return self.offsets[-1], self.errors[-1]
        left = right - 1
        share = (t - times[left]) / (times[right] - times[left])
        return (
            self.offsets[left] + share * (self.offsets[right] - self.offsets[left]),
            max(self.errors[left], self.errors[right]),
        )

    def corrected(self, t: float) -> float:
        return t - self.at(t)[0]
