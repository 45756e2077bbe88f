"""Decides how a run is steered from the console: by lines of the topology language, and by words to brokers.

What the agents do is asked for as `panda step` asks for it: with the same checks, under the run's lock.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from panda.experiment.folder import RunFolder, RunRefused
from panda.topology.problems import Problem
from panda_tui.deeds import Deed

if TYPE_CHECKING:
    from panda.experiment.adding import Addition
    from panda_tui.app import ConsoleApp

SOON_S = 0.1
WORDS = {
    "PAUSE": "It is stopped where it is (SIGSTOP) and neither answers nor ends until it is resumed.",
    "RESUME": "It goes on where it was stopped.",
    "RESTART": "It is ended and started anew; what it knew is gone.",
    "KILL": "It is ended at once (SIGKILL), without a goodbye to anybody.",
    "REMOVE": "It is asked to end (SIGTERM), and made to after its grace.",
}
BROKER_WORDS = {
    "pause": "It holds every publication and passes on none until it is resumed.",
    "resume": "It passes on what it has held, and goes on.",
    "shutdown": "It says goodbye and ends. Nothing starts it again but a RESTART or an ADD line.",
}


class NotThere(RunRefused):
    """What is watched is no run, or has no such process."""


def folder_of(app: ConsoleApp) -> RunFolder:
    if app.folder is None:
        raise NotThere("no run is watched: this needs its agents")
    return app.folder


def check_line(folder: RunFolder, line: str, token: str = "") -> Addition:
    """What the line would do to the run as it is now; TopologyRefused or RunRefused. Reads files."""
    from panda.experiment.adding import addition_to

    environment = {"PANDA_TOKEN": token} if token else {}
    return addition_to(folder, folder.read_plan(environment), line, now=time.time())


def line_deed(app: ConsoleApp, line: str, means: str = "", title: str = "") -> Deed:
    """One more line for the run that is watched."""
    folder, token = folder_of(app), app.options.token

    def hand_out(force: bool) -> str:
        from panda.cli import ground
        from panda.experiment import adding

        crew = ground.crew_of(folder.id)
        added = check_line(folder, line, token)
        with folder.locked(crew.holder, force=force):
            adding.hand_out(folder, added, line, crew, force=force)
        count = len(added.requests)
        return f"{line}: {count} step{'s' * (count != 1)} added"

    async def act(force: bool) -> str:
        return await asyncio.to_thread(hand_out, force)

    meant = means or f"The agents keep this line, for its time since phase 2 began:\n\n    {line}"
    return Deed(title or f"Add {line!r}", meant, act, {"action": "line", "line": line}, folder)


def process_deed(app: ConsoleApp, action: str, process: str, lease: str = "") -> Deed:
    """PAUSE, RESUME, RESTART, KILL or REMOVE, now."""
    known = app.watched.snapshot.process(process)
    if known is None:
        raise NotThere(f"the run has no process {process}")
    host = f" {known.host}" if action == "REMOVE" else ""
    since_s = app.watched.snapshot.since_t0_s
    at = f"{max(SOON_S, since_s or 0.0):.1f}"  # at 0 nothing may be done to a process: that is phase 1
    line = f"{at} {action} {process}{host}{f' for {lease}' if lease else ''}"
    healing = f" After {lease} its agent undoes it by itself." if lease else ""
    what = f"{known.kind or 'process'} {process} on {known.host}"
    return line_deed(app, line, f"{WORDS[action]}{healing}\n\nThe line: {line}", f"{action.title()} {what}")


def broker_deed(app: ConsoleApp, command: str, broker: str) -> Deed:
    """pause, resume or shutdown, said to the broker itself."""
    watched, folder = app.watched, app.folder

    async def act(force: bool) -> str:
        from panda.cli import ground

        if folder is None:
            await watched.control(broker, command)
        else:
            with folder.locked(ground.holder(), force=force):
                await watched.control(broker, command)
        return f"{broker}: {command} done"

    title = {"shutdown": "Shut down"}.get(command, command.title())
    return Deed(
        f"{title} broker {broker}", BROKER_WORDS[command], act, {"action": command, "broker": broker}, folder
    )


def stop_deed(app: ConsoleApp, folder: RunFolder) -> Deed:
    """As `panda stop`: everything ends, logs come home, nothing stays on the hosts."""

    def stop(force: bool) -> str:
        from panda.cli.stop import wind_up_run

        closed, failures = wind_up_run(folder, folder.read_plan(), fetch=True, clean=True, force=force)
        problems = [f"{each.host}: {text}" for each in closed for text in each.problems]
        problems += [str(failure) for failure in failures]
        if problems:
            raise RunRefused("; ".join(problems))
        return f"{folder.id} is stopped; its logs are in {folder.path}/hosts/"

    async def act(force: bool) -> str:
        return await asyncio.to_thread(stop, force)

    means = "Every process of the run ends, logs are brought home, and nothing of it stays on its hosts."
    return Deed(f"Stop {folder.id}", means, act, {"action": "stop"}, folder)


def delete_deed(folder: RunFolder) -> Deed:
    """The folder of a run that is over, with all that is in it."""

    def delete() -> str:
        import shutil

        if not folder.over or folder.held:
            raise RunRefused(f"{folder.id} is not over: stop it first")
        trash = Path(f"{folder.path}.deleted")  # all of it or nothing: no half of a run is left to be found
        folder.path.rename(trash)
        shutil.rmtree(trash)
        return f"{folder.id} is deleted"

    async def act(force: bool) -> str:
        return await asyncio.to_thread(delete)

    means = f"{folder.path}/ goes with its plan, journal, logs and report. Tables keep what they have."
    return Deed(f"Delete {folder.id}", means, act)


def problems_of(folder: RunFolder, line: str) -> tuple[Problem, ...]:
    """What is wrong with a line that is being typed, by its column."""
    from panda.topology.reading import add_line, read_topology

    topology = read_topology(folder.lines(), "lines.txt").topology
    return add_line(topology, line).problems if topology is not None else ()
