"""Decides the order of things around a deployment: folder, lock, agents, the run itself, winding up."""

from __future__ import annotations

import json
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from broker_runtime import VERSION
from panda.deploy.controller import Controller, Detached, Watcher
from panda.deploy.coordinator import Ending, Finish, Result
from panda.deploy.crew import Crew, HostsFailed
from panda.deploy.view import RunView
from panda.experiment.closing import Closed, wind_up
from panda.experiment.folder import RunFolder
from panda.plan.model import Plan
from panda.topology.model import Topology
from panda.topology.writing import write_text


@dataclass(slots=True)
class Outcome:
    """How a deployment ended, as far as this controller saw it."""

    view: RunView
    finish: Finish | None = None  # None: the run goes on without us
    interrupted: bool = False
    closed: list[Closed] = field(default_factory=list)
    sent_bytes: dict[str, int] = field(default_factory=dict)


def keep_record(folder: RunFolder, topology: Topology, plan: Plan, suffix: str) -> None:
    """What it takes to explain and repeat the run."""
    folder.write_text(f"topology{suffix}", topology.source)
    folder.write_text("lines.txt", write_text(topology))
    folder.write_plan(plan)
    versions = {"panda": VERSION, "python": platform.python_version()}
    folder.write_text("versions.json", json.dumps(versions) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a deployment is conducted."""

    ending: Ending
    rollback: bool = True
    force: bool = False  # take it over from another controller
    leave_after_go: bool = False


def conduct(folder: RunFolder, plan: Plan, crew: Crew, watcher: Watcher, manner: Manner) -> Outcome:
    """Deploy a plan, or take up a deployment where another controller left it, and see it to its end.

    What was stopped is brought home and cleaned up; what goes on running is left alone.
    """
    with folder.locked(crew.holder, force=manner.force):
        if not folder.ending():
            folder.record("begun", ending=str(manner.ending), who=crew.holder, synced=True)
        controller = Controller(plan, folder, crew, watcher, rollback=manner.rollback, ending=manner.ending)
        outcome = Outcome(controller.view)
        watcher.begun(controller)
        try:
            with _signals(controller, outcome):
                _reach(controller, folder, manner)
                outcome.sent_bytes = dict(crew.sent_bytes)
                ended = controller.drive(leave_when_running=manner.leave_after_go)
                if not isinstance(ended, Detached):
                    outcome.finish = ended
                    if is_over(ended, manner.rollback):
                        outcome.closed = wind_up(controller.sessions, folder, stop=False, note=watcher.note)
        finally:
            controller.close()
    return outcome


def _reach(controller: Controller, folder: RunFolder, manner: Manner) -> None:
    begun = controller.coordinator.t0 is not None or any(controller.view.steps)
    try:
        controller.reach(force=manner.force)
    except HostsFailed:
        if not begun:  # then nothing was started, and those who were reached were let go
            folder.record("unreached", synced=True)
        raise


def is_over(finish: Finish, rollback: bool) -> bool:
    """Whether the processes have been stopped."""
    if finish.result is Result.GATE_NOT_MET:
        return rollback
    return finish.result in (Result.STOPPED, Result.FAILED)


@contextmanager
def _signals(controller: Controller, outcome: Outcome) -> Iterator[None]:
    """^C ends what has not begun; a deployment whose clock runs goes on without us. A second one insists."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if outcome.interrupted:
            raise KeyboardInterrupt
        outcome.interrupted = True
        if number == signal.SIGHUP or controller.goes_on_alone:
            controller.leave()
        else:
            controller.stop("interrupted")

    kept = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)
