"""Decides what the clock of each host shows at a time, and what measuring it finds."""

from __future__ import annotations

from random import Random

from tests.spark.generator.options import Options


class HostClock:
    """A clock that is wrong from the beginning and goes wrong evenly."""

    def __init__(self, options: Options, random: Random) -> None:
        self.began = options.began
        self.skew_s = random.uniform(-options.skew_s, options.skew_s)
        self.drift = random.uniform(-options.drift, options.drift)
        self._error_s = options.clock_error_s
        self._every_s = options.clock_every_s

    def shows(self, t: float) -> float:
        return t + self.skew_s + self.drift * (t - self.began)

    def measured(self, until: float, random: Random) -> list[tuple[float, float, float]]:
        """Times, offsets and errors; the first time is before all events, the last after them."""
        found = []
        at = self.began + 0.1
        while True:
            error_s = self._error_s * random.uniform(0.2, 1.0)
            offset_s = self.shows(at) - at + random.uniform(-error_s, error_s)
            found.append((at, offset_s, error_s))
            if at >= until:
                return found
            at = min(at + self._every_s * random.uniform(0.9, 1.1), until + 0.05)
