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
        from broker_runtime.agent.protocol import RequestRefused
        from panda.deploy.controller import recall
        from panda.deploy.crew import HostsFailed
        from panda.deploy.view import RunView
        from panda.experiment.adding import addition_of
        from panda.experiment.folder import RunRefused

        folder = ground.find_run(runs, run)
        plan = folder.read_plan(ground.environment_of(token_file))
        crew = ground.crew_of(folder.id)
        given = recall(folder, RunView(plan))
        if folder.over:
            raise RunRefused(f"{folder.id} is over")
        if given is None:
            raise RunRefused(f"{folder.id} has not begun phase 2")
        now = time.time()
        added = addition_of(plan, folder.lines(), line, now=now, since_t0_s=now - given.ours)
        if not added.requests:
            raise RunRefused(f"{line!r} adds nothing: write a line such as 0 CUT BrokerA BrokerB for 5s")
        hosts = [host for host in plan.hosts if host.name in {name for name, _ in added.requests}]
        with folder.locked(crew.holder, force=force):
            sessions, failures = crew.reach_all(hosts, None, steer=True, force=force, start=False)
            try:
                if failures:
                    raise HostsFailed(failures)
                for name, request in added.requests:
                    sessions[name].request("step", request)
            except RequestRefused as refused:
                raise RunRefused(f"{folder.id}: {refused.message}") from None
            finally:
                for session in sessions.values():
                    session.close()
                crew.close()
            folder.add_line(line, added.plan, who=crew.holder)
        told = {"run": folder.id, "steps": len(added.requests)}
        steps = printing.counted(len(added.requests), "step")
        printing.result(told, f"{steps} added to {folder.id}", as_json=as_json)
