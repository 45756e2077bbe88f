"""`panda plan`: what a deployment would do, before it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import ground, printing

if TYPE_CHECKING:
    from panda.plan.model import Plan


def plan(
    topology: ground.TopologyArgument,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    commands: Annotated[bool, typer.Option("--commands", help="Show every command in full.")] = False,
    as_json: printing.JsonOption = False,
) -> None:
    """Show exactly what `panda deploy` would do.

    Example: panda plan topologies/three-brokers.txt --local
    """
    with ground.failing():
        from panda.plan.planning import Choices, plan_of_topology

        read = ground.read(topology, variables, quiet=as_json)
        folder = ground.RUNS / "plan" if local else None
        found = plan_of_topology(
            read, ground.hosts_of(read, inventory, folder), Choices(run=f"(new)-{read.name}")
        )
        printing.result(data_of(found), text_of(found, commands=commands), as_json=as_json)


def text_of(plan: Plan, *, commands: bool = False) -> str:
    lines = [f"{plan.name}: {len(plan.processes)} processes on {len(plan.hosts)} hosts"]
    for host in plan.hosts:
        where = f"this machine, {host.address}" if host.local else _login(host)
        lines.append(f"  {host.name:<16} {where}")
    lines.append("Phase 1, at once:")
    lines += _processes(plan, 1, commands)
    links = ", ".join(map(str, plan.gate_links)) or "no links"
    lines.append(f"Gate, at most {plan.gate_timeout_s:g} s: all of these ready, and up at both ends: {links}")
    lines.append("Phase 2, by the agents' clocks:")
    for step in plan.steps:
        if step.at_s == 0 and step.action == "add" and plan.process(step.process).phase == 1:
            continue
        what = " ".join(filter(None, (step.fault or step.action, step.process, step.peer, step.text)))
        value = f" {step.value:g}" if step.value is not None else ""
        lease = f" for {step.for_s:g} s" if step.for_s is not None else ""
        lines.append(f"  {step.at_s:>9.3f} s  {what}{value}{lease} on {step.host}")
        if step.action == "add" and commands:
            lines.append(f"               {_command(plan, step.process)}")
    if plan.stop_at_s is not None:
        lines.append(f"  {plan.stop_at_s:>9.3f} s  stop everything")
    return "\n".join(lines)


def _processes(plan: Plan, phase: int, commands: bool) -> list[str]:
    lines = []
    for each in plan.processes:
        if each.phase == phase:
            what = each.word or each.arguments[0]
            named = f" as {each.speaks}" if each.speaks and each.speaks != each.id else ""
            at = f" at {each.address}" if each.address else ""
            lines.append(f"  {each.id:<16} {what}{named}{at} on {each.host}")
            if commands:
                lines.append(f"      {_command(plan, each.id)}")
    return lines or ["  nothing"]


def _command(plan: Plan, id_: str) -> str:
    from panda.hosts.quoting import quote

    process = plan.process(id_)
    words = ((process.word,) if process.word else ()) + process.arguments
    return " ".join(map(quote, words))


def _login(host: object) -> str:
    user, where, port = (getattr(host, name) for name in ("user", "where", "port"))
    return f"ssh {user + '@' if user else ''}{where}{'' if port == 22 else f' port {port}'}"


def data_of(plan: Plan) -> dict[str, object]:
    from dataclasses import asdict

    return {**asdict(plan), "environment": sorted(plan.environment)}
