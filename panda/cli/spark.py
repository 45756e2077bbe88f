"""`panda spark up`, `down` and `status`: a Spark server that is kept warm, so that answers come quickly."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli import desk, ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.analysis.server import Server

_MEMORY = re.compile(r"(\d+)([mMgG])")

app = typer.Typer(
    help="Keep a Spark server warm on this machine, which analyze, compare and query then use.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def up(
    cores: Annotated[int, typer.Option(metavar="N", min=0, max=1024, help="Cores to use; all, if 0.")] = 0,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Such as 2g; a quarter of the machine's.")] = "",
    as_json: printing.JsonOption = False,
) -> None:
    """Start the server, and wait until it works.

    Only this user can use it, from this machine, until panda spark down. One that is up already is kept.

    Example: panda spark up --memory 2g
    """
    from panda.analysis import server

    with desk.failing():
        memory_mb = _read_memory(memory) if memory else server.default_memory_mb()
        with desk.Stages("starting the server", quiet=as_json):
            there, fresh = server.up(
                ground.cache_folder(), cores=cores or server.default_cores(), memory_mb=memory_mb
            )
    data = {**data_of(there), "fresh": fresh}
    printing.result(data, f"{'up' if fresh else 'up already'}: {_about(there)}", as_json=as_json)


@app.command()
def down(as_json: printing.JsonOption = False) -> None:
    """End the server and everything that it started.

    Example: panda spark down
    """
    from panda.analysis import server

    with desk.failing():
        ended = server.down(ground.cache_folder())
    text = f"the server (pid {ended.pid}) is down" if ended else "there was no server"
    printing.result({"ended": ended.pid if ended else None}, text, as_json=as_json)


@app.command()
def status(as_json: printing.JsonOption = False) -> None:
    """Show whether the server is up.

    Exit code 1 when it is not.

    Example: panda spark status
    """
    from panda.analysis import server

    cache = ground.cache_folder()
    there = server.recorded(cache)
    if there is None:
        data: dict[str, Any] = {"state": "down"}
        printing.result(data, "down: panda spark up starts it", as_json=as_json)
        raise typer.Exit(Exit.FAILED)
    state = "dead" if not there.lives else "up" if there.answers else "silent"
    data = {"state": state, **data_of(there)}
    texts = {
        "up": f"up: {_about(there)}",
        "silent": f"pid {there.pid} runs and does not answer at port {there.port}: panda spark down ends it",
        "dead": f"it died (pid {there.pid}), its log is {server.server_log(cache)}: panda spark up",
    }
    printing.result(data, texts[state], as_json=as_json)
    if state != "up":
        raise typer.Exit(Exit.FAILED)


def data_of(server: Server) -> dict[str, Any]:
    """What may be shown: all but the token."""
    return {
        "pid": server.pid,
        "port": server.port,
        "spark": server.spark,
        "fits": server.fits,
        "cores": server.cores,
        "memory_mb": server.memory_mb,
        "since": server.since,
    }


def _about(server: Server) -> str:
    size = f"{printing.counted(server.cores, 'core')}, {server.memory_mb} MB"
    since = time.strftime("%d %b %H:%M:%S", time.localtime(server.since))
    misfit = "" if server.fits else ", not used: panda spark up replaces it by this panda's version"
    return f"Spark {server.spark} at 127.0.0.1:{server.port}, pid {server.pid}, {size}, since {since}{misfit}"


def _read_memory(text: str) -> int:
    read = _MEMORY.fullmatch(text)
    size_mb = int(read[1]) * (1024 if read[2] in "gG" else 1) if read else 0
    if not 512 <= size_mb <= 1 << 20:
        raise typer.BadParameter(
            f"{text!r} is no size of 512m or more, such as 800m or 2g", param_hint="--memory"
        )
    return size_mb
