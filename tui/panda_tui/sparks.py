"""Decides how figures over time become a line of little bars."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from panda_tui.model import Load

BARS: Final = "▁▂▃▄▅▆▇█"
KEPT: Final = 240
NOTHING: Final = " "


def spark(values: Sequence[float | None], width: int) -> str:
    """The last values, one column each, from 0 to the highest of them; what is not known stays empty."""
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = max((value for value in shown if value is not None), default=0.0)
    letters = "".join(_bar(value, highest) for value in shown)
    return letters.rjust(width)


def _bar(value: float | None, highest: float) -> str:
    if value is None:
        return NOTHING
    if highest <= 0:
        return BARS[0]
    return BARS[min(len(BARS) - 1, max(0, round(value / highest * (len(BARS) - 1))))]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    value: Callable[[Load], float]
    text: Callable[[float], str]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


METRICS: Final = (
    Metric("in/s", lambda load: load.rate_in, _number),
    Metric("out/s", lambda load: load.rate_out, _number),
    Metric("queue", lambda load: load.queue_length, _number),
    Metric("queueing ms", lambda load: load.queueing_ms, lambda value: f"{value:.2f}"),
    Metric("matching µs", lambda load: load.matching_us, lambda value: f"{value:.1f}"),
    Metric("memory MB", lambda load: load.memory_bytes / (1 << 20), _number),
)


@dataclass
class History:
    """What one broker measured, one entry for each time that it told."""

    entries: deque[Load | None] = field(default_factory=lambda: deque(maxlen=KEPT))
    _at: float | None = None

    def take(self, load: Load, heard_at: float | None) -> bool:
        """Whether it is news."""
        if heard_at is None or heard_at == self._at:
            return False
        self._at = heard_at
        self.entries.append(load)
        return True

    def values(self, metric: Metric) -> list[float | None]:
        if metric.name == "queueing ms":
            return queueing_of(list(self.entries))
        return [metric.value(load) if load is not None else None for load in self.entries]


def queueing_of(loads: Sequence[Load | None]) -> list[float | None]:
    """How long publications waited between one entry and the next, in ms.

    Brokers tell the mean since they began.
    """
    found: list[float | None] = []
    before: Load | None = None
    for load in loads:
        if load is None:
            found.append(None)
        elif before is None or load.publications < before.publications:
            found.append(load.queueing_ms)
        else:
            count = load.publications - before.publications
            waited = load.queueing_ms * load.publications - before.queueing_ms * before.publications
            found.append(max(0.0, waited / count) if count else 0.0)
        before = load
    return found
