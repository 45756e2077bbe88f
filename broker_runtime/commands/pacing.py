"""Decides how a schedule is kept: every message at its time from the start, late ones at once, no drift."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from broker_runtime.client import Client
from broker_runtime.workloads.schedule import until

T = TypeVar("T")


async def keep(client: Client, schedule: Iterable[tuple[float, T]], publish: Callable[[T], object]) -> int:
    """Call `publish` at every time of the schedule, with room to publish; how often."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    done = 0
    for at, what in schedule:
        delay = started + at - loop.time()
        if delay > 0 or done % 100 == 0:
            await asyncio.sleep(max(0.0, delay))
        await client.drain()
        publish(what)
        done += 1
    await client.flush()
    return done


def limited(times: Iterable[float], count: int | None, duration_s: float | None) -> Iterable[float]:
    """The times up to a number or a moment, whichever comes first."""
    if duration_s is not None:
        times = until(times, duration_s)
    return islice(times, count)
