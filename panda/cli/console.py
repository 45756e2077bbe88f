"""`panda console`: the Textual console, which is a program of its own. `panda` starts it and steps aside."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from panda.cli import ground, printing
from panda.cli.exits import Exit


def console(
    wanted: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Id of the run to open, or a part; else a list of them.")
    ] = "",
    broker: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="A broker to connect to, with or without a run.")
    ] = "",
    light: Annotated[bool, typer.Option("--light", help="Dark on light; F2 changes it.")] = False,
    web: Annotated[
        bool,
        typer.Option("--web", help="In a browser of this machine, at an address that it prints."),
    ] = False,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="For --web; any free one.")] = 0,
    token_file: ground.TokenOption = None,
    runs: ground.RunsOption = ground.RUNS,
) -> None:
    """Watch and steer runs, at the terminal or in a browser.

    Runs, brokers, schedule, hosts, logs, messages, analysis: F1 explains each screen.

    Example: panda console
    """
    words = ["--runs", str(runs), *(["--light"] if light else [])]
    with ground.failing():
        if wanted:
            folder = ground.find_run(runs, wanted)
            words += ["--runs", str(folder.path.parent), "--run", folder.id]
    if broker:
        words += ["--broker", _address(broker)]
    if token_file is not None:
        ground.environment_of(token_file)
        words += ["--token-file", str(token_file)]
    if web:
        words += ["--web", "--port", str(port)]
    elif not printing.at_terminal():
        printing.problem("the console needs a terminal: panda shell is for pipes and scripts")
        raise typer.Exit(Exit.REFUSED)
    # -P: a file of the user's folder must not stand in for a module.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "panda_tui", *words])  # noqa: S606 — it takes our place at the terminal


def _address(text: str) -> str:
    from broker_runtime.addresses import parse_target

    try:
        return str(parse_target(text))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint="--broker") from None
