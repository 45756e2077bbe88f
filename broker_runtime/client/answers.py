"""Decides who is told when the broker answers: whoever awaits the message, or the next `flush`."""

from __future__ import annotations

import asyncio
from typing import Final

from broker_runtime.client.errors import ClientError, NotAllPublished

ERRORS_KEPT_MAX: Final = 100

Futures = dict[str, asyncio.Future[None]]


class Answers:
    """Messages without an answer yet, by id."""

    def __init__(self) -> None:
        self._acknowledgements: Futures = {}
        self._confirmations: Futures = {}
        self._withdrawn: dict[str, None] = {}  # unadvertisements that wait for their acknowledgement
        self._failures: list[ClientError] = []  # of publications that nobody awaits
        self._failure_count = 0

    async def acknowledgement(self, id_: str, *, of_withdrawal: bool = False) -> None:
        """Wait until the first broker has taken the message; raises why it did not."""
        if of_withdrawal:
            self._withdrawn[id_] = None
        await _answered(self._acknowledgements, id_)

    async def confirmation(self, id_: str) -> None:
        """Wait until an unsubscription has been carried out everywhere."""
        await _answered(self._confirmations, id_)

    def acknowledged(self, id_: str) -> None:
        self._withdrawn.pop(id_, None)
        settle(self._acknowledgements.get(id_), None)

    def confirmed(self, id_: str) -> None:
        settle(self._confirmations.get(id_), None)

    def refused(self, id_: str, error: ClientError) -> bool:
        """Whether somebody awaits the message, and now knows."""
        future = self._acknowledgements.get(id_)
        settle(future, error)
        return future is not None

    def session_replaced(self) -> None:
        """What was withdrawn from the old session is gone with it."""
        for id_ in self._withdrawn:
            settle(self._acknowledgements.get(id_), None)
        self._withdrawn.clear()

    def fail_all(self, error: ClientError) -> None:
        for futures in (self._acknowledgements, self._confirmations):
            for future in list(futures.values()):
                settle(future, error)

    def keep_failure(self, error: ClientError) -> None:
        self._failure_count += 1
        if len(self._failures) < ERRORS_KEPT_MAX:
            self._failures.append(error)

    def raise_failures(self) -> None:
        """Raise what publications met that nobody awaited, once."""
        if self._failures:
            failures, count = self._failures, self._failure_count
            self._failures, self._failure_count = [], 0
            raise NotAllPublished(failures, count)


async def _answered(futures: Futures, id_: str) -> None:
    future = futures[id_] = asyncio.get_running_loop().create_future()
    try:
        await future
    finally:
        futures.pop(id_, None)


def settle(future: asyncio.Future[None] | None, error: ClientError | None) -> None:
    """Complete a future that may be cancelled, done or not there."""
    if future is None or future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # somebody may have stopped waiting: that is no fault to report
