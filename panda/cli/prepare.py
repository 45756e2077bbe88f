"""`panda prepare` and `panda unprepare`: what experiments need, put on hosts and taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import choosing, ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from panda.hosts.host import Host
    from panda.prepare.outcome import HostResult, Preparation, TaskResult
    from panda.prepare.preparation import Wish

BecomeOption = Annotated[bool, typer.Option("--become", help="Use sudo on the hosts for what needs root.")]
PasswordOption = Annotated[
    Path | None, typer.Option("--become-password-file", metavar="FILE", help="File with sudo's password.")
]
CheckOption = Annotated[bool, typer.Option("--check", help="Change nothing; say what would change.")]
PartsOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="PART", help="directories, packages, limits or time; may be repeated."),
]
TimeoutOption = Annotated[
    int, typer.Option("--timeout", min=10, max=86_400, metavar="SECONDS", help="How long all of it may take.")
]


def prepare(
    topology: choosing.TopologyArgument = None,
    hosts: choosing.HostsOption = None,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    only: PartsOption = None,
    become: BecomeOption = False,
    become_password_file: PasswordOption = None,
    check: CheckOption = False,
    timeout_s: TimeoutOption = 1800,
    as_json: printing.JsonOption = False,
) -> None:
    """Install what experiments need on hosts.

    Python, folders, limits, time synchronisation.

    Example: panda prepare --inventory hosts.ini --become
    """
    from panda.prepare.preparation import PARTS, Wish

    unknown = [part for part in only or () if part not in PARTS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(PARTS)}", param_hint="--only")
    wish = Wish(
        parts=tuple(dict.fromkeys(only or ())),
        become=become,
        become_password_file=str(become_password_file or ""),
        check=check,
        timeout_s=timeout_s,
    )
    with ground.failing():
        read = choosing.read(topology, variables, quiet=as_json)
        _run(choosing.choose(hosts, read, inventory), wish, as_json=as_json)


def unprepare(
    topology: choosing.TopologyArgument = None,
    hosts: choosing.HostsOption = None,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    become: BecomeOption = False,
    become_password_file: PasswordOption = None,
    check: CheckOption = False,
    timeout_s: TimeoutOption = 1800,
    as_json: printing.JsonOption = False,
) -> None:
    """Take back what `panda prepare` put on hosts.

    And nothing else.

    Example: panda unprepare --inventory hosts.yml --become
    """
    from panda.prepare.preparation import Wish

    wish = Wish(
        "teardown",
        become=become,
        become_password_file=str(become_password_file or ""),
        check=check,
        timeout_s=timeout_s,
    )
    with ground.failing():
        read = choosing.read(topology, variables, quiet=as_json)
        _run(choosing.choose(hosts, read, inventory), wish, as_json=as_json)


def _run(hosts: Sequence[Host], wish: Wish, *, as_json: bool) -> None:
    from panda.hosts.keys import KnownHosts
    from panda.prepare.preparation import CannotPrepare
    from panda.prepare.preparation import prepare as run_playbook

    keys = KnownHosts()
    try:
        with _progress(len(hosts)) as told:
            outcome = run_playbook(hosts, wish, [keys.own, *keys.files], keys.config.files, told)
    except CannotPrepare as error:
        printing.problem(str(error))
        raise typer.Exit(Exit.REFUSED) from None
    printing.result(_data(outcome), _text(outcome, wish), as_json=as_json)
    if outcome.unreachable:
        raise typer.Exit(Exit.UNREACHABLE)
    if not outcome.done:
        raise typer.Exit(Exit.FAILED)


@contextmanager
def _progress(count: int) -> Iterator[Callable[[TaskResult], None]]:
    """At a terminal one line that changes; elsewhere a line per result."""
    if not printing.at_terminal():
        yield lambda result: printing.note(str(result))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    doing: dict[str, str] = {}

    def told(result: TaskResult) -> None:
        doing[result.host] = result.task
        if result.state in ("changed", "failed", "unreachable"):
            console.print(str(result), markup=False, highlight=False)
        latest = f"{result.host}: {result.task}"
        status.update(Text(f"{len(doing)} of {count} hosts at work; {latest}", overflow="ellipsis"))

    with console.status(f"reaching {count} hosts") as status:
        yield told


def _data(outcome: Preparation) -> dict[str, object]:
    return {
        "done": outcome.done,
        "problem": outcome.problem,
        "hosts": [{**asdict(host), "state": str(host.state)} for host in outcome.hosts],
    }


def _text(outcome: Preparation, wish: Wish) -> str:
    lines = [_line(host, wish) for host in outcome.hosts]
    if outcome.problem:
        lines.append(f"failed: {outcome.problem}")
    return "\n".join(lines) or "no hosts"


def _line(host: HostResult, wish: Wish) -> str:
    if host.failure is None:
        changes = "would change" if wish.check else "changed"
        return f"{host.host}: done, {host.changed} {changes}, {host.ok} as they were, {host.skipped} skipped"
    hint = f" (panda trust {host.host})" if "Host key verification failed" in host.failure.reason else ""
    return f"{host.failure}{hint}"
