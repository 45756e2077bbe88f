"""`panda doctor`: whether hosts are fit for an experiment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import choosing, ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.hosts.doctor import Check, Report
    from panda.hosts.host import Host
    from panda.topology.model import Topology

SIGNS = {"ok": "ok", "failed": "FAILED", "unknown": "-"}


def doctor(
    topology: choosing.TopologyArgument = None,
    hosts: choosing.HostsOption = None,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    timeout_s: Annotated[
        float,
        typer.Option("--timeout", min=1, max=600, metavar="SECONDS", help="How long to wait for a host."),
    ] = 15.0,
    as_json: printing.JsonOption = False,
) -> None:
    """Check hosts side by side.

    Reachable, host key, login, Python, disk, clock, ports, speed.

    Example: panda doctor topologies/three-brokers.txt --inventory hosts.ini
    """
    with ground.failing():
        read = choosing.read(topology, variables, quiet=as_json)
        reports = _examine(read, hosts, inventory, local, timeout_s, quiet=as_json)
    data = {"hosts": [_data(report) for report in reports]}
    printing.result(data, _text(reports), as_json=as_json)
    if not all(report.reachable for report in reports):
        raise typer.Exit(Exit.UNREACHABLE)
    if not all(report.fit for report in reports):
        raise typer.Exit(Exit.FAILED)


def _examine(
    topology: Topology | None,
    named: list[str] | None,
    inventory: Path | None,
    local: bool,
    timeout_s: float,
    *,
    quiet: bool,
) -> list[Report]:
    import tempfile

    from panda.hosts.doctor import check
    from panda.hosts.keys import KnownHosts
    from panda.hosts.local import LocalRemote
    from panda.hosts.remote import Remote, connect

    keys = KnownHosts()

    def told(report: Report) -> None:
        if not quiet and printing.at_terminal():
            printing.note(f"{report.host.name}: {'fit' if report.fit else 'not fit'}, {report.seconds:.1f} s")

    with tempfile.TemporaryDirectory(prefix="panda-doctor-") as name:

        def reach(host: Host) -> Remote:
            if host.local:  # it needs a home, and nothing of it is to stay
                return LocalRemote(host, Path(name) / "home" / host.where)
            return connect(host, keys, timeout_s=timeout_s)

        if local:
            chosen = _here(topology, named, Path(name))
        else:
            chosen = choosing.choose(named, topology, inventory)
        return check(reach, chosen, _ports(topology), timeout_s=timeout_s, on_report=told)


def _here(topology: Topology | None, named: list[str] | None, folder: Path) -> list[Host]:
    from panda.hosts.sources import local_hosts

    if named:
        return list(local_hosts(named, folder).values())
    if topology is None:
        raise typer.BadParameter("name a topology or a --host")
    # As a deployment would have it: if another run has the usual addresses, on other ones.
    return list(ground.hosts_of(topology, None, folder, take=True).values())


def _ports(topology: Topology | None) -> dict[str, list[int]]:
    ports: dict[str, list[int]] = {}
    for process in topology.processes if topology is not None else ():
        if process.listen is not None and process.listen.port:
            ports.setdefault(process.host, []).append(process.listen.port)
    return ports


def _data(report: Report) -> dict[str, object]:
    checks = {
        str(check.name): {
            "verdict": str(check.verdict),
            "text": check.text,
            "hint": check.hint,
            **check.values,
        }
        for check in report.checks
    }
    return {
        "host": report.host.name,
        "address": report.host.where,
        "reachable": report.reachable,
        "fit": report.fit,
        "seconds": round(report.seconds, 3),
        "checks": checks,
    }


def _text(reports: Sequence[Report]) -> str:
    """A table, and under it what is wrong and what would help."""
    if not reports:
        return "no hosts"
    heads = ["host", *(str(check.name) for check in reports[0].checks)]
    rows = [[report.host.name, *(_cell(check) for check in report.checks)] for report in reports]
    wrong = [
        f"{report.host.name}: {check.name}: {check.text}" + (f" ({check.hint})" if check.hint else "")
        for report in reports
        for check in report.failures
    ]
    fit = sum(report.fit for report in reports)
    return "\n".join([_table(heads, rows), *wrong, f"{fit} of {len(reports)} hosts are fit"])


def _cell(check: Check) -> str:
    if check.verdict == "ok" and check.text:
        return check.text
    return SIGNS[check.verdict]


def _table(heads: list[str], rows: list[list[str]]) -> str:
    if sys.stdout is None or not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        head = "  ".join(cell.ljust(width) for cell, width in zip(heads, widths, strict=True))
        return "\n".join(line.rstrip() for line in [head, *lines])
    from io import StringIO

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number, head in enumerate(heads):
        longest = max(map(len, head.split()))
        table.add_column(head, no_wrap=number == 0, overflow="fold", min_width=longest)
    for row in rows:
        cells = [Text(cell, style="bold red" if cell == SIGNS["failed"] else "") for cell in row]
        table.add_row(*cells)
    drawn = StringIO()
    Console(file=drawn, force_terminal=True).print(table)
    return drawn.getvalue().strip("\n")
