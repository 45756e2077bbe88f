"""Decides which steps are due, and which have to be written down ahead of their time; it carries out none."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker_runtime.agent.spec import Step

# Intents are on disk this long before their effects, so that a slow disk makes no step late.
LOOKAHEAD_S: Final = 0.25


@dataclass(slots=True, eq=False)
class Item:
    """A step, or the end of a step's lease, on its way through the schedule."""

    step: Step
    action: str
    lease: bool
    order: int
    due: float = 0.0
    planned: float = 0.0
    actual: float = 0.0
    intent: int = 0
    done: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        return self.step.number, self.lease

    def __lt__(self, other: Item) -> bool:
        return (self.due, self.order) < (other.due, other.order)


class Schedule:
    def __init__(self) -> None:
        self.items: dict[tuple[int, bool], Item] = {}
        self._idle: list[Item] = []  # until the clock of their phase starts
        self._coming: list[Item] = []  # a heap
        self._intended: list[Item] = []
        self._order = 0

    def add(self, step: Step, action: str = "", *, lease: bool = False) -> Item:
        self._order += 1
        item = Item(step, action or step.action, lease, self._order)
        self.items[item.key] = item
        self._idle.append(item)
        return item

    def time(self, item: Item, due: float, planned: float) -> None:
        """Give an item its time."""
        item.due, item.planned = due, planned
        self._idle.remove(item)
        heapq.heappush(self._coming, item)

    def idle(self, *, first_phase: bool) -> list[Item]:
        """What waits for its phase, in file order."""
        return [item for item in self._idle if (item.step.at_s == 0.0) == first_phase]

    def time_phase(self, *, first: bool, due: float, planned: float) -> None:
        """Start the clock of a phase."""
        for item in self.idle(first_phase=first):
            item.due, item.planned = due + (item.step.at_s or 0.0), planned + (item.step.at_s or 0.0)
            heapq.heappush(self._coming, item)
        self._idle = self.idle(first_phase=not first)

    def to_intend(self, mono: float) -> Iterator[Item]:
        """What comes so soon that it has to be written down now; the caller sets `intent`."""
        while self._coming and self._coming[0].due <= mono + LOOKAHEAD_S:
            item = heapq.heappop(self._coming)
            if not item.done:
                self._intended.append(item)
                yield item

    def due(self, mono: float, durable: int) -> Iterator[Item]:
        """What can be carried out now, in order; one not on disk yet holds up later ones of its process."""
        held: set[str] = set()
        for item in sorted(self._intended):
            if item.due > mono:
                return
            if item.intent > durable or item.step.process in held:
                if item.step.process:
                    held.add(item.step.process)
                continue
            self._intended.remove(item)
            yield item

    def next_at(self, durable: int) -> float | None:
        """When something is to be done next; what waits for the disk is nothing to wait for."""
        times = [item.due for item in self._intended if item.intent <= durable]
        if self._coming:
            times.append(self._coming[0].due - LOOKAHEAD_S)
        return min(times, default=None)

    def cancel(self) -> list[Item]:
        """Forget everything that is not begun; the intents among it are returned."""
        intended = sorted(self._intended)
        self._idle.clear()
        self._coming.clear()
        self._intended.clear()
        return intended

    @property
    def empty(self) -> bool:
        return not (self._idle or self._coming or self._intended)
