"""Decides whether faults strike links that there are."""

from __future__ import annotations

from collections.abc import Iterator

from panda.topology.assembly import broker_finder
from panda.topology.model import LINK_ACTIONS, Action, Topology
from panda.topology.problems import Problem, error, shown, warning


def unknown_link(topology: Topology) -> Iterator[Problem]:
    """Links of the overlay, and those of clients with their brokers."""
    known = {each.id for each in topology.processes}
    pairs = _pairs(topology)
    for step in topology.steps:
        if step.action not in LINK_ACTIONS | {Action.HEAL} or step.action is Action.PARTITION:
            continue
        members = [name for group in step.groups for name in group]
        if len(members) != 2 or not known.issuperset(members) or topology.unread:
            continue
        a, b = members
        if a == b:
            yield error(
                step.where(f"member {b}"), f"{shown(a)} has no link with itself", "name two processes"
            )
        elif frozenset((a, b)) not in pairs:
            beside = sorted(next(iter(pair - {a})) for pair in pairs if a in pair)
            hint = f"{a} has links with {', '.join(beside)}" if beside else f"{a} has no links"
            place = step.where(f"member {a}")
            yield error(place, f"there is no link between {shown(a)} and {shown(b)}", hint)


def useless_groups(topology: Topology) -> Iterator[Problem]:
    """A process is on one side of a partition, and something is parted."""
    known = {each.id for each in topology.processes}
    pairs = _pairs(topology)
    for step in topology.steps:
        if step.action is not Action.PARTITION or topology.unread:
            continue
        members = [name for group in step.groups for name in group]
        twice = sorted({name for name in members if members.count(name) > 1})
        for name in twice:
            yield error(
                step.where(f"member {name}"), f"{shown(name)} is in the partition twice", "remove one"
            )
        side = {name: number for number, group in enumerate(step.groups) for name in group}
        parted = any(len({side[name] for name in pair if name in side}) == 2 for pair in pairs)
        if not twice and known.issuperset(members) and not parted:
            message = "no link goes from one group to the other"
            yield warning(step.place, message, "this partition changes nothing")


def _pairs(topology: Topology) -> set[frozenset[str]]:
    finder = broker_finder(topology.brokers)
    pairs = {frozenset((link.a, link.b)) for link in topology.links}
    for client in topology.clients:
        broker = finder.get((client.broker.host, client.broker.port)) if client.broker else None
        if broker is not None:
            pairs.add(frozenset((client.id, broker.id)))
    return pairs
