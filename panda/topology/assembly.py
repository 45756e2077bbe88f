"""Decides how steps become a topology: in order of time, with processes, hosts and links; never judges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from panda.topology.commands import said_by
from panda.topology.model import Action, Link, Process, Step, Topology


def assemble(name: str, source: str, steps: Iterable[Step], unread: Iterable[str] = ()) -> Topology:
    """Sort and number the steps; names become process ids where they can mean only one process."""
    ordered = sorted(steps, key=lambda step: step.at_s)
    processes = _processes(ordered)
    names = _names(processes)
    numbered = tuple(_resolved(replace(step, number=number), names) for number, step in enumerate(ordered, 1))
    hosts = dict.fromkeys(step.host for step in numbered if step.action is Action.ADD)
    return Topology(
        name=name,
        source=source,
        steps=numbered,
        processes=processes,
        hosts=tuple(hosts),
        links=_links(processes),
        unread=frozenset(unread),
    )


def broker_finder(brokers: Iterable[Process]) -> dict[tuple[str, int], Process]:
    """The broker that listens at a host and port; by the host of its line if by no other name."""
    found: dict[tuple[str, int], Process] = {}
    listening = [(each, each.listen) for each in brokers if each.listen is not None and each.listen.port]
    for each, listen in listening:
        found.setdefault((listen.host, listen.port), each)
    for each, listen in listening:
        found.setdefault((each.host, listen.port), each)
    return found


def _processes(steps: Iterable[Step]) -> tuple[Process, ...]:
    """The first ADD of an id counts."""
    found: dict[str, Process] = {}
    for step in steps:
        if step.action is Action.ADD and step.process not in found:
            found[step.process] = _process(step)
    return tuple(found.values())


def _process(step: Step) -> Process:
    said = said_by(step.command, step.host)
    return Process(
        id=step.process,
        host=step.host,
        command=step.command,
        kind=said.kind,
        word=said.word,
        arguments=said.arguments,
        speaks=said.speaks,
        listen=said.listen,
        neighbours=said.neighbours,
        broker=said.broker,
        phase=1 if step.at_s == 0 else 2,
        at_s=step.at_s,
        place=step.place,
    )


def _names(processes: Sequence[Process]) -> dict[str, str]:
    """Process ids by every name that means one process: ids before the ids under which they speak."""
    meanings: dict[str, set[str]] = {}
    for process in processes:
        meanings.setdefault(process.speaks, set()).add(process.id)
    names = {name: next(iter(ids)) for name, ids in meanings.items() if name and len(ids) == 1}
    return names | {process.id: process.id for process in processes}


def _resolved(step: Step, names: Mapping[str, str]) -> Step:
    if step.action is Action.ADD:
        return step
    groups = tuple(tuple(names.get(name, name) for name in group) for group in step.groups)
    spots = dict(step.spots)
    for name, id_ in names.items() if step.groups else ():
        if f"member {name}" in spots:
            spots.setdefault(f"member {id_}", spots[f"member {name}"])
    return replace(step, process=names.get(step.process, step.process), groups=groups, spots=spots)


def _links(processes: Sequence[Process]) -> tuple[Link, ...]:
    brokers = [each for each in processes if each.listen is not None or each.neighbours]
    finder = broker_finder(brokers)
    found: dict[frozenset[str], Link] = {}
    for broker in brokers:
        for address in broker.neighbours:
            other = finder.get((address.host, address.port))
            if other is not None and other.id != broker.id:
                found.setdefault(frozenset((broker.id, other.id)), Link(broker.id, other.id))
    return tuple(found.values())
