"""Decides what a topology means on given hosts: addresses, arguments and steps; never reaches a host.

A local host stands in for an address of the file, so every argument that names that address is changed as
well; over SSH nothing changes. The runtime's processes get a log and the run's name, unless their line says
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from broker_runtime.addresses import parse_address
from broker_runtime.dialect.options import Option, changed_arguments, read_arguments
from broker_runtime.dialect.scripts import TABLES
from panda.hosts.host import Host
from panda.plan.model import Plan, PlannedLink, PlannedProcess, PlannedStep, Policy
from panda.topology.model import BROKER, COMMAND, Action, Process, Step, Topology

LOG: Final = "log.jsonl"
_FAULT: Final = {
    Action.CUT: "cut",
    Action.PARTITION: "cut",
    Action.DELAY: "delay",
    Action.LOSS: "loss",
    Action.RATE: "rate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person may choose about a run."""

    run: str
    policy: Policy = Policy.CONTINUE
    stop_at_s: float | None = None
    gate_timeout_s: float = 60.0
    log_every: int = 1
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def plan_of_topology(topology: Topology, hosts: Mapping[str, Host], choices: Choices) -> Plan:
    """`hosts` has every host of the topology."""
    network = {name: network_address(host) for name, host in hosts.items()}
    return Plan(
        run=choices.run,
        name=topology.name,
        hosts=tuple(hosts[name] for name in topology.hosts),
        processes=tuple(_process(each, network, choices) for each in topology.processes),
        links=tuple(PlannedLink(link.a, link.b) for link in topology.links),
        steps=tuple(lowered(topology)),
        policy=choices.policy,
        stop_at_s=choices.stop_at_s,
        gate_timeout_s=choices.gate_timeout_s,
        environment=choices.environment,
    )


def network_address(host: Host) -> str:
    """Where others find what listens there.

    An address in the topology is meant as it stands, though the login may be elsewhere; a name that only
    an inventory knows means the address that the inventory has for it.
    """
    if host.local:
        return host.address
    try:
        ip_address(host.name)
    except ValueError:
        return host.address or host.name
    return host.name


def _process(process: Process, network: Mapping[str, str], choices: Choices) -> PlannedProcess:
    if process.kind == COMMAND:
        return PlannedProcess(
            id=process.id,
            host=process.host,
            kind="command",
            word="",
            arguments=process.arguments,
            speaks="",
            phase=process.phase,
            at_s=process.at_s,
        )
    table = TABLES[process.word]
    values = read_arguments(table, process.arguments).values
    listen = process.listen
    return PlannedProcess(
        id=process.id,
        host=process.host,
        kind="runtime",
        word=process.word,
        arguments=(*_addressed(process, table, network), *_added(process, values, network, choices)),
        speaks=process.speaks,
        phase=process.phase,
        at_s=process.at_s,
        address=str(listen._replace(host=network.get(listen.host, listen.host))) if listen else "",
        publishes=_publishes(process),
        ends=process.word == "publish" or "count" in values or "duration_s" in values,
    )


def _publishes(process: Process) -> bool:
    return process.word in ("sqpublisher", "publish") or (
        process.word == "workload" and "publish" in process.arguments
    )


def _addressed(process: Process, table: Iterable[Option], network: Mapping[str, str]) -> list[str]:
    def host(text: str) -> str:
        return network.get(text, text)

    def address(text: str) -> str:
        found = parse_address(text)
        moved = found._replace(host=host(found.host))
        return moved.uri if "://" in text else str(moved)

    def addresses(text: str) -> str:
        return ",".join(address(part.strip()) for part in text.split(",") if part.strip())

    change = {"hostname": host, "uri": address, "neighbours": addresses, "broker": address}
    return changed_arguments(tuple(table), process.arguments, change)


def _added(
    process: Process, values: Mapping[str, Any], network: Mapping[str, str], choices: Choices
) -> Iterator[str]:
    if process.kind == BROKER and "hostname" not in values and "uri" not in values:
        yield from ("-hostname", network[process.host])
    if process.word == "client":  # the console keeps no log
        return
    if "log" not in values:
        yield from ("--log", LOG)
    if "log_every" not in values:
        yield from ("--log-every", str(choices.log_every))
    if "run" not in values:
        yield from ("--run", choices.run)


def lowered(topology: Topology, steps: Iterable[Step] | None = None, first: int = 1) -> Iterator[PlannedStep]:
    """What each host does and when: a fault on a link, for one, is done at both ends."""
    number = first - 1
    for step in topology.steps if steps is None else steps:
        for fields in _parts(step, topology):
            number += 1
            yield PlannedStep(
                number=number,
                at_s=step.at_s,
                action=fields.pop("action"),
                for_s=step.for_s,
                line=step.place.line,
                **fields,
            )


def _parts(step: Step, topology: Topology) -> Iterator[dict[str, Any]]:
    if step.action is Action.MARK:
        if topology.hosts:
            yield {"action": "mark", "host": topology.hosts[0], "text": step.text}
    elif step.action in _FAULT:
        for process, peer in _ends(step, topology):
            yield {
                "action": "fault",
                "fault": _FAULT[step.action],
                "host": process.host,
                "process": process.id,
                "peer": peer.speaks,
                "value": step.value,
            }
    elif step.action is Action.HEAL:
        yield from _heals(step, topology)
    else:
        named = topology.process(step.process)
        assert named is not None, "a checked topology names known processes"
        yield {"action": step.action.lower(), "host": named.host, "process": named.id}


def _heals(step: Step, topology: Topology) -> Iterator[dict[str, Any]]:
    if not step.groups:
        for process in topology.processes:
            if process.kind != COMMAND:
                yield {"action": "heal", "host": process.host, "process": process.id}
        return
    for process, peer in _ends(step, topology):
        yield {"action": "heal", "host": process.host, "process": process.id, "peer": peer.speaks}


def _ends(step: Step, topology: Topology) -> Iterator[tuple[Process, Process]]:
    """Both ends of every connection that the step concerns: between its groups, or of its one group."""
    group_of = {name: number for number, group in enumerate(step.groups) for name in group}
    for one, other in connections(topology):
        first, second = group_of.get(one.id), group_of.get(other.id)
        if len(step.groups) == 1:
            concerned = first is not None or second is not None
        else:
            concerned = first is not None and second is not None and first != second
        if concerned:
            yield one, other
            yield other, one


def connections(topology: Topology) -> Iterator[tuple[Process, Process]]:
    """Links between brokers, and between clients and their brokers."""
    by_id = {process.id: process for process in topology.processes}
    for link in topology.links:
        yield by_id[link.a], by_id[link.b]
    listening = {str(process.listen): process for process in topology.brokers if process.listen}
    for client in topology.clients:
        broker = listening.get(str(client.broker)) if client.broker else None
        if broker is not None:
            yield client, broker
