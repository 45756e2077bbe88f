"""Decides how a program holds on to what it subscribed and advertised: iterate, get, handle, withdraw."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from broker_runtime.client.errors import ClientError
from broker_runtime.client_core import Notification
from broker_runtime.language.messages import Advertisement, Subscription

if TYPE_CHECKING:
    from broker_runtime.client.connection import Client

Handler = Callable[[Notification], Awaitable[None] | None]


class AdvertisementHandle:
    """An advertisement that stands until `unadvertise` or the end of the client."""

    def __init__(self, client: Client, id_: str, advertisement: Advertisement) -> None:
        self._client = client
        self.id = id_
        self.advertisement = advertisement

    def __repr__(self) -> str:
        return f"<advertisement {self.id} {self.advertisement!r}>"

    async def unadvertise(self) -> None:
        """Completes when the first broker has taken it."""
        await self._client.unadvertise(self.id)


class SubscriptionHandle:
    """Notifications of one subscription, in order: iterate over it, or `get` one, or give it a handler."""

    def __init__(self, client: Client, subscription: Subscription, handler: Handler | None) -> None:
        self._client = client
        self.id = ""
        self.subscription = subscription
        self._queue: deque[Notification] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._counted = True  # whether the queue counts towards the client's bound
        self._ended = False
        self._error: ClientError | None = None
        self._worker = asyncio.create_task(self._work(handler)) if handler else None

    def __repr__(self) -> str:
        return f"<subscription {self.id} {self.subscription!r}, {len(self._queue)} waiting>"

    @property
    def waiting(self) -> int:
        """How many notifications have come and are not taken yet."""
        return len(self._queue)

    def __aiter__(self) -> SubscriptionHandle:
        return self

    async def __anext__(self) -> Notification:
        """The next notification; the iteration ends when the subscription does."""
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting)
        notification = self._queue.popleft()
        if self._counted:
            self._client.inbox.taken()
        return notification

    async def get(self, timeout_s: float | None = None) -> Notification:
        """The next notification. TimeoutError when none comes in time; EOFError after the end."""
        async with asyncio.timeout(timeout_s):
            try:
                return await anext(self)
            except StopAsyncIteration:
                raise EOFError(f"subscription {self.id} has ended") from None

    async def unsubscribe(self) -> None:
        """Completes when no broker holds the subscription; what came before can still be read."""
        if not self._ended:
            await self._client.unsubscribe(self)

    # For the client

    def push(self, notification: Notification) -> None:
        self._queue.append(notification)
        self._client.inbox.queued()
        self._wake()

    def uncount(self) -> int:
        """Take the queue out of the client's bound, so that a full one cannot hold up its own end."""
        counted, self._counted = self._counted, False
        return len(self._queue) if counted else 0

    def end(self, error: ClientError | None = None) -> None:
        self._ended = True
        self._error = self._error or error
        self._wake()

    async def stop_handler(self) -> None:
        if self._worker is not None and self._worker is not asyncio.current_task():
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set_result(None)
            self._waiting = None

    async def _work(self, handler: Handler) -> None:
        """Hand over one notification at a time, so that a slow handler pushes back like a slow reader."""
        try:
            async for notification in self:
                try:
                    answer = handler(notification)
                    if inspect.isawaitable(answer):
                        await answer
                except Exception as error:  # the program's own; the next notification may fare better
                    about = {"message": f"a handler of subscription {self.id} failed", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(about)
        except ClientError:
            pass  # every call on the client raises it too
