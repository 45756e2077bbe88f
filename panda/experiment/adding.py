"""Decides what one more line means for a run that goes on already: the same checks as in its file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from broker_runtime.agent.protocol import RequestRefused
from panda.deploy.controller import recall
from panda.deploy.crew import Crew, HostsFailed
from panda.deploy.view import RunView
from panda.experiment.folder import RunFolder, RunRefused
from panda.plan.model import Plan, PlannedStep, fresh_number
from panda.plan.planning import Choices, lowered, plan_of_topology
from panda.topology.reading import CONSOLE, add_line, read_topology


@dataclass(frozen=True, slots=True)
class Addition:
    """What the agents are to be told, host by host, and the plan as it is then."""

    plan: Plan
    requests: tuple[tuple[str, dict[str, Any]], ...]


def addition_of(plan: Plan, lines: str, line: str, *, now: float, since_t0_s: float | None) -> Addition:
    """What the line adds to a topology of text lines; TopologyRefused if it does not fit."""
    topology = add_line(read_topology(lines, "lines.txt").accepted(), line).accepted()
    hosts = {host.name: host for host in plan.hosts}
    strangers = [name for name in topology.hosts if name not in hosts]
    if strangers:
        raise RunRefused(f"the run has no host {', '.join(strangers)}: it has {', '.join(hosts)}")
    choices = Choices(run=plan.run, environment=plan.environment)
    grown = plan_of_topology(topology, hosts, choices)
    steps = [step for step in topology.steps if step.place.path == CONSOLE]
    fresh = tuple(lowered(topology, steps, first=fresh_number(now)))
    known = {each.id for each in plan.processes}
    requests = tuple((step.host, _request(step, grown, known, since_t0_s)) for step in fresh)
    together = replace(
        plan,
        processes=(*plan.processes, *(each for each in grown.processes if each.id not in known)),
        links=(*plan.links, *(link for link in grown.links if link not in plan.links)),
        steps=(*plan.steps, *fresh),
    )
    return Addition(together, requests)


def addition_to(folder: RunFolder, plan: Plan, line: str, *, now: float) -> Addition:
    """What the line adds to a run that goes on; RunRefused when that cannot be."""
    given = recall(folder, RunView(plan))
    if folder.over:
        raise RunRefused(f"{folder.id} is over")
    if given is None:
        raise RunRefused(f"{folder.id} has not begun phase 2")
    added = addition_of(plan, folder.lines(), line, now=now, since_t0_s=now - given.ours)
    if not added.requests:
        raise RunRefused(f"{line!r} adds nothing: write a line such as 0 CUT BrokerA BrokerB for 5s")
    return added


def hand_out(folder: RunFolder, added: Addition, line: str, crew: Crew, *, force: bool = False) -> None:
    """Tell the agents, and keep the line. Whoever calls holds the run's lock."""
    hosts = [host for host in added.plan.hosts if host.name in {name for name, _ in added.requests}]
    sessions, failures = crew.reach_all(hosts, None, steer=True, force=force, start=False)
    try:
        if failures:
            raise HostsFailed(failures)
        for name, request in added.requests:
            sessions[name].request("step", request)
    except RequestRefused as refused:
        raise RunRefused(f"{folder.id}: {refused.message}") from None
    finally:
        for session in sessions.values():
            session.close()
        crew.close()
    folder.add_line(line, added.plan, who=crew.holder)


def _request(step: PlannedStep, grown: Plan, known: set[str], since_t0_s: float | None) -> dict[str, Any]:
    message = step.message()
    if since_t0_s is not None and step.at_s <= since_t0_s:
        message["at_s"] = None  # its time is past: now
    request: dict[str, Any] = {"step": message}
    if step.action == "add" and step.process not in known:
        spec = grown.spec(step.host)
        request["process"] = next(each for each in spec["processes"] if each["id"] == step.process)
    return request
