"""Decides how a topology becomes a run from here: what is checked first, and who is told how it goes.

Blocks; a worker's thread runs it. The controller leaves when phase 2 has begun: from then on the agents keep
the schedule, and the console watches like everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from panda.experiment.folder import RunFolder, RunRefused

if TYPE_CHECKING:
    from panda.deploy.controller import Watcher
    from panda.experiment.deployment import Outcome
    from panda.plan.model import Plan
    from panda.topology.problems import Reading


@dataclass(frozen=True, slots=True)
class Order:
    """What a person has filled in."""

    path: Path
    variables: Mapping[str, object] = field(default_factory=dict)
    local: bool = True
    inventory: Path | None = None
    name: str = ""

    def read(self) -> Reading:
        from panda.topology.reading import open_topology

        return open_topology(self.path, self.variables)


def preview(order: Order) -> Plan:
    """What it would do; nothing is taken or written."""
    from panda.cli import ground
    from panda.plan.planning import Choices, plan_of_topology

    topology = order.read().accepted()
    hosts = ground.hosts_of(topology, order.inventory, ground.RUNS / "plan" if order.local else None)
    return plan_of_topology(topology, hosts, Choices(run=f"(new)-{topology.name}"))


def prepare(order: Order, runs: Path, token: str) -> tuple[RunFolder, Plan]:
    """The run's folder with its record in it, and no trace of it when that does not come about."""
    from panda.cli import ground
    from panda.experiment.deployment import keep_record
    from panda.plan.planning import Choices, plan_of_topology

    topology = order.read().accepted()
    if not topology.processes:
        raise RunRefused(f"{order.path} starts nothing: it has no ADD line")
    folder = RunFolder.create(runs, order.name or topology.name, time.time())
    try:
        hosts = ground.hosts_of(topology, order.inventory, folder.local if order.local else None, take=True)
        environment = {"PANDA_TOKEN": token} if token else {}
        plan = plan_of_topology(topology, hosts, Choices(run=folder.id, environment=environment))
        keep_record(folder, topology, plan, order.path.suffix or ".txt")
    except BaseException:
        folder.discard()
        raise
    return folder, plan


def deploy(folder: RunFolder, plan: Plan, watcher: Watcher) -> Outcome:
    from panda.cli import ground
    from panda.deploy.coordinator import Ending
    from panda.experiment.deployment import Manner, conduct

    manner = Manner(ending=Ending.SCHEDULE, leave_after_go=True)
    return conduct(folder, plan, ground.crew_of(folder.id), watcher, manner)


def variables_of(text: str) -> dict[str, object]:
    """`brokers=5 hosts=2`; ValueError says what is wrong."""
    from panda.topology.templates import read_variable

    return dict(read_variable(word) for word in text.split())
