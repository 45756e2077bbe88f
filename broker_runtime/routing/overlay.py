"""Decides whether a link may be part of the overlay, which has to stay without cycles.

Every broker floods its own links, each with the stamp that its two ends agreed on. A link is an edge once
both ends name it with one stamp. Taken in the order of stamp and name, an edge whose ends are connected
already is surplus (Kruskal's rule): what a broker with partial knowledge calls surplus stays so for one
with full knowledge, so that two brokers never drop different links of one cycle.
"""

from __future__ import annotations

from typing import Final

from broker_runtime.wire.records import LinkState

BROKERS_MAX: Final = 10_000

Edge = tuple[int, str, str]  # stamp, smaller id, larger id


class Overlay:
    """The links of all brokers, as far as they are known here."""

    def __init__(self, broker: str, boot: int) -> None:
        self._broker = broker
        self._states: dict[str, LinkState] = {broker: LinkState(broker, (boot, 0), {})}

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
        self._states[state.broker] = state
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
        if len(self.own.links) < 2:  # no cycle goes through a leaf, and most brokers are leaves
            return []
        group: dict[str, str] = {}

        def root(name: str) -> str:
            while group.setdefault(name, name) != name:
                name = group[name]
            return name

        dropped = []
        for _, a, b in self.edges():
            if root(a) != root(b):
                group[root(a)] = root(b)
            elif self._broker in (a, b):
                dropped.append(b if a == self._broker else a)
        return dropped

    def edges(self) -> list[Edge]:
        found = {
            (stamp, min(broker, peer), max(broker, peer))
            for broker, state in self._states.items()
            for peer, stamp in state.links.items()
            if self._states.get(peer, state).links.get(broker) == stamp
        }
        return sorted(found)

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
        self._states[self._broker] = state
        return state
