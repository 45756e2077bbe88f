"""Decides what a matching engine must answer; holds no engine and never looks inside a subscription.

Every engine agrees with `scan`, which asks the language about each stored subscription in turn. Answers are
lists without duplicates. Their order follows from the program of additions and removals alone, so the same
program gives the same order on every run; two engines may order the same answer differently.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar

from broker_runtime.language.messages import Advertisement, Content, Subscription

K = TypeVar("K", bound=Hashable)


class MatchingEngine(Protocol[K]):
    """Stored subscriptions under keys."""

    def add(self, key: K, subscription: Subscription) -> None:
        """Store the subscription; ValueError when the key is taken."""

    def remove(self, key: K) -> None:
        """Forget the key; KeyError when it is not stored."""

    def get(self, key: K) -> Subscription | None:
        """The subscription under the key, if any."""

    def match(self, content: Content) -> list[K]:
        """Keys of the subscriptions that the publication matches."""

    def covering(self, subscription: Subscription) -> list[K]:
        """Keys of the stored subscriptions that cover this one."""

    def covered(self, subscription: Subscription) -> list[K]:
        """Keys of the stored subscriptions that this one covers."""

    def overlapping(self, subscription: Subscription) -> list[K]:
        """Keys of the stored subscriptions that overlap this one."""

    def overlapping_advertisement(self, advertisement: Advertisement) -> list[K]:
        """Keys of the stored subscriptions that the advertisement overlaps."""

    def __len__(self) -> int: ...

    def __contains__(self, key: object) -> bool: ...


class AdvertisementTable(Protocol[K]):
    """Stored advertisements under keys."""

    def add(self, key: K, advertisement: Advertisement) -> None:
        """Store the advertisement; ValueError when the key is taken."""

    def remove(self, key: K) -> None:
        """Forget the key; KeyError when it is not stored."""

    def get(self, key: K) -> Advertisement | None:
        """The advertisement under the key, if any."""

    def overlapping(self, subscription: Subscription) -> list[K]:
        """Keys of the advertisements that overlap the subscription."""

    def covering(self, advertisement: Advertisement) -> list[K]:
        """Keys of the stored advertisements that cover this one."""

    def covered(self, advertisement: Advertisement) -> list[K]:
        """Keys of the stored advertisements that this one covers."""

    def inducing(self, content: Content) -> list[K]:
        """Keys of the advertisements under which the content may be published."""

    def __len__(self) -> int: ...

    def __contains__(self, key: object) -> bool: ...
