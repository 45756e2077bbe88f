"""Decides how lines of stdin come: one by one, from a thread that nothing waits for.

A read cannot be called off, and SIGTERM must not have to wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

T = TypeVar("T")


async def lines() -> AsyncIterator[bytes]:
    """Every line, until the end."""
    if sys.stdin is None:  # it was closed before we started
        return
    # Not sys.stdin: the interpreter takes its lock when it ends, while the thread may still be reading.
    # Nor is this one ever closed, for the same reason.
    pipe = open(0, "rb", closefd=False)  # noqa: SIM115, ASYNC230 — it is open already
    async for line in read_by(lambda: pipe.readline() or None):
        yield line


async def read_by(read: Callable[[], T | None]) -> AsyncIterator[T]:
    """What a function that waits reads, call by call, until it reads nothing or cannot."""
    loop = asyncio.get_running_loop()
    wanted = threading.Semaphore(0)
    pieces: asyncio.Queue[T | None] = asyncio.Queue()

    def work() -> None:
        while wanted.acquire():
            try:
                piece = read()
            except (EOFError, OSError, ValueError):
                piece = None
            with contextlib.suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

    threading.Thread(target=work, name="lines", daemon=True).start()
    wanted.release()
    while (piece := await pieces.get()) is not None:
        yield piece
        wanted.release()
