"""Decides which subscriptions (or advertisements) one neighbour is told about, under covering.

`wanted` is everything the neighbour must be served with; `told` is the part it has heard of. Whatever is
wanted and not told is covered by something told. Changes come out as telling first and withdrawing after,
so that on a link that keeps order no publication falls between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")

Lookup = Callable[[T], Iterable[str]]


class Covering(Enum):
    OFF = "off"  # tell everything
    LAZY = "lazy"  # do not tell what is covered already
    ACTIVE = "active"  # and withdraw what a newcomer covers


class Changes(Generic[T]):
    """What to tell a neighbour, in order, and then what to withdraw."""

    __slots__ = ("tell", "withdraw")

    def __init__(self) -> None:
        self.tell: dict[str, T] = {}
        self.withdraw: dict[str, None] = {}


class Forwarding(Generic[T]):
    """One neighbour's share."""

    __slots__ = ("_covered", "_covering", "_mode", "told", "wanted")

    def __init__(self, mode: Covering, covering: Lookup[T], covered: Lookup[T]) -> None:
        self.wanted: dict[str, T] = {}
        self.told: dict[str, None] = {}
        self._mode = mode
        self._covering = covering
        self._covered = covered

    def add(self, id_: str, body: T, changes: Changes[T]) -> None:
        if id_ not in self.wanted:
            self.wanted[id_] = body
            self._consider(id_, body, changes)

    def remove(self, ids: Iterable[str], changes: Changes[T]) -> None:
        """Forget these; what only they covered is told now."""
        bereft: list[T] = []
        for id_ in ids:
            body = self.wanted.pop(id_, None)
            if body is not None and id_ in self.told:
                del self.told[id_]
                changes.withdraw[id_] = None
                bereft.append(body)
        if self._mode is Covering.OFF:
            return
        for body in bereft:
            for id_ in self._covered(body):
                if id_ in self.wanted and id_ not in self.told:
                    self._consider(id_, self.wanted[id_], changes)

    def _consider(self, id_: str, body: T, changes: Changes[T]) -> None:
        if self._mode is not Covering.OFF and any(other in self.told for other in self._covering(body)):
            return
        self.told[id_] = None
        if id_ in changes.withdraw:  # the neighbour still knows it: withdrawing was not carried out yet
            del changes.withdraw[id_]
        else:
            changes.tell[id_] = body
        if self._mode is Covering.ACTIVE:
            for other in self._covered(body):
                if other != id_ and other in self.told:
                    del self.told[other]
                    if other in changes.tell:
                        del changes.tell[other]
                    else:
                        changes.withdraw[other] = None
