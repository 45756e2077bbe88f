"""A deployment while it comes about: each host, both phases, and what the gate still lacks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import DataTable, Label, ProgressBar, RichLog, Static

from panda.deploy.controller import Watcher
from panda.deploy.view import Stage, missing
from panda_tui import deploying
from panda_tui.deploying import Order
from panda_tui.escaping import lines, plain
from panda_tui.failures import words_of_failure
from panda_tui.screens.frame import ConsoleScreen

if TYPE_CHECKING:
    from panda.deploy.controller import Controller
    from panda.deploy.coordinator import Coordinator, Tell
    from panda.experiment.deployment import Outcome
    from panda.experiment.folder import RunFolder

DRAW_EVERY_S = 0.15


@dataclass(slots=True)
class Progress:
    """What the deployment's threads have told so far; drawn a few times a second."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    hosts: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    ready: int = 0
    of: int = 0
    missing: tuple[str, ...] = ()
    going: bool = False
    controller: Controller | None = None
    folder: RunFolder | None = None
    outcome: Outcome | None = None
    refused: str = ""

    def watcher(self) -> Watcher:
        return Watcher(self.note, self.tell, self.event, self.moved, self.begun)

    # Called from several threads

    def begun(self, controller: Controller) -> None:
        with self.lock:
            self.controller = controller
            self.hosts = {host.name: "waiting" for host in controller.plan.hosts}

    def note(self, host: str, what: str) -> None:
        with self.lock:
            self.hosts[host] = what

    def tell(self, tell: Tell) -> None:
        with self.lock:
            self.said.append(tell.text)

    def event(self, host: str, event: Mapping[str, Any]) -> None:
        if event.get("kind") == "mark":
            with self.lock:
                self.said.append(f"MARK {event.get('text', '')}")

    def moved(self, coordinator: Coordinator) -> None:
        plan, view = coordinator.plan, coordinator.view
        first = [view.processes[each.id] for each in plan.first_phase]
        ready = sum(each.stage is Stage.READY or each.was_ready for each in first)
        links = sum(all(view.link_up(link.a, link.b)) for link in plan.gate_links)
        lacking = tuple(map(str, missing(view)))
        with self.lock:
            self.ready, self.of = ready + links, len(first) + len(plan.gate_links)
            self.missing = lacking if coordinator.t0 is None else ()
            self.going = coordinator.t0 is not None


class DeploymentScreen(ConsoleScreen):
    title_ = "Deploying"
    manual = (
        "Every host with what is being done there, how much of phase 1 is there, and what the gate still"
        " waits"
        " for. When phase 2 has begun the agents keep the schedule by themselves, and the run is watched"
        " from then"
        " on.\n\nEscape gives up while phase 1 goes on: everything that was started is taken back."
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "give up or leave")]
    CSS = """
    DeploymentScreen #phases { height: 2; padding: 0 1; }
    DeploymentScreen #phases Label { width: 12; }
    DeploymentScreen #hosts { height: 1fr; min-height: 4; }
    DeploymentScreen #gate { height: auto; max-height: 8; padding: 0 1; }
    DeploymentScreen RichLog { height: 1fr; min-height: 4; }
    """

    def __init__(self, order: Order) -> None:
        super().__init__()
        self._order = order
        self._progress = Progress()
        self._shown: dict[str, str] = {}
        self._said = 0
        self._over = False

    def body(self) -> ComposeResult:
        with Horizontal(id="phases"):
            yield Label("phase 1")
            yield ProgressBar(total=None, show_eta=False, id="phase-1")
        yield DataTable(cursor_type="row", zebra_stripes=True, id="hosts")
        yield Static("", id="gate")
        yield RichLog(wrap=True, markup=False, id="said")

    def on_mount(self) -> None:
        table = self.query_one("#hosts", DataTable)
        table.add_column("host", key="host")
        table.add_column("what is done there", key="what", width=60)
        self.set_interval(DRAW_EVERY_S, self._draw_progress)
        self._deploy()

    @work(thread=True, group="deploy")
    def _deploy(self) -> None:
        progress, app = self._progress, self.console_app
        try:
            progress.folder, plan = deploying.prepare(self._order, app.options.runs, app.options.token)
            progress.outcome = deploying.deploy(progress.folder, plan, progress.watcher())
        except Exception as error:  # told on the screen, whatever it is
            progress.refused = words_of_failure(error)

    def _draw_progress(self) -> None:
        progress = self._progress
        with progress.lock:
            hosts, said = dict(progress.hosts), progress.said[self._said :]
            lacking, ready, of = progress.missing, progress.ready, progress.of
            self._said += len(said)
        table = self.query_one("#hosts", DataTable)
        for host, what in hosts.items():
            if host not in self._shown:
                table.add_row(plain(host), plain(what), key=host)
            elif self._shown[host] != what:
                table.update_cell(host, "what", plain(what))
        self._shown = hosts
        self.query_one("#phase-1", ProgressBar).update(total=of or None, progress=ready)
        log = self.query_one("#said", RichLog)
        for text in said:
            log.write(plain(text))
        if not self._over:
            more = f" and {len(lacking) - 6} more" if len(lacking) > 6 else ""
            waits = "; ".join(lacking[:6]) + more
            self.query_one("#gate", Static).update(plain(f"waiting for {waits}") if lacking else "")
            self._end()

    def _end(self) -> None:
        progress, app = self._progress, self.console_app
        if progress.refused:
            self._over = True
            told = lines(progress.refused)
            told.stylize("bold red")
            self.query_one("#gate", Static).update(told)
        elif progress.outcome is not None:
            self._over = True
            finish = progress.outcome.finish
            if finish is None:
                assert progress.folder is not None
                app.say(f"{progress.folder.id}: phase 2 has begun, the agents keep the schedule")
                app.open_run(progress.folder)
            else:
                texts = [f"{finish.result}: {finish.why}", *map(str, finish.missing)]
                for each in finish.missing:
                    said = each.last or "\n".join(
                        progress.outcome.view.processes[end].last for end in each.ends
                    )
                    texts += [f"  | {line}" for line in said.splitlines()[-3:]]
                log = self.query_one("#said", RichLog)
                for text in texts:
                    log.write(plain(text, "red"))
                self.query_one("#gate", Static).update(plain(texts[0], "bold red"))

    def action_leave(self) -> None:
        progress = self._progress
        if self._over:
            self.dismiss()
        elif progress.controller is not None and not progress.going:
            self.console_app.ask(
                "Give this deployment up",
                "Everything that was started is ended, and nothing of it stays on the hosts.",
                self._stop,
            )

    def _stop(self) -> None:
        controller = self._progress.controller
        if controller is not None:
            controller.stop("given up at the console")
