"""Decides where notifications go and when the broker has to wait: all queues together have one bound."""

from __future__ import annotations

from collections.abc import Callable

from broker_runtime.client.errors import ClientError
from broker_runtime.client.handles import SubscriptionHandle
from broker_runtime.client_core import Notification

Sink = Callable[[Notification], None]


class Inbox:
    """The subscriptions of one client. `hold` and `release` are called when the bound is met and left."""

    def __init__(self, notifications_max: int, hold: Callable[[], None], release: Callable[[], None]) -> None:
        self.handles: dict[str, SubscriptionHandle] = {}
        self._sinks: dict[str, Sink] = {}
        self._notifications_max = notifications_max
        self._hold = hold
        self._release = release
        self._holding = False
        self._queued = 0

    def add(self, handle: SubscriptionHandle) -> None:
        self.handles[handle.id] = handle
        self._sinks[handle.id] = handle.push

    def add_sink(self, id_: str, sink: Sink) -> None:
        """A subscription whose notifications are dealt with at once and never queue."""
        self._sinks[id_] = sink

    def forget(self, handle: SubscriptionHandle, error: ClientError | None = None) -> None:
        self._sinks.pop(handle.id, None)
        self.handles.pop(handle.id, None)
        handle.end(error)
        self.taken(handle.uncount())

    def deliver(self, notification: Notification) -> None:
        for id_ in notification.subscriptions:
            sink = self._sinks.get(id_)
            if sink is not None:
                sink(notification)

    def end_all(self, error: ClientError | None) -> None:
        for handle in self.handles.values():
            handle.end(error)

    def queued(self) -> None:
        self._queued += 1
        if self._queued >= self._notifications_max and not self._holding:
            self._holding = True
            self._hold()

    def taken(self, count: int = 1) -> None:
        self._queued -= count
        if self._holding and self._queued * 2 <= self._notifications_max:
            self._holding = False
            self._release()
