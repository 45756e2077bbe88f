"""`panda step`: one more timed line for a run that goes on."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from panda.cli import ground, printing


def step(
    line: Annotated[str, typer.Argument(metavar="LINE", help="As in a topology; times since phase 2 began.")],
    run: Annotated[str, typer.Option(metavar="RUN", help="Id of the run, or a part; the newest.")] = "",
    force: ground.ForceOption = False,
    token_file: ground.TokenOption = None,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Add a line to a running deployment.

    With the same checks as in its file. A time that is past means now.

    Example: panda step "0 CUT BrokerA BrokerB for 5s"
    """
    with ground.failing():
        from panda.experiment.adding import addition_to, hand_out

        folder = ground.find_run(runs, run)
        plan = folder.read_plan(ground.environment_of(token_file))
        crew = ground.crew_of(folder.id)
        added = addition_to(folder, plan, line, now=time.time())
        with folder.locked(crew.holder, force=force):
            hand_out(folder, added, line, crew, force=force)
        told = {"run": folder.id, "steps": len(added.requests)}
        steps = printing.counted(len(added.requests), "step")
        printing.result(told, f"{steps} added to {folder.id}", as_json=as_json)
