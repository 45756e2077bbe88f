"""Decides which screen is in front, what is watched, and that nothing is done without being asked for.

Screens know this module; it knows each of them by name only. Nothing here waits for a network: what takes
time is a worker, and tells what came of it by a message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from broker_runtime.client import Trace
from panda.experiment.folder import RunFolder, RunRefused
from panda_tui.agents import AgentFeed
from panda_tui.deeds import Deed
from panda_tui.escaping import one_line
from panda_tui.failures import held_by, words_of_failure
from panda_tui.live import LiveWatch
from panda_tui.model import Snapshot
from panda_tui.news import Said, SnapshotTaken
from panda_tui.options import Options
from panda_tui.screens.analysis import AnalysisScreen
from panda_tui.screens.broker import BrokerScreen
from panda_tui.screens.brokers import BrokersScreen
from panda_tui.screens.confirm import ConfirmScreen
from panda_tui.screens.deployment import DeploymentScreen
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.screens.hosts import HostsScreen
from panda_tui.screens.logs import LogsScreen
from panda_tui.screens.manual import ManualScreen
from panda_tui.screens.messages import MessagesScreen
from panda_tui.screens.overlay import OverlayScreen
from panda_tui.screens.reading import ReadingScreen
from panda_tui.screens.runs import RunsScreen
from panda_tui.screens.schedule import ScheduleScreen
from panda_tui.screens.topology import TopologyScreen
from panda_tui.watch import Idle, Watch

if TYPE_CHECKING:
    from panda_tui.deploying import Order

DARK, LIGHT = "textual-dark", "textual-light"
PROBLEM_S = 12.0
TAIL_BYTES = 32 << 10
TEXTUALS_OWN = ("app.focus_next", "app.focus_previous", "screen.copy_text")
PLACES: dict[str, tuple[str, type[ConsoleScreen]]] = {
    "1": ("runs", RunsScreen),
    "2": ("brokers", BrokersScreen),
    "3": ("overlay", OverlayScreen),
    "4": ("messages", MessagesScreen),
    "5": ("schedule", ScheduleScreen),
    "6": ("hosts", HostsScreen),
    "7": ("logs", LogsScreen),
    "8": ("analysis", AnalysisScreen),
}


@dataclass(slots=True)
class Work:
    """An analysis in the background."""

    run: str
    stage: str = ""
    share: float | None = None
    done: bool = False
    refused: str = ""

    def note(self, stage: str, share: float | None) -> None:
        self.stage, self.share = stage, share


class ConsoleApp(App[None]):
    TITLE = "PANDA"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    DataTable { height: 1fr; }
    TabbedContent, TabPane { height: 1fr; padding: 0; }
    .note { height: auto; color: $text-muted; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(  # with Alt also while something is typed
            Binding(f"{key},alt+{key}", f"go('{name}')", place.title_, show=False, key_display=key)
            for key, (name, place) in PLACES.items()
        ),
        Binding("f1,question_mark", "manual", "help", key_display="F1"),
        Binding("f2", "theme", "light or dark", show=False),
        Binding("ctrl+q", "quit", "quit", key_display="^q", priority=True),
    ]

    def __init__(
        self,
        options: Options | None = None,
        watch: Watch | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.options = options or Options()
        self.watched: Watch = watch or Idle()
        self.folder: RunFolder | None = None  # of the run that is watched
        self.analysis: Work | None = None  # the latest one
        self.trace: Trace | None = None  # the way of a message, to be shown on the overlay
        for name, place in PLACES.values():
            self.install_screen(place(), name)

    def on_mount(self) -> None:
        self.theme = self.options.theme
        if len(self.screen_stack) > 1:  # a subclass has its own in front
            self.watched.start(self._tell)
            return
        self.push_screen("runs")
        if self.options.run:
            self.open_run(RunFolder.find(self.options.runs, self.options.run))
        elif self.options.broker:
            self._watch(LiveWatch(None, broker=self.options.broker, token=self.options.token))
            self.action_go("brokers")
        else:
            self.watched.start(self._tell)
            if self.watched.snapshot.run:
                self.action_go("brokers")

    async def on_unmount(self) -> None:
        await self.watched.close()

    # Moving

    def action_go(self, name: str) -> None:
        """To one of the places, leaving whatever was opened on top of it."""
        while len(self.screen_stack) > 2:
            self.pop_screen()
        if self.screen is not self.get_screen(name):
            self.switch_screen(name)

    def open_run(self, folder: RunFolder) -> None:
        """Watch this run from now on."""
        try:
            agents = AgentFeed(folder, self._crew_of(folder.id))
        except RunRefused as refused:
            self.say(str(refused), problem=True)
            return
        self.folder = folder
        self._watch(LiveWatch(agents, broker=self.options.broker, token=self.options.token))
        self.action_go("brokers")

    def open_broker(self, id_: str) -> None:
        """The screen of this broker, on top of the one that is in front."""
        self.push_screen(BrokerScreen(id_))

    def show_logs(self, process: str) -> None:
        """What this process says."""
        screen = self.get_screen("logs")
        assert isinstance(screen, LogsScreen)
        screen.only(process)
        self.action_go("logs")

    async def tail(self, process: str, stream: str, count: int) -> str:
        """The last lines that a process wrote to `stdout`, `stderr` or `log`; to be escaped."""

        def read() -> bytes:
            size = self.watched.read_log(process, stream, 0, 1).size
            return self.watched.read_log(process, stream, max(0, size - TAIL_BYTES), TAIL_BYTES).data

        lines = (await asyncio.to_thread(read)).decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-count:])

    def load_topology(self, path: str = "") -> None:
        self.push_screen(TopologyScreen(path))

    def deploy(self, order: Order, summary: str) -> None:
        where = "on this machine" if order.local else "on its hosts"
        self.ask(f"Deploy {order.path.name} {where}", summary, lambda: self._deploy(order), "Deploy")

    def _deploy(self, order: Order) -> None:
        self.push_screen(DeploymentScreen(order))

    # Analysing, in the background

    def analyse(self, folder: RunFolder) -> None:
        self._begin_work(folder.id, lambda work: self._analyse(folder, work))

    def compare(self, a: str, b: str) -> None:
        self._begin_work(f"{a} and {b}", lambda work: self._compare(a, b, work))

    def _begin_work(self, run: str, act: Callable[[Work], None]) -> None:
        if self.analysis is not None and not self.analysis.done:
            self.say(f"{self.analysis.run} is being analysed: wait for it", problem=True)
            return
        work = self.analysis = Work(run)

        def do() -> None:
            try:
                act(work)
            except Exception as error:
                work.refused = words_of_failure(error)
                self.call_from_thread(self.say, work.refused, problem=True)
            finally:
                work.done = True

        self.say(f"analysing {run} in the background")
        self.run_worker(do, thread=True, group="analysis", exit_on_error=False)

    def _analyse(self, folder: RunFolder, work: Work) -> None:
        from panda_tui import analysing

        told = analysing.analyse(folder, work.note)
        self.call_from_thread(self.say, f"{folder.id}: {told.get('sentence', 'analysed')}")

    def _compare(self, a: str, b: str, work: Work) -> None:
        from panda_tui import analysing

        text = analysing.compare(self.options.runs, a, b, work.note)
        self.call_from_thread(self.push_screen, ReadingScreen(f"{a} and {b}", text))

    def _crew_of(self, run: str) -> Any:
        from panda.cli import ground

        return ground.crew_of(run)

    def _watch(self, watch: Watch) -> None:
        before, self.watched = self.watched, watch
        self.run_worker(before.close(), group="leave", exit_on_error=False)
        watch.start(self._tell)

    # Helping

    def action_manual(self) -> None:
        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            self.push_screen(ManualScreen(screen.title_, screen.manual, self._keys(screen)))

    def action_theme(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def _keys(self, screen: Screen[Any]) -> Iterable[tuple[str, str]]:
        seen: dict[str, str] = {}
        for bindings in (screen._bindings, self._bindings):
            for key, each in bindings:
                if each.description and not each.system and each.action not in TEXTUALS_OWN:
                    seen.setdefault(each.description, each.key_display or key)
        return [(key, what) for what, key in seen.items()]

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for key, (name, place) in PLACES.items():
            what = f"Go to the screen {place.title_} (key {key})"
            yield SystemCommand(place.title_, what, lambda name=name: self.action_go(name))
        yield SystemCommand("Load a topology", "Validate, plan and deploy it", self.load_topology)
        for _, each in screen._bindings:
            if each.description and not each.system and each.action not in TEXTUALS_OWN:
                action = each.action
                yield SystemCommand(
                    each.description.capitalize(),
                    f"Here: key {each.key_display or each.key}",
                    lambda action=action: self.call_later(screen.run_action, action),
                )
        yield SystemCommand("Help", "What this screen shows and which keys it knows", self.action_manual)
        yield SystemCommand("Light or dark", "Change the theme", self.action_theme)
        yield SystemCommand("Quit", "Leave the console; runs go on", self.exit)

    # Telling

    def _tell(self, snapshot: Snapshot) -> None:
        if self.is_running and isinstance(self.screen, ConsoleScreen):
            self.screen.post_message(SnapshotTaken(snapshot))

    def on_said(self, message: Said) -> None:
        self.say(message.text, problem=message.problem)

    def say(self, text: str, *, problem: bool = False) -> None:
        self.notify(
            one_line(text),
            severity="error" if problem else "information",
            timeout=PROBLEM_S if problem else 5.0,
            markup=False,
        )

    # Doing

    def ask(self, title: str, means: str, then: Callable[[], None], yes: str = "Do it") -> None:
        def answered(agreed: bool | None) -> None:
            if agreed:
                then()

        self.push_screen(ConfirmScreen(title, means, yes), answered)

    def carry_out(self, deed: Deed) -> None:
        """Ask if it matters, write it down, do it in a worker, and tell what came of it."""
        self.run_worker(self._carry_out(deed), group="deeds", exit_on_error=False)

    async def _carry_out(self, deed: Deed) -> None:
        if deed.dangerous and not await self.push_screen_wait(ConfirmScreen(deed.title, deed.means)):
            return
        try:
            told = await self._done(deed, force=False)
        except Exception as error:
            holder = held_by(error)
            if not holder:
                self.say(words_of_failure(error), problem=True)
                return
            means = f"{holder} steers this run.\n\nIt loses the run to you, and goes on watching at best."
            if not await self.push_screen_wait(ConfirmScreen("Take the run over", means, "Take it over")):
                return
            try:
                told = await self._done(deed, force=True)
            except Exception as again:
                self.say(words_of_failure(again), problem=True)
                return
        self.say(told)

    async def _done(self, deed: Deed, *, force: bool) -> str:
        """With who, what and when in the run's journal, before and after."""
        folder = deed.folder
        if folder is None:
            return await deed.act(force)
        from panda.cli import ground

        who = ground.holder()

        def record(kind: str, **fields: object) -> None:
            folder.record(kind, who=who, title=deed.title, **deed.record, **fields, synced=True)

        await asyncio.to_thread(record, "asked")
        try:
            told = await deed.act(force)
        except Exception as error:
            await asyncio.to_thread(record, "refused", why=words_of_failure(error))
            raise
        await asyncio.to_thread(record, "obeyed", told=told)
        return told
