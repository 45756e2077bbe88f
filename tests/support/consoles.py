"""The console under test: driven by keys, looked at as text, waited for by conditions."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from panda.deploy.crew import Crew
from panda.experiment.deployment import keep_record
from panda.experiment.folder import RunFolder
from panda.hosts.keys import KnownHosts
from panda.hosts.sources.resolution import local_hosts
from panda.plan.planning import Choices, plan_of_topology
from panda.topology.reading import read_topology
from panda_tui.agents import AgentFeed
from panda_tui.app import ConsoleApp
from panda_tui.composing import kind_of, steps_of
from panda_tui.model import Connection, HostRow, Process, Snapshot, State
from panda_tui.options import Options
from panda_tui.watch import Piece
from tests.support.watching import FakeWatch, network, screen_text

__all__ = ["screen_text"]

TIMEOUT_S = 30.0

CHAIN = """\
0 ADD Alice 10.0.1.1 startbroker.sh -p 10000 -i Alice
0 ADD Bob 10.0.1.2 startbroker.sh -p 10000 -i Bob -n 10.0.1.1:10000
0 ADD Carol 10.0.1.3 startbroker.sh -p 10000 -i Carol -n 10.0.1.2:10000
1 ADD S0 10.0.1.3 startSQsubscriber.sh -i S0 -b 10.0.1.3:10000 -s "[class,eq,'STOCK']" --quiet
1 ADD P0 10.0.1.1 startSQpublisher.sh -i P0 -b 10.0.1.1:10000 -s YHOO -r 600
2 MARK it begins
600 REMOVE S0 10.0.1.3
"""


async def until(
    pilot: Pilot[None], holds: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S
) -> None:
    """Wait for a condition; what was on the screen is told when it does not come about."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"not in time: {what}\n{screen_text(pilot.app)}"  # type: ignore[arg-type]
        await pilot.pause(0.05)


async def until_shown(pilot: Pilot[None], text: str, timeout_s: float = TIMEOUT_S) -> None:
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await until(pilot, lambda: text in screen_text(app), f"{text!r} is shown", timeout_s)


async def until_told(pilot: Pilot[None], text: str) -> None:
    """In one of the notices, which the test terminal does not show."""
    app = pilot.app
    await until(pilot, lambda: any(text in each.message for each in app._notifications), f"{text!r} is told")


def kept_run(runs: Path, lines: str = CHAIN, name: str = "chain", now: float = 1_000_000_000.0) -> RunFolder:
    """The folder of a run that was ordered and never begun; what happened to it is for the test to record."""
    topology = read_topology(lines, f"{name}.txt").accepted()
    folder = RunFolder.create(runs, name, now)
    hosts = local_hosts(topology.hosts, folder.local.absolute())
    keep_record(folder, topology, plan_of_topology(topology, hosts, Choices(run=folder.id)), ".txt")
    return folder


def close_all(folder: RunFolder) -> None:
    """As if it had been stopped and cleaned up."""
    for host in folder.read_plan().hosts:
        folder.record("closed", host=host.name, cleaned=True, problems=[])


class LoggedWatch(FakeWatch):
    """A run whose processes have said what the test says."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.files: dict[tuple[str, str], bytes] = {}

    def change(self, **changes: object) -> None:
        self.snapshot = replace(self.snapshot, **changes)  # type: ignore[arg-type]
        if self._tell is not None:
            self._tell(self.snapshot)

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        data = self.files.get((process, stream), b"")
        return Piece(data[offset : offset + length], len(data))


def run_snapshot(folder: RunFolder, **changes: object) -> Snapshot:
    """As it would be if all of the plan were there and well, ten seconds after phase 2 began."""
    agents = AgentFeed(folder, Crew(folder.id, KnownHosts(), Path(), "the test"))
    t0 = 1_000_000_000.0
    for host in agents.view.hosts.values():
        host.t0 = t0
    steps = steps_of(agents.plan, agents.view, t0, {})
    processes = tuple(
        Process(each.id, each.host, State.RUNNING, kind_of(each), each.speaks, 100 + number, 1, each.address)
        for number, each in enumerate(agents.plan.processes)
    )
    hosts = tuple(
        HostRow(each.name, each.where, True, "", 0.0012, 0.0001, 0.0, 0.5, 2, 9 << 30, 4 << 30)
        for each in agents.plan.hosts
    )
    known = Snapshot(
        at=t0 + 10,
        run=folder.id,
        state="running",
        t0=t0,
        hosts=hosts,
        processes=processes,
        steps=steps,
        overlay=network(("Alice", "Bob"), ("Bob", "Carol"), clients={"P0": "Alice", "S0": "Carol"}),
        connection=Connection.CONNECTED,
        connected_to="Alice",
    )
    return replace(known, **changes)  # type: ignore[arg-type]


def console_of(folder: RunFolder, watch: LoggedWatch) -> ConsoleApp:
    """The console with this run open; `action_go` leads to its screens."""
    app = ConsoleApp(Options(folder.path.parent), watch, lambda: watch.snapshot.at)
    app.folder = folder
    return app
