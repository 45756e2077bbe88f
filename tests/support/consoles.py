"""The console under test: driven by keys, looked at as text, waited for by conditions."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from panda.experiment.deployment import keep_record
from panda.experiment.folder import RunFolder
from panda.hosts.sources.resolution import local_hosts
from panda.plan.planning import Choices, plan_of_topology
from panda.topology.reading import read_topology
from panda_tui.app import ConsoleApp

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


def screen_text(app: ConsoleApp) -> str:
    """What is on the terminal, without colours."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in rows)


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
