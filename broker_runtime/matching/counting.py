"""Decides matching by counting satisfied predicates, the papers' baseline; never the engine of a broker.

Every distinct predicate is kept once, with the subscriptions that use it. A publication finds its satisfied
predicates in an index for each attribute and operator; a subscription matches when all of its predicates
were counted. (Fabret et al., "Filtering Algorithms and Implementation for Very Fast Publish/Subscribe
Systems", section 2.) The relations are those of the scan.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from broker_runtime.language.messages import Content, Subscription
from broker_runtime.language.predicates import ORDERED, Op, Predicate, Test, compiled
from broker_runtime.language.values import KIND_BY_CLASS, Kind, Value
from broker_runtime.matching.engine import K
from broker_runtime.matching.scan import ScanEngine

Slots = list[int]


class Ladder:
    """The predicates of one order operator on one attribute and kind, sorted by their operands."""

    __slots__ = ("_bounds", "_op", "_slots")

    def __init__(self, op: Op) -> None:
        self._op = op
        self._bounds: list[Any] = []
        self._slots: dict[Any, Slots] = {}

    def slots(self, bound: Any) -> Slots:
        found = self._slots.get(bound)
        if found is None:
            insort(self._bounds, bound)
            found = self._slots[bound] = []
        return found

    def forget(self, bound: Any) -> None:
        del self._slots[bound]
        del self._bounds[bisect_left(self._bounds, bound)]

    def satisfied(self, value: Any) -> Iterator[Slots]:
        bounds = self._bounds
        if self._op is Op.GT:
            hit = bounds[: bisect_left(bounds, value)]
        elif self._op is Op.GE:
            hit = bounds[: bisect_right(bounds, value)]
        elif self._op is Op.LT:
            hit = bounds[bisect_right(bounds, value) :]
        else:
            hit = bounds[bisect_left(bounds, value) :]
        return map(self._slots.__getitem__, hit)


class AttributeIndex:
    """The predicates on one attribute."""

    __slots__ = ("_equal", "_ladders", "_other")

    def __init__(self) -> None:
        self._equal: dict[tuple[Kind, Value], Slots] = {}
        self._ladders: dict[Kind, dict[Op, Ladder]] = {}
        self._other: dict[Predicate, tuple[Test, Slots]] = {}

    def slots(self, wanted: Predicate) -> Slots:
        """Who uses the predicate; a new one is entered."""
        op, kind = wanted.op, wanted.kind
        operand: Any = wanted.operand
        if op is Op.EQ and kind is not None:
            return self._equal.setdefault((kind, operand), [])
        if op in ORDERED and kind is not None:
            return self._ladder(kind, op).slots(operand)
        entry = self._other.get(wanted)
        if entry is None:
            entry = self._other[wanted] = (compiled(wanted), [])
        return entry[1]

    def forget(self, wanted: Predicate) -> None:
        op, kind = wanted.op, wanted.kind
        operand: Any = wanted.operand
        if op is Op.EQ and kind is not None:
            del self._equal[kind, operand]
        elif op in ORDERED and kind is not None:
            self._ladder(kind, op).forget(operand)
        else:
            del self._other[wanted]

    def _ladder(self, kind: Kind, op: Op) -> Ladder:
        ladders = self._ladders.setdefault(kind, {})
        found = ladders.get(op)
        if found is None:
            found = ladders[op] = Ladder(op)
        return found

    def satisfied(self, value: Value) -> Iterator[Slots]:
        for test, slots in self._other.values():
            if test(value):
                yield slots
        if value != value:  # noqa: PLR0124 — a NaN compares with nothing
            return
        kind = KIND_BY_CLASS[value.__class__]
        equal = self._equal.get((kind, value))
        if equal is not None:
            yield equal
        for ladder in self._ladders.get(kind, {}).values():
            yield from ladder.satisfied(value)


class CountingEngine(ScanEngine[K]):
    """Answers to `match` come in no stated order but the same on every run."""

    def __init__(self) -> None:
        super().__init__()
        self._indexes: dict[str, AttributeIndex] = {}
        self._slot_by_key: dict[K, int] = {}
        self._keys: list[K | None] = []
        self._needed: list[int] = []
        self._free: list[int] = []
        self._uncounted: dict[int, None] = {}  # variables only: nothing to count

    def add(self, key: K, subscription: Subscription) -> None:
        super().add(key, subscription)
        slot = self._free.pop() if self._free else self._grow()
        self._keys[slot] = key
        self._slot_by_key[key] = slot
        wanted = _distinct(subscription)
        self._needed[slot] = len(wanted)
        if not wanted:
            self._uncounted[slot] = None
        for each in wanted:
            self._indexes.setdefault(each.attribute, AttributeIndex()).slots(each).append(slot)

    def remove(self, key: K) -> None:
        subscription = self._stored[key]
        super().remove(key)
        slot = self._slot_by_key.pop(key)
        self._keys[slot] = None
        self._free.append(slot)
        self._uncounted.pop(slot, None)
        for each in _distinct(subscription):
            index = self._indexes[each.attribute]
            slots = index.slots(each)
            slots.remove(slot)
            if not slots:
                index.forget(each)

    def match(self, content: Content) -> list[K]:
        counts = [0] * len(self._keys)
        needed = self._needed
        reached: list[int] = list(self._uncounted)
        for attribute, value in content.items():
            index = self._indexes.get(attribute)
            if index is None:
                continue
            for slots in index.satisfied(value):
                for slot in slots:
                    counts[slot] += 1
                    if counts[slot] == needed[slot]:
                        reached.append(slot)
        return [key for key in map(self._keys.__getitem__, reached) if self._joined(key, content)]  # type: ignore[arg-type,misc]

    def _joined(self, key: K, content: Content) -> bool:
        subscription = self._stored[key]
        return not subscription.joins or subscription.matches(content)

    def _grow(self) -> int:
        self._keys.append(None)
        self._needed.append(0)
        return len(self._keys) - 1


def _distinct(subscription: Subscription) -> list[Predicate]:
    return list(dict.fromkeys(p for p in subscription.predicates if p.bound))
