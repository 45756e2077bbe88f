"""Decides every answer by asking the language about each stored message; never takes a short cut.

These are the oracles that the other engines are tested against. Answers are in the order of addition.
"""

from __future__ import annotations

from typing import Generic

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.matching.engine import K


class ScanEngine(Generic[K]):
    def __init__(self) -> None:
        self._stored: dict[K, Subscription] = {}

    def add(self, key: K, subscription: Subscription) -> None:
        if key in self._stored:
            raise ValueError(f"key {key!r} is stored already")
        self._stored[key] = subscription

    def remove(self, key: K) -> None:
        del self._stored[key]

    def get(self, key: K) -> Subscription | None:
        return self._stored.get(key)

    def match(self, content: Content) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.matches(content)]

    def covering(self, subscription: Subscription) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.covers(subscription)]

    def covered(self, subscription: Subscription) -> list[K]:
        return [key for key, stored in self._stored.items() if subscription.covers(stored)]

    def overlapping(self, subscription: Subscription) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.overlaps(subscription)]

    def overlapping_advertisement(self, advertisement: Advertisement) -> list[K]:
        return [key for key, stored in self._stored.items() if advertisement.overlaps(stored)]

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, key: object) -> bool:
        return key in self._stored


class AdvertisementScan(Generic[K]):
    def __init__(self) -> None:
        self._stored: dict[K, Advertisement] = {}

    def add(self, key: K, advertisement: Advertisement) -> None:
        if key in self._stored:
            raise ValueError(f"key {key!r} is stored already")
        self._stored[key] = advertisement

    def remove(self, key: K) -> None:
        del self._stored[key]

    def get(self, key: K) -> Advertisement | None:
        return self._stored.get(key)

    def overlapping(self, subscription: Subscription) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.overlaps(subscription)]

    def covering(self, advertisement: Advertisement) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.covers(advertisement)]

    def covered(self, advertisement: Advertisement) -> list[K]:
        return [key for key, stored in self._stored.items() if advertisement.covers(stored)]

    def inducing(self, content: Content) -> list[K]:
        return [key for key, stored in self._stored.items() if stored.induces(content)]

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, key: object) -> bool:
        return key in self._stored
