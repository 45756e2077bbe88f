"""`panda upload`: bring the runtime to hosts ahead of a deployment, or go back to the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import ground, printing

if TYPE_CHECKING:
    from panda.hosts.bundle import Installed
    from panda.hosts.host import Host


def upload(
    topology: ground.TopologyArgument,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    back: Annotated[bool, typer.Option("--rollback", help="Go back to the bundle before this one.")] = False,
    as_json: printing.JsonOption = False,
) -> None:
    """Bring the runtime to every host of a topology.

    A host that has it already is sent nothing.

    Example: panda upload topo.txt --inventory hosts.yml
    """
    from concurrent.futures import ThreadPoolExecutor

    with ground.failing():
        from panda.deploy.crew import AT_ONCE, HostsFailed
        from panda.hosts.bundle import build
        from panda.hosts.keys import KnownHosts
        from panda.hosts.remote import HostError

        read = ground.read(topology, variables, quiet=as_json)
        hosts = list(ground.hosts_of(read, inventory, ground.RUNS / "upload" if local else None).values())
        keys, bundle = KnownHosts(), build(ground.cache_folder())

        def bring(host: Host) -> Installed | HostError:
            from panda.hosts.bundle import install, rollback
            from panda.hosts.remote import connect

            try:
                remote = connect(host, keys)
                try:
                    return rollback(remote) if back else install(remote, bundle)
                finally:
                    remote.close()
            except HostError as error:
                return error

        with ThreadPoolExecutor(min(AT_ONCE, max(1, len(hosts)))) as pool:
            brought = dict(zip((host.name for host in hosts), pool.map(bring, hosts), strict=True))
        for name, found in brought.items():
            if not isinstance(found, HostError):
                data = {"host": name, "folder": found.folder, "sent_bytes": found.sent_bytes}
                said = f"{name}: {found.folder}, {found.sent_bytes} bytes sent"
                printing.result(data, said, as_json=as_json)
        failures = [found for found in brought.values() if isinstance(found, HostError)]
        if failures:
            raise HostsFailed(failures)
