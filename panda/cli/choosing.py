"""Decides which hosts a verb is about: those of a topology, of an inventory, or named one by one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import ground

if TYPE_CHECKING:
    from panda.hosts.host import Host
    from panda.topology.model import Topology

HostsOption = Annotated[
    list[str] | None, typer.Option("--host", metavar="HOST", help="A host; may be said several times.")
]
TopologyArgument = Annotated[
    Path | None, typer.Argument(metavar="TOPOLOGY", help="The topology whose hosts are meant.")
]


def choose(named: list[str] | None, topology: Topology | None, inventory: Path | None) -> list[Host]:
    """Hosts that are named, else those of the topology, else all of the inventory."""
    from panda.hosts.sources import open_source, resolve

    source = open_source(inventory) if inventory is not None else None
    names = list(named or ()) or (list(topology.hosts) if topology is not None else None)
    if names is None:
        if source is None:
            raise typer.BadParameter("name a topology, a --host or an --inventory")
        names = source.names()
    return resolve(names, source)


def read(path: Path | None, variables: list[str] | None, *, quiet: bool) -> Topology | None:
    return ground.read(path, variables, quiet=quiet) if path is not None else None
