"""`panda trust`: shows the keys of hosts, asks, and writes them down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import choosing, ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.hosts.host import Host
    from panda.hosts.keys import HostKey, KnownHosts


def trust(
    hosts: Annotated[list[str] | None, typer.Argument(metavar="HOST", help="Hosts to trust.")] = None,
    inventory: ground.InventoryOption = None,
    yes: ground.YesOption = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let a new key take the place of an old one.")
    ] = False,
    as_json: printing.JsonOption = False,
) -> None:
    """Show the keys that hosts offer; if you agree, trust them.

    Compare the fingerprints with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` says on the host.

    Example: panda trust 10.0.1.1 10.0.1.2
    """
    if not hosts and inventory is None:
        raise typer.BadParameter("name hosts, or an --inventory")
    with ground.failing():
        from panda.hosts.keys import KnownHosts
        from panda.hosts.remote import HostError, Unreachable

        keys = KnownHosts()
        worst = Exit.DONE
        for host in choosing.choose(hosts, None, inventory):
            try:
                _trust(host, keys, yes=yes, replace=replace, as_json=as_json)
            except HostError as error:
                printing.problem(str(error))
                worst = max(worst, Exit.UNREACHABLE if isinstance(error, Unreachable) else Exit.FAILED)
            except _Declined:
                worst = max(worst, Exit.FAILED)
    raise typer.Exit(worst)


class _Declined(Exception):
    """A person said no."""


def _trust(host: Host, keys: KnownHosts, *, yes: bool, replace: bool, as_json: bool) -> None:
    from panda.hosts.keys import Standing, refusal

    offered = keys.offered(host)
    name = keys.name_of(host)
    verdicts = [keys.judge(name, key) for key in offered]
    _show(
        host, list(zip(offered, (str(verdict.standing.value) for verdict in verdicts), strict=True)), as_json
    )
    for key, verdict in zip(offered, verdicts, strict=True):
        if verdict.standing is Standing.REVOKED:
            raise refusal(host, name, key, verdict)
    if any(verdict.standing is Standing.KNOWN for verdict in verdicts):
        printing.note(f"{host.name}: trusted already")
        return
    # One key is enough, and the first is of the best kind; from then on the host is asked for that kind.
    key, verdict = offered[0], verdicts[0]
    if verdict.standing is Standing.CHANGED and not replace:
        raise refusal(host, name, key, verdict)
    old = " in place of the old one" if verdict.standing is Standing.CHANGED else ""
    if not ground.confirmed(f"{host.name}: trust {key.kind} {key.fingerprint}{old}?", yes):
        raise _Declined
    keys.trust(host, key, replace=replace)
    printing.note(f"{host.name}: trusted, in {keys.own}")


def _show(host: Host, keys: list[tuple[HostKey, str]], as_json: bool) -> None:
    data = {
        "host": host.name,
        "address": host.where,
        "keys": [
            {"kind": key.kind, "fingerprint": key.fingerprint, "standing": standing} for key, standing in keys
        ],
    }
    lines = [f"{host.name}  {key.kind:<20} {key.fingerprint}  {standing}" for key, standing in keys]
    printing.result(data, "\n".join(lines), as_json=as_json)
