"""Decides whether the brokers can form the overlay that is described, and clients find theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from broker_runtime.addresses import Address
from broker_runtime.dialect.options import nearest
from panda.topology.assembly import broker_finder
from panda.topology.lifetimes import overlap, removals
from panda.topology.model import CLIENT, Link, Place, Process, Topology
from panda.topology.problems import Problem, error, shown, warning

CYCLE_SHOWN_MAX_LINKS = 12


def port_twice(topology: Topology) -> Iterator[Problem]:
    removed = removals(topology)
    taken: dict[tuple[str, int], list[Process]] = {}
    for broker in topology.brokers:
        if broker.listen is None or not broker.listen.port:
            continue
        others = taken.setdefault((broker.listen.host, broker.listen.port), [])
        for other in others:
            if overlap(broker, other, removed):
                message = f"{broker.id} and {other.id} both listen at {broker.listen}"
                yield error(broker.place, message, "choose another port with -p or -uri")
                break
        others.append(broker)


def unknown_neighbour(topology: Topology) -> Iterator[Problem]:
    finder = broker_finder(topology.brokers)
    for broker in topology.brokers:
        for address in broker.neighbours:
            if (address.host, address.port) not in finder and not _may_be_unread(topology, address):
                message = (
                    f"no broker of this topology listens at {shown(str(address))}, a neighbour of {broker.id}"
                )
                yield error(_argument(topology, broker, address), message, _nearest_address(finder, address))


def self_link(topology: Topology) -> Iterator[Problem]:
    finder = broker_finder(topology.brokers)
    for broker in topology.brokers:
        for address in broker.neighbours:
            other = finder.get((address.host, address.port))
            if other is not None and other.id == broker.id:
                place = _argument(topology, broker, address)
                yield error(place, f"{broker.id} is its own neighbour", "leave it out of -n")


def phase_1_waits_for_phase_2(topology: Topology) -> Iterator[Problem]:
    finder = broker_finder(topology.brokers)
    for broker in topology.brokers:
        for address in broker.neighbours:
            other = finder.get((address.host, address.port))
            if broker.phase == 1 and other is not None and other.phase == 2:
                message = f"{broker.id} starts in phase 1 and waits for {other.id}, which starts after it"
                hint = f"add {other.id} at 0.0, or let {other.id} name {broker.id} as its neighbour"
                yield error(_argument(topology, broker, address), message, hint)


def cycle(topology: Topology) -> Iterator[Problem]:
    """Brokers know overlays without cycles only: they would refuse the link that closes one."""
    removed = removals(topology)
    brokers = {broker.id: broker for broker in topology.brokers}
    links = [link for link in topology.links if overlap(brokers[link.a], brokers[link.b], removed)]
    if _cycle_of(links) is None:
        return
    for moment in sorted({broker.at_s for broker in brokers.values()}):
        there = {id_ for id_, each in brokers.items() if each.at_s <= moment < removed.get(id_, float("inf"))}
        found = _cycle_of([link for link in links if link.a in there and link.b in there])
        if found is not None:
            shown_links = ", ".join(map(str, found[:CYCLE_SHOWN_MAX_LINKS]))
            more = (
                f" and {len(found) - CYCLE_SHOWN_MAX_LINKS} more"
                if len(found) > CYCLE_SHOWN_MAX_LINKS
                else ""
            )
            hint = "overlays with cycles are not supported yet: leave out one of these links"
            closing = brokers[found[-1].a]
            yield error(closing.place, f"the overlay has a cycle: {shown_links}{more}", hint)
            return


def not_connected(topology: Topology) -> Iterator[Problem]:
    parts = _parts([broker.id for broker in topology.brokers], topology.links)
    if len(parts) > 1 and not topology.unread and all(broker.listen for broker in topology.brokers):
        smallest = min(parts, key=len)
        names = ", ".join(smallest[:5]) + (" …" if len(smallest) > 5 else "")
        message = f"the overlay falls into {len(parts)} parts: {names} has no link to the rest"
        place = next(broker.place for broker in topology.brokers if broker.id == smallest[0])
        yield warning(place, message, "publications do not pass between them; link them with -n")


def unknown_broker(topology: Topology) -> Iterator[Problem]:
    finder = broker_finder(topology.brokers)
    removed = removals(topology)
    for client in topology.clients:
        address = client.broker
        if address is None:
            continue
        found = finder.get((address.host, address.port))
        if found is None and not _may_be_unread(topology, address):
            place = _argument(topology, client, address)
            message = (
                f"no broker of this topology listens at {shown(str(address))}, where {client.id} connects"
            )
            yield error(place, message, _nearest_address(finder, address))
        elif found is not None and removed.get(found.id, float("inf")) <= client.at_s:
            message = f"{client.id} starts when its broker {found.id} has been removed"
            yield error(_argument(topology, client, address), message, "add it earlier")


def broker_starts_later(topology: Topology) -> Iterator[Problem]:
    """In phase 1 that would keep the gate shut for ever; later on a client waits for some seconds."""
    finder = broker_finder(topology.brokers)
    for client in topology.clients:
        address = client.broker
        broker = finder.get((address.host, address.port)) if address is not None else None
        if address is None or broker is None or client.at_s >= broker.at_s:
            continue
        place = _argument(topology, client, address)
        message = f"{client.id} starts at {client.at_s:g} s, its broker {broker.id} at {broker.at_s:g} s"
        told = error if client.phase == 1 else warning
        yield told(place, message, "add the broker first")


def _argument(topology: Topology, process: Process, address: Address) -> Place:
    """Where the address stands in the line of the process."""
    step = next(step for step in topology.steps if step.process == process.id and step.command)
    for index, word in reversed(list(enumerate(step.command))):
        if str(address) in word:
            return step.where(f"argument {index}")
    return step.where("argument 0") if process.kind == CLIENT else step.place


def _may_be_unread(topology: Topology, address: Address) -> bool:
    """Whether a broker that could not be read, or whose port is not known, may be meant."""
    if topology.unread:
        return True
    return any(each.listen is None and address.host == each.host for each in topology.brokers)


def _nearest_address(finder: Iterable[tuple[str, int]], address: Address) -> str:
    known = [str(Address(host, port)) for host, port in finder]
    close = nearest(str(address), known).strip(" ()")
    return close or "add a broker that listens there, or write the address of one that is here"


def _cycle_of(links: Sequence[Link]) -> list[Link] | None:
    """The links of the first cycle; the one that closes it is the last."""
    beside: dict[str, list[tuple[str, Link]]] = {}
    group: dict[str, str] = {}

    def root(id_: str) -> str:
        while group.setdefault(id_, id_) != id_:
            group[id_] = group[group[id_]]
            id_ = group[id_]
        return id_

    for link in links:
        if root(link.a) == root(link.b):
            return [*_path(beside, link.b, link.a), link]
        group[root(link.a)] = root(link.b)
        beside.setdefault(link.a, []).append((link.b, link))
        beside.setdefault(link.b, []).append((link.a, link))
    return None


def _path(beside: dict[str, list[tuple[str, Link]]], start: str, end: str) -> list[Link]:
    came: dict[str, tuple[str, Link] | None] = {start: None}
    waiting = [start]
    for id_ in waiting:
        for other, link in beside.get(id_, ()):
            if other not in came:
                came[other] = (id_, link)
                waiting.append(other)
    path, step = [], came[end]
    while step is not None:
        path.append(step[1])
        step = came[step[0]]
    return path[::-1]


def _parts(ids: Sequence[str], links: Iterable[Link]) -> list[list[str]]:
    beside: dict[str, list[str]] = {id_: [] for id_ in ids}
    for link in links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    seen: set[str] = set()
    parts = []
    for id_ in ids:
        if id_ in seen:
            continue
        seen.add(id_)
        part = [id_]
        for member in part:
            fresh = [other for other in beside[member] if other not in seen]
            seen.update(fresh)
            part += dict.fromkeys(fresh)
        parts.append(part)
    return parts
