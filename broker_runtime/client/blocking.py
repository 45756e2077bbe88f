"""Decides how a program without asyncio uses a client: the same verbs, each waiting for its answer.

The loop runs in a thread of its own. Calls may come from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from broker_runtime.client.connection import Client, Publication
from broker_runtime.client.control import BrokerInfo, Trace
from broker_runtime.client.handles import AdvertisementHandle, SubscriptionHandle
from broker_runtime.client.options import ClientOptions
from broker_runtime.client.tokens import find_token
from broker_runtime.client_core import Notification
from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.language.values import Value

T = TypeVar("T")


class BlockingSubscription:
    """Notifications of one subscription."""

    def __init__(self, client: BlockingClient, handle: SubscriptionHandle) -> None:
        self._client = client
        self._handle = handle
        self.id = handle.id

    def get(self, timeout_s: float | None = None) -> Notification:
        """The next notification. TimeoutError when none comes in time; EOFError after the end."""
        return self._client.wait_for(self._handle.get(timeout_s))

    def notifications(self, timeout_s: float | None = None) -> Iterator[Notification]:
        """Iterate until none comes for so long, or the subscription ends."""
        while True:
            try:
                yield self.get(timeout_s)
            except (TimeoutError, EOFError):
                return

    def __iter__(self) -> Iterator[Notification]:
        return self.notifications()

    def unsubscribe(self) -> None:
        self._client.wait_for(self._handle.unsubscribe())


class BlockingClient:
    """`with BlockingClient("127.0.0.1:10000", id="S0") as client: …`; errors as of the asyncio client."""

    def __init__(
        self,
        address: str,
        id: str = "",  # noqa: A002 — the word that users know
        *,
        token: str = "",
        token_file: Path | str | None = None,
        options: ClientOptions | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="panda-client", daemon=True)
        self._thread.start()
        try:
            self._client: Client = self.wait_for(
                _opened(address, id, find_token(token, token_file), options or ClientOptions())
            )
        except BaseException:
            self._stop_loop()
            raise
        self.id = self._client.id

    def __repr__(self) -> str:
        return f"<blocking {self._client!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._loop.is_closed():
            self.wait_for(self._client.close())
            self._stop_loop()

    def advertise(self, advertisement: str | Advertisement) -> AdvertisementHandle:
        return self.wait_for(self._client.advertise(advertisement))

    def unadvertise(self, handle: AdvertisementHandle) -> None:
        self.wait_for(handle.unadvertise())

    def subscribe(self, subscription: str | Subscription) -> BlockingSubscription:
        return BlockingSubscription(self, self.wait_for(self._client.subscribe(subscription)))

    def publish(self, publication: Publication, payload: bytes = b"") -> str:
        return self.wait_for(self._client.publish(publication, payload))

    def publish_all(self, publications: Iterable[Publication]) -> int:
        return self.wait_for(self._client.publish_all(publications))

    def settle(self) -> None:
        self.wait_for(self._client.settle())

    def control(
        self, broker: str, command: str, *, timeout_s: float = 10.0, payload: bytes = b"", **fields: Value
    ) -> BrokerInfo:
        return self.wait_for(
            self._client.control(broker, command, timeout_s=timeout_s, payload=payload, **fields)
        )

    def brokers(self, timeout_s: float = 10.0) -> list[BrokerInfo]:
        return self.wait_for(self._client.brokers(timeout_s))

    def trace(self, publication: Publication, payload: bytes = b"", *, timeout_s: float = 10.0) -> Trace:
        return self.wait_for(self._client.trace(publication, payload, timeout_s=timeout_s))

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the client's loop; an interrupt here cancels it there."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the client is closed")
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _opened(address: str, id_: str, token: str, options: ClientOptions) -> Client:
    return await Client(address, id_, token, options)
