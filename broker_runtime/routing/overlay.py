"""Decides whether a link may be part of the overlay, which has to stay without cycles.

Every broker floods its own links, each with the stamp that its two ends agreed on. A link is an edge once
both ends name it with one stamp. Taken in the order of stamp and name, an edge whose ends are connected
already is surplus (Kruskal's rule): what a broker with partial knowledge calls surplus stays so for one
with full knowledge, so that two brokers never drop different links of one cycle.

News comes by the thousand while many brokers find each other. So edges are kept state by state, and with them
the groups of brokers that they connect: only an edge within a group closes a cycle, and only then is there
anything to search for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from broker_runtime.wire.records import LinkState

BROKERS_MAX: Final = 10_000

Pair = tuple[str, str]  # smaller id, larger id
Edge = tuple[int, str, str]  # stamp, smaller id, larger id


class Groups:
    """Who is connected with whom."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def join(self, a: str, b: str) -> bool:
        """Whether the two were not connected before."""
        top, other = self._top(a), self._top(b)
        self._above[top] = other
        return top != other

    def _top(self, name: str) -> str:
        above = self._above
        while (higher := above.setdefault(name, name)) != name:
            above[name] = name = above[higher]
        return name


class Overlay:
    """The links of all brokers, as far as they are known here."""

    def __init__(self, broker: str, boot: int) -> None:
        self._broker = broker
        self._states: dict[str, LinkState] = {broker: LinkState(broker, (boot, 0), {})}
        self._edges: dict[Pair, int] = {}
        self._groups = Groups()
        self._cyclic = False

    @property
    def own(self) -> LinkState:
        return self._states[self._broker]

    @property
    def states(self) -> list[LinkState]:
        """What a new neighbour must be told: everything, also of brokers that cannot be reached yet."""
        return list(self._states.values())

    def link_up(self, peer: str, stamp: int) -> LinkState:
        return self._renew({**self.own.links, peer: stamp})

    def link_down(self, peer: str) -> LinkState:
        return self._renew({name: stamp for name, stamp in self.own.links.items() if name != peer})

    def learn(self, state: LinkState) -> LinkState | None:
        """What to flood because of this news, if it is news."""
        if state.broker == self._broker:
            if state.version <= self.own.version:
                return None
            return self._renew(dict(self.own.links), after=state.version)
        known = self._states.get(state.broker)
        if known is not None and known.version >= state.version:
            return None
        if known is None and len(self._states) >= BROKERS_MAX:
            return None
        self._keep(state)
        return state

    def way_to(self, broker: str) -> list[str]:
        """The brokers from here to that one, by other links than a direct one; empty if there are none."""
        before = {self._broker: ""}
        queue = [self._broker]
        for here in queue:
            for there in self._neighbours(here):
                if there in before or (here == self._broker and there == broker):
                    continue
                before[there] = here
                if there == broker:
                    way = [there]
                    while before[way[-1]]:
                        way.append(before[way[-1]])
                    return way[::-1]
                queue.append(there)
        return []

    def surplus(self) -> list[str]:
        """Neighbours whose link closes a cycle and has to go."""
        if not self._cyclic:
            return []
        groups = Groups()
        closing = [(a, b) for _, a, b in self.edges() if not groups.join(a, b)]
        return [b if a == self._broker else a for a, b in closing if self._broker in (a, b)]

    def edges(self) -> list[Edge]:
        return sorted((stamp, a, b) for (a, b), stamp in self._edges.items())

    @property
    def brokers(self) -> list[str]:
        return sorted(self._reached())

    def _neighbours(self, broker: str) -> list[str]:
        state = self._states.get(broker)
        if state is None:
            return []
        return [
            peer
            for peer, stamp in state.links.items()
            if peer in self._states and self._states[peer].links.get(broker) == stamp
        ]

    def _reached(self) -> set[str]:
        reached, queue = {self._broker}, [self._broker]
        for here in queue:
            for there in self._neighbours(here):
                if there not in reached:
                    reached.add(there)
                    queue.append(there)
        return reached

    def _renew(self, links: dict[str, int], after: tuple[int, int] = (0, 0)) -> LinkState:
        boot, count = max(self.own.version, after)
        state = LinkState(self._broker, (boot, count + 1), links)
        self._keep(state)
        return state

    def _keep(self, state: LinkState) -> None:
        """Put a state in the place of an older one."""
        broker = state.broker
        before = self._edges_of(broker)
        self._states[broker] = state
        after = self._edges_of(broker)
        if all(after.get(pair) == stamp for pair, stamp in before.items()):
            self._edges.update(after)
            self._connect(pair for pair in after if pair not in before)
        else:  # groups can grow but not part
            for pair in before:
                del self._edges[pair]
            self._edges.update(after)
            self._groups, self._cyclic = Groups(), False
            self._connect(self._edges)

    def _connect(self, pairs: Iterable[Pair]) -> None:
        for a, b in pairs:
            if not self._groups.join(a, b):
                self._cyclic = True

    def _edges_of(self, broker: str) -> dict[Pair, int]:
        links = self._states[broker].links if broker in self._states else {}
        return {(min(broker, peer), max(broker, peer)): links[peer] for peer in self._neighbours(broker)}
