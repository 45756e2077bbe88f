"""Decides how a process of Spark's is ended with everything that it started: asked first, then made to."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from panda.prepare.offspring import Identity, end, lives, members, offspring

GRACE_S = 8.0
_LOOK_EVERY_S = 0.05


def end_family(leader: Identity, grace_s: float = GRACE_S) -> None:
    """The leader of a session, its members, and all of their descendants.

    A second interrupt ends the waiting, never the ending.
    """
    known = {leader}
    try:
        known |= _family(leader)
        end(known, signal.SIGTERM)
        until = time.monotonic() + grace_s
        while any(map(lives, known)) and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)
            known |= _family(leader)
    finally:
        end(known | _family(leader))


def _family(leader: Identity) -> set[Identity]:
    if not lives(leader) and not members(leader.pid):
        return set()
    return offspring(leader.pid) | members(leader.pid)


@contextmanager
def interruptible() -> Iterator[None]:
    """Being told to end is an interrupt here, so that what was started is ended before we are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    kept = {each: signal.signal(each, interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)
