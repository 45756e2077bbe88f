"""Decides what verbs have in common: how a topology, its hosts and a run are named, and how they can fail."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.deploy.crew import Crew
    from panda.experiment.folder import RunFolder
    from panda.hosts.host import Host
    from panda.topology.model import Topology

TopologyArgument = Annotated[Path, typer.Argument(metavar="TOPOLOGY", help="The topology file.")]
RunArgument = Annotated[str, typer.Argument(metavar="[RUN]", help="Id of the run, or a part; the newest.")]
VariablesOption = Annotated[
    list[str] | None, typer.Option("-D", metavar="NAME=VALUE", help="A variable of the template.")
]
InventoryOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Where hosts are: Ansible inventory, ssh_config, GENI manifest, Slurm nodes."
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="On this machine: a loopback address stands in for each host.")
]
RunsOption = Annotated[Path, typer.Option(metavar="FOLDER", help="Where runs are kept.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Take the run over from another controller.")]
TokenOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the token that brokers and clients share."),
]

RUNS = Path("runs")


@contextmanager
def failing() -> Iterator[None]:
    """Whatever a deployment can fail with becomes one message and an exit code."""
    from panda.deploy.controller import Displaced
    from panda.deploy.crew import HeldByAnother, HostsFailed
    from panda.experiment.folder import Locked, RunRefused
    from panda.hosts.bundle import BundleRefused
    from panda.hosts.loopback import NoNetwork
    from panda.hosts.remote import HostError
    from panda.hosts.sources.refusal import SourceRefused
    from panda.topology.problems import TopologyRefused

    try:
        yield
    except (TopologyRefused, SourceRefused) as refused:
        for problem in refused.problems:
            printing.note(str(problem))
        raise typer.Exit(Exit.REFUSED) from None
    except (RunRefused, BundleRefused, NoNetwork) as refused:
        printing.problem(str(refused))
        raise typer.Exit(Exit.REFUSED) from None
    except Locked as locked:
        hint = "wait for it, or take the run over with --force"
        printing.problem(f"another controller steers this run: {locked.holder} ({hint})")
        raise typer.Exit(Exit.LOCKED) from None
    except Displaced as displaced:
        printing.problem(str(displaced))
        raise typer.Exit(Exit.LOCKED) from None
    except HostsFailed as failed:
        for failure in failed.failures:
            printing.problem(str(failure))
        held = all(isinstance(each, HeldByAnother) for each in failed.failures)
        raise typer.Exit(Exit.LOCKED if held else Exit.UNREACHABLE) from None
    except HostError as error:
        printing.problem(str(error))
        raise typer.Exit(Exit.UNREACHABLE) from None


def read(path: Path, variables: list[str] | None, *, quiet: bool = False) -> Topology:
    """The topology; refused with all of its problems."""
    from panda.topology.reading import open_topology

    reading = open_topology(path, read_variables(variables))
    topology = reading.accepted()
    if reading.warnings and not quiet:
        count = len(reading.warnings)
        printing.note(f"{path}: {count} warning{'s' * (count > 1)}, which panda validate shows")
    return topology


def read_variables(given: list[str] | None) -> dict[str, object]:
    from panda.topology.templates import read_variable

    try:
        return dict(read_variable(each) for each in given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="-D") from None


def hosts_of(
    topology: Topology, inventory: Path | None, local: Path | None, *, take: bool = False
) -> dict[str, Host]:
    """Who stands for each host of the topology; with `local`, folders on this machine.

    To take the local ones is to keep other runs off their addresses.
    """
    from panda.hosts.loopback import FIRST, take_network
    from panda.hosts.sources.reading import open_source
    from panda.hosts.sources.resolution import local_hosts, local_part, resolve

    if local is not None and inventory is not None:
        raise typer.BadParameter("it says where hosts are, and --local that they are here: choose one")
    if local is not None:
        order = {name: number for number, name in enumerate(topology.hosts)}
        listen = [each.listen for each in topology.processes if each.listen and each.listen.host in order]
        network = (
            take_network((local_part(order[each.host]), each.port) for each in listen) if take else FIRST
        )
        return local_hosts(topology.hosts, local.absolute(), network)
    source = open_source(inventory) if inventory is not None else None
    return {host.name: host for host in resolve(topology.hosts, source)}


def environment_of(token_file: Path | None) -> dict[str, str]:
    """What processes get to know: the token, by file or from PANDA_TOKEN."""
    from broker_runtime.client import find_token

    try:
        token = find_token(file=token_file)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--token-file") from None
    except OSError as error:
        raise typer.BadParameter(f"{token_file}: {error.strerror}", param_hint="--token-file") from None
    return {"PANDA_TOKEN": token} if token else {}


def holder() -> str:
    """Who we are, to whoever finds a run taken."""
    return f"{getpass.getuser()}@{socket.gethostname()} (pid {os.getpid()})"


def crew_of(run: str) -> Crew:
    from panda.deploy.crew import Crew
    from panda.hosts.keys import KnownHosts

    return Crew(run, KnownHosts(), cache_folder(), holder())


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "panda"


def find_run(runs: Path, wanted: str) -> RunFolder:
    from panda.experiment.folder import RunFolder

    return RunFolder.find(runs, wanted)


def confirmed(question: str, yes: bool) -> bool:
    """Whether a person agrees; without a terminal nobody is asked, and --yes has to have been said."""
    if yes:
        return True
    if not printing.at_terminal():
        printing.problem("nobody can be asked here: say --yes")
        raise typer.Exit(Exit.REFUSED)
    return typer.confirm(question, err=True)
