"""Decides how the progress of a deployment looks: bars at a terminal, lines elsewhere; all on stderr."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from panda.cli import printing

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from panda.deploy.controller import Watcher
    from panda.deploy.coordinator import Coordinator, Tell

HOSTS_SHOWN_MAX = 12


class Display:
    """A bar per phase and a line per host that is not done yet; without a terminal the lines alone."""

    def __init__(self, hosts: int, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._hosts = hosts
        self._lock = threading.Lock()
        self._doing: dict[str, str] = {}
        self._reached = 0
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}
        self._began = time.monotonic()

    def watcher(self) -> Watcher:
        from panda.deploy.controller import Watcher

        return Watcher(note=self.note, tell=self.tell, event=self.event, moved=self.moved)

    def __enter__(self) -> Display:
        if printing.at_terminal() and not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description:<10}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[said]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
            self._bar("hosts", self._hosts)
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    # Called from several threads

    def note(self, host: str, what: str) -> None:
        with self._lock:
            if what == "agent ready":
                self._doing.pop(host, None)
                self._reached += 1
            else:
                self._doing[host] = what
            if self._progress is not None:
                said = ", ".join(f"{name}: {doing}" for name, doing in list(self._doing.items())[:3])
                self._update("hosts", self._reached, self._hosts, said)

    def tell(self, tell: Tell) -> None:
        if self._quiet and tell.kind not in ("failed", "lost", "trouble"):
            return
        after_s = time.monotonic() - self._began
        self._say(f"{after_s:7.1f} s  {tell.text}")

    def event(self, host: str, event: Mapping[str, Any]) -> None:
        if event.get("kind") == "mark" and not self._quiet:
            after_s = time.monotonic() - self._began
            self._say(f"{after_s:7.1f} s  MARK {event.get('text', '')}")

    def moved(self, coordinator: Coordinator) -> None:
        if self._progress is None:
            return
        from panda.deploy.view import Stage, missing

        plan, view = coordinator.plan, coordinator.view
        first = [view.processes[each.id] for each in plan.first_phase]
        ready = sum(each.stage is Stage.READY or each.was_ready for each in first)
        links = sum(all(view.link_up(link.a, link.b)) for link in plan.gate_links)
        lacking = missing(view)
        with self._lock:
            said = f"waiting for {lacking[0].what}" if lacking and coordinator.t0 is None else ""
            self._update("phase 1", ready + links, len(first) + len(plan.gate_links), said)
            if coordinator.t0 is not None:
                done = sum(step.actual is not None for step in view.timed_steps)
                self._update("phase 2", done, sum(step.at_s > 0 for step in plan.steps), "")

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            printing.note(text)

    def _bar(self, name: str, total: int) -> None:
        assert self._progress is not None
        self._bars[name] = self._progress.add_task(name, total=total, said="")

    def _update(self, name: str, done: int, total: int, said: str) -> None:
        assert self._progress is not None
        if name not in self._bars:
            self._bar(name, total)
        self._progress.update(self._bars[name], completed=done, total=total, said=said)
