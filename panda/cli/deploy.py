"""`panda deploy`, `panda run` and `panda attach`: a topology becomes a running experiment."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli import ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.deploy.coordinator import Ending, Finish
    from panda.experiment.deployment import Outcome
    from panda.experiment.folder import RunFolder
    from panda.plan.model import Plan

PolicyOption = Annotated[
    str, typer.Option(metavar="continue|stop", help="When a process or a host fails during the run.")
]
GateOption = Annotated[float, typer.Option(metavar="S", min=1, max=86400, help="How long phase 1 may take.")]
ForOption = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="Stop everything so long after phase 2 began: 90, 1m30s."),
]
LogOption = Annotated[int, typer.Option(metavar="N", min=0, help="Log each N-th publication; 0 none.")]
NameOption = Annotated[str, typer.Option(metavar="NAME", help="Name of the run; the topology's.")]


def deploy(
    topology: ground.TopologyArgument,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    yes: ground.YesOption = False,
    detach: Annotated[bool, typer.Option("--detach", help="Leave when phase 2 has begun.")] = False,
    stay: Annotated[
        bool, typer.Option("--stay", help="Leave running what is there if phase 1 fails.")
    ] = False,
    for_time: ForOption = None,
    policy: PolicyOption = "continue",
    gate_timeout: GateOption = 60.0,
    log_every: LogOption = 1,
    token_file: ground.TokenOption = None,
    name: NameOption = "",
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Deploy a topology in two phases and follow it.

    Comes back when its schedule is done; what has no REMOVE line goes on running.

    Example: panda deploy topologies/three-brokers.txt --local --yes
    """
    from panda.deploy.coordinator import Ending

    with ground.failing():
        folder, plan = _ordered(
            topology,
            variables,
            inventory,
            local=local,
            yes=yes,
            choices=(for_time, policy, gate_timeout, log_every, token_file),
            name=name,
            runs=runs,
        )
        outcome = _conduct(
            folder, plan, ending=Ending.SCHEDULE, rollback=not stay, detach=detach, quiet=as_json
        )
    _report(folder, outcome, as_json, detached=detach)


def run(
    topology: ground.TopologyArgument,
    variables: ground.VariablesOption = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    for_time: ForOption = None,
    policy: PolicyOption = "continue",
    gate_timeout: GateOption = 60.0,
    log_every: LogOption = 1,
    token_file: ground.TokenOption = None,
    name: NameOption = "",
    no_analyze: Annotated[bool, typer.Option("--no-analyze", help="Leave out the analysis.")] = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Do a whole experiment without a person.

    Deploys, waits for the end, stops, collects the logs, sums up and analyses.

    It ends at --for, or when every step is done and nobody publishes any more. The exit code is the run's:
    an analysis that cannot be done is told of and changes nothing.

    Example: panda run topologies/three-brokers.txt --local
    """
    from panda.deploy.coordinator import Ending

    with ground.failing():
        folder, plan = _ordered(
            topology,
            variables,
            inventory,
            local=local,
            yes=True,
            choices=(for_time, policy, gate_timeout, log_every, token_file),
            name=name,
            runs=runs,
        )
        _refuse_endless(folder, plan)
        outcome = _conduct(folder, plan, ending=Ending.WORK, quiet=as_json)
    _report(folder, outcome, as_json, analyzed=not no_analyze)


def attach(
    wanted: ground.RunArgument = "",
    force: ground.ForceOption = False,
    token_file: ground.TokenOption = None,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Take up a deployment that its controller left.

    By will or by accident: also one whose controller was killed.

    Example: panda attach
    """
    from panda.deploy.coordinator import Ending
    from panda.experiment.folder import RunRefused

    with ground.failing():
        folder = ground.find_run(runs, wanted)
        plan = folder.read_plan(ground.environment_of(token_file))
        if folder.over:
            again = f"panda deploy {folder.path / 'lines.txt'} deploys it anew"
            raise RunRefused(f"{folder.id} is over, nothing of it is on its hosts: {again}")
        ending = Ending(folder.ending() or Ending.SCHEDULE)
        outcome = _conduct(folder, plan, ending=ending, force=force, quiet=as_json)
    _report(folder, outcome, as_json)


def _ordered(
    path: Path,
    variables: list[str] | None,
    inventory: Path | None,
    *,
    local: bool,
    yes: bool,
    choices: tuple[str | None, str, float, int, Path | None],
    name: str,
    runs: Path,
) -> tuple[RunFolder, Plan]:
    """The run's folder with its plan in it, agreed to."""
    from panda.cli.plan import text_of
    from panda.experiment.deployment import keep_record
    from panda.experiment.folder import RunFolder, RunRefused
    from panda.plan.model import Policy
    from panda.plan.planning import Choices, plan_of_topology
    from panda.topology.quantities import read_time

    for_time, policy, gate_timeout_s, log_every, token_file = choices
    try:
        stop_at_s = read_time(for_time) if for_time is not None else None
    except ValueError:
        wanted = f"{for_time!r} is no time, such as 90, 1m30s or 500ms"
        raise typer.BadParameter(wanted, param_hint="--for") from None
    if policy not in tuple(Policy):
        wanted = f"{policy!r} is neither {' nor '.join(Policy)}"
        raise typer.BadParameter(wanted, param_hint="--policy")
    chosen = Policy(policy)
    environment = ground.environment_of(token_file)
    topology = ground.read(path, variables)
    if not topology.processes:
        raise RunRefused(f"{path} starts nothing: it has no ADD line")
    folder = RunFolder.create(runs, name or topology.name, time.time())
    try:
        hosts = ground.hosts_of(topology, inventory, folder.local if local else None, take=True)
        plan = plan_of_topology(
            topology,
            hosts,
            Choices(
                run=folder.id,
                policy=chosen,
                stop_at_s=stop_at_s,
                gate_timeout_s=gate_timeout_s,
                log_every=log_every,
                environment=environment,
            ),
        )
        if not yes:
            printing.note(text_of(plan))
            if not ground.confirmed("Deploy this?", yes):
                raise typer.Exit(Exit.REFUSED)
        keep_record(folder, topology, plan, path.suffix or ".txt")
    except BaseException:
        folder.discard()
        raise
    return folder, plan


def _refuse_endless(folder: RunFolder, plan: Plan) -> None:
    """Somebody who publishes for ever needs an end."""
    removed = {step.process for step in plan.steps if step.action in ("remove", "kill")}
    endless = [
        each.id for each in plan.processes if each.publishes and not each.ends and each.id not in removed
    ]
    if endless and plan.stop_at_s is None:
        folder.discard()
        printing.problem(
            f"{', '.join(endless)} would publish for ever:"
            " give --count or --duration, a REMOVE line, or --for TIME"
        )
        raise typer.Exit(Exit.REFUSED)


def _conduct(
    folder: RunFolder,
    plan: Plan,
    *,
    ending: Ending,
    rollback: bool = True,
    force: bool = False,
    detach: bool = False,
    quiet: bool = False,
) -> Outcome:
    from panda.cli.display import Display
    from panda.experiment.deployment import Manner, conduct

    printing.note(f"run {folder.id}")
    manner = Manner(ending=ending, rollback=rollback, force=force, leave_after_go=detach)
    try:
        with Display(len(plan.hosts), quiet=quiet) as display:
            return conduct(folder, plan, ground.crew_of(folder.id), display.watcher(), manner)
    except KeyboardInterrupt:
        printing.problem(f"interrupted before everything was wound up: panda stop {folder.id} does the rest")
        raise


def _report(
    folder: RunFolder, outcome: Outcome, as_json: bool, *, detached: bool = False, analyzed: bool = False
) -> None:
    from panda.deploy.coordinator import Result
    from panda.experiment.summary import summary_of

    finish = outcome.finish
    data: dict[str, object] = {
        "run": folder.id,
        "folder": str(folder.path),
        "result": str(finish.result) if finish else "detached",
        "why": finish.why if finish else "",
        "sent_bytes": outcome.sent_bytes,
        "living": [each.planned.id for each in outcome.view.living],
    }
    lines = []
    if finish is not None and finish.result is Result.GATE_NOT_MET:
        data["missing"] = [str(each) for each in finish.missing]
        lines += _missing_lines(finish, outcome)
    if finish is not None and outcome.closed:
        summary = summary_of(folder, outcome.view)
        data["summary"] = summary.data()
        lines += summary.lines()
    for closed in outcome.closed:
        for problem in closed.problems:
            printing.problem(f"{closed.host}: {problem}")
    lines += _last_lines(folder, outcome)
    if not as_json:  # the summary is not kept waiting
        printing.result(data, "\n".join(lines))
    if analyzed and finish is not None and finish.result is not Result.GATE_NOT_MET and outcome.closed:
        data["analysis"] = None if outcome.interrupted else _analysis(folder, as_json)
    if as_json:
        printing.result(data, "", as_json=True)
    code = exit_code(outcome)
    if code == Exit.DONE and detached and outcome.view.living:
        code = Exit.DETACHED
    if code:
        raise typer.Exit(code)


def _analysis(folder: RunFolder, as_json: bool) -> dict[str, Any]:
    """What the analysis says of the run; whatever keeps it from saying it is told, and no more than that."""
    from panda.analysis.refusals import AnalysisFailed, AnalysisRefused
    from panda.cli import desk
    from panda.cli.analyze import analysis_of, lines_of

    try:
        answer = analysis_of(desk.desk_of(folder.path.parent, quiet=as_json), [folder])
    except AnalysisRefused as refused:
        printing.problem(f"not analysed: {refused}")
        return {"error": str(refused)}
    except AnalysisFailed as failed:
        printing.note("\n".join(desk.failure_lines(failed)))
        printing.note(f"what the run itself came to stands; panda analyze {folder.id} tries again")
        return {"error": str(failed)}
    except KeyboardInterrupt:
        printing.problem(f"the analysis was interrupted: panda analyze {folder.id} does it")
        return {"error": "interrupted"}
    if not as_json:
        printing.result(answer, "\n".join(lines_of(answer)))
    return answer


def _missing_lines(finish: Finish, outcome: Outcome) -> list[str]:
    """What was missing, with the last words of whoever was concerned."""
    lines = [f"Phase 2 was not begun: {finish.why}."]
    for each in finish.missing:
        lines.append(f"  {each}")
        said = each.last or "\n".join(outcome.view.processes[end].last for end in each.ends)
        lines += [f"    | {line}" for line in said.splitlines()[-5:]]
    return lines


def _last_lines(folder: RunFolder, outcome: Outcome) -> list[str]:
    finish, living = outcome.finish, outcome.view.living
    if finish is None:
        return [f"Run {folder.id} goes on: panda attach, panda status, panda stop."]
    lines = [f"Logs and records are in {folder.path}/"]
    if living and not outcome.closed:
        some = printing.counted(len(living), "process", "processes")
        lines.append(f"{some} still running: panda status shows more, panda stop ends it all.")
    return lines


def exit_code(outcome: Outcome) -> int:
    from panda.deploy.coordinator import Result

    finish = outcome.finish
    if finish is None:
        return Exit.DETACHED
    if outcome.interrupted:
        return Exit.INTERRUPTED
    if finish.result is Result.GATE_NOT_MET:
        return Exit.GATE_NOT_MET
    failed = finish.result is Result.FAILED or outcome.view.failed
    left = any(closed.problems for closed in outcome.closed)
    return Exit.FAILED if failed or left else Exit.DONE
