"""Decides what a graph of brokers and clients is: who is there, who is linked, who is near."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

Edge = tuple[str, str]

_DIGITS: Final = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """For sorting: B2 before B10."""
    pieces = _DIGITS.split(name)
    key = ((1, int(each), each) if each.isascii() and each.isdigit() else (0, 0, each) for each in pieces)
    return (*key, (2, 0, name))


def edge_of(a: str, b: str) -> Edge:
    return (a, b) if natural(a) <= natural(b) else (b, a)


@dataclass(frozen=True)
class Graph:
    """Everything in natural order, so that equal networks are equal graphs."""

    brokers: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return (*self.brokers, *self.clients)

    @cached_property
    def adjacent(self) -> Mapping[str, tuple[str, ...]]:
        """Brokers before clients, each in natural order."""
        known: dict[str, list[str]] = {name: [] for name in self.nodes}
        for a, b in self.edges:
            known[a].append(b)
            known[b].append(a)
        clients = set(self.clients)
        return {
            name: tuple(sorted(others, key=lambda each: (each in clients, natural(each))))
            for name, others in known.items()
        }

    def distances(self, start: str) -> dict[str, int]:
        """Hops from a node to all that can be reached from it, the nearest first."""
        found = {start: 0}
        queue = deque((start,))
        while queue:
            name = queue.popleft()
            for other in self.adjacent[name]:
                if other not in found:
                    found[other] = found[name] + 1
                    queue.append(other)
        return found

    def neighbourhood(self, centre: str, hops: int) -> Graph:
        """The part of the graph within so many hops; the whole when the centre is not in it."""
        if centre not in self.adjacent:
            return self
        near = {name for name, distance in self.distances(centre).items() if distance <= hops}
        return self.only(near)

    def only(self, wanted: Iterable[str]) -> Graph:
        kept = set(wanted)
        return Graph(
            tuple(name for name in self.brokers if name in kept),
            tuple(name for name in self.clients if name in kept),
            tuple(edge for edge in self.edges if kept.issuperset(edge)),
        )

    def without_clients(self) -> Graph:
        return self.only(self.brokers) if self.clients else self

    def search(self, text: str) -> tuple[str, ...]:
        """Nodes with the text in their name, in any case; those that begin with it first."""
        wanted = text.casefold()
        if not wanted:
            return ()
        found = [name for name in self.nodes if wanted in name.casefold()]
        return tuple(sorted(found, key=lambda name: not name.casefold().startswith(wanted)))

    def components(self) -> list[tuple[str, ...]]:
        """Connected parts, the largest first, their nodes in natural order."""
        left = dict.fromkeys(self.nodes)
        parts = []
        while left:
            reached = self.distances(next(iter(left)))
            parts.append(tuple(name for name in left if name in reached))
            for name in reached:
                del left[name]
        return sorted(parts, key=len, reverse=True)


def graph_of(
    brokers: Iterable[str], links: Iterable[Edge], clients: Mapping[str, str] | None = None
) -> Graph:
    """A graph with the ends of all links in it; `clients` says at which broker each is.

    A client that is called like a broker is not drawn: it would be the broker.
    """
    clients = clients or {}
    edges = {edge_of(a, b) for a, b in links if a != b}
    names = {*brokers, *(name for edge in edges for name in edge), *clients.values()}
    guests = {name: broker for name, broker in clients.items() if name not in names}
    edges.update(edge_of(name, broker) for name, broker in guests.items())
    return Graph(
        tuple(sorted(names, key=natural)),
        tuple(sorted(guests, key=natural)),
        tuple(sorted(edges, key=lambda edge: (natural(edge[0]), natural(edge[1])))),
    )
