"""`panda stop`, `panda collect` and `panda clean`: end a run, bring its logs home, leave nothing behind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from panda.deploy.crew import Crew
    from panda.deploy.session import AgentSession
    from panda.experiment.closing import Closed
    from panda.experiment.folder import RunFolder
    from panda.hosts.host import Host
    from panda.hosts.remote import HostError
    from panda.plan.model import Plan


def stop(
    wanted: ground.RunArgument = "",
    process: Annotated[
        list[str] | None, typer.Option("--process", "-p", metavar="ID", help="Only this process.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave logs and folders on the hosts.")] = False,
    force: ground.ForceOption = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Stop a run, bring its logs home, leave nothing behind.

    Or stop single processes of it, with --process.

    Example: panda stop
    """
    with ground.failing():
        folder = ground.find_run(runs, wanted)
        plan = folder.read_plan()
        if process:
            _stop_processes(folder, plan, process, force=force)
            told = {"run": folder.id, "asked_to_end": process}
            printing.result(told, f"asked to end: {', '.join(process)}", as_json=as_json)
            return
        closed, failures = wind_up_run(folder, plan, fetch=not keep, clean=not keep, force=force)
    report(folder, closed, as_json, failures)


def collect(
    wanted: ground.RunArgument = "",
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Bring home what a run has logged so far.

    Said again it brings only what is new.

    Example: panda collect
    """
    with ground.failing():
        from panda.experiment.closing import wind_up

        folder = ground.find_run(runs, wanted)
        plan = folder.read_plan()
        crew = ground.crew_of(folder.id)
        cleaned = folder.cleaned()
        hosts = [host for host in plan.hosts if host.name not in cleaned]
        sessions, failures = crew.reach_all(hosts, None, steer=False, start=False)
        try:
            closed = wind_up(sessions, folder, stop=False, clean=False)
        finally:
            _close(crew, sessions)
    report(folder, closed, as_json, failures)


def clean(
    wanted: ground.RunArgument = "",
    bundles: Annotated[
        bool, typer.Option("--bundles", help="Also the runtime that was brought there.")
    ] = False,
    force: ground.ForceOption = False,
    yes: ground.YesOption = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Stop a run and remove it from the hosts, logs and all.

    Nothing is brought home; panda stop does that.

    Example: panda clean --yes
    """
    with ground.failing():
        folder = ground.find_run(runs, wanted)
        plan = folder.read_plan()
        if not ground.confirmed(f"Remove {folder.id} from {len(plan.hosts)} hosts, logs and all?", yes):
            raise typer.Exit(Exit.REFUSED)
        closed, failures = wind_up_run(folder, plan, fetch=False, clean=True, force=force)
        if bundles:
            _remove_bundles(plan)
            printing.note(f"the runtime is gone from {printing.counted(len(plan.hosts), 'host')}")
    report(folder, closed, as_json, failures)


def _remove_bundles(plan: Plan) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from panda.deploy.crew import AT_ONCE, HostsFailed
    from panda.hosts.bundle import remove
    from panda.hosts.keys import KnownHosts
    from panda.hosts.remote import HostError, connect

    keys = KnownHosts()

    def take_off(host: Host) -> HostError | None:
        try:
            remote = connect(host, keys)
            try:
                if remove(remote):
                    printing.note(f"{host.name}: a bundle stays, something still runs from it")
            finally:
                remote.close()
        except HostError as error:
            return error
        return None

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(plan.hosts)))) as pool:
        failures = [found for found in pool.map(take_off, plan.hosts) if found is not None]
    if failures:
        raise HostsFailed(failures)


def wind_up_run(
    folder: RunFolder, plan: Plan, *, fetch: bool, clean: bool, force: bool
) -> tuple[list[Closed], list[HostError]]:
    """Whatever state the run is in; what became of it, and the hosts that could not be reached."""
    from panda.deploy.crew import HeldByAnother, HostsFailed
    from panda.experiment.closing import wind_up

    crew = ground.crew_of(folder.id)
    cleaned = folder.cleaned()
    hosts = [host for host in plan.hosts if host.name not in cleaned]
    with folder.locked(crew.holder, force=force):
        sessions, failures = crew.reach_all(hosts, None, steer=True, force=force)
        try:
            closed = wind_up(sessions, folder, fetch=fetch, clean=clean)
        finally:
            _close(crew, sessions)
    if any(isinstance(failure, HeldByAnother) for failure in failures):
        raise HostsFailed(failures)
    return closed, failures


def _stop_processes(folder: RunFolder, plan: Plan, wanted: list[str], *, force: bool) -> None:
    from panda.deploy.crew import HostsFailed
    from panda.experiment.folder import RunRefused
    from panda.plan.model import fresh_number

    known = {each.id: each for each in plan.processes}
    unknown = [id_ for id_ in wanted if id_ not in known]
    if unknown:
        raise RunRefused(f"{folder.id} has no process {', '.join(unknown)}: it has {', '.join(known)}")
    hosts = [host for host in plan.hosts if host.name in {known[id_].host for id_ in wanted}]
    crew = ground.crew_of(folder.id)
    with folder.locked(crew.holder, force=force):
        sessions, failures = crew.reach_all(hosts, None, steer=True, force=force, start=False)
        try:
            for count, id_ in enumerate(wanted):
                if known[id_].host in sessions:
                    number = fresh_number(time.time()) + count
                    step = {"number": number, "action": "remove", "process": id_, "at_s": None}
                    sessions[known[id_].host].request("step", {"step": step})
                    folder.record("asked", action="remove", process=id_, who=crew.holder)
        finally:
            _close(crew, sessions)
    if failures:
        raise HostsFailed(failures)


def report(folder: RunFolder, closed: list[Closed], as_json: bool, failures: list[HostError]) -> None:
    files = sum(each.collected.files for each in closed if each.collected)
    size = sum(each.collected.fetched_bytes for each in closed if each.collected)
    problems = {each.host: each.problems for each in closed if each.problems}
    for host, texts in problems.items():
        for text in texts:
            printing.problem(f"{host}: {text}")
    said = []
    for failure in failures:
        printing.problem(str(failure))
    if any(each.stopped for each in closed):
        hosts = printing.counted(sum(each.stopped for each in closed), "host")
        said.append(f"{folder.id} is stopped on {hosts}")
    if any(each.collected for each in closed):
        said.append(f"{printing.counted(files, 'file')}, {size} new bytes are in {folder.path}/hosts/")
    if any(each.cleaned for each in closed):
        hosts = printing.counted(sum(each.cleaned for each in closed), "host")
        said.append(f"nothing of it is left on {hosts}")
    if failures:
        said.append(f"not reached: {', '.join(each.host for each in failures)}; say it again for them")
    if not closed and not failures:
        said.append(f"{folder.id} is over: nothing of it is left on its hosts")
    data = {"run": folder.id, "files": files, "fetched_bytes": size, "problems": problems}
    data["unreached"] = {each.host: each.reason for each in failures}
    printing.result(data, "\n".join(said), as_json=as_json)
    if failures:
        raise typer.Exit(Exit.UNREACHABLE)
    if problems:
        raise typer.Exit(Exit.FAILED)


def _close(crew: Crew, sessions: dict[str, AgentSession]) -> None:
    for session in sessions.values():
        session.close()
    crew.close()
