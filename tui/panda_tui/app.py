"""Decides which screen is in front, what is watched, and that nothing is done without being asked for.

Screens know this module; it knows each of them by name only. Nothing here waits for a network: what takes
time is a worker, and tells what came of it by a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from broker_runtime.client import ClientError, Trace
from panda_tui.deeds import Deed
from panda_tui.escaping import one_line
from panda_tui.model import Snapshot
from panda_tui.news import Said, SnapshotTaken
from panda_tui.options import Options
from panda_tui.screens.confirm import ConfirmScreen
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.screens.manual import ManualScreen
from panda_tui.watch import Idle, Watch

DARK, LIGHT = "textual-dark", "textual-light"
PROBLEM_S = 12.0


class ConsoleApp(App[None]):
    TITLE = "PANDA"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    DataTable { height: 1fr; }
    .note { height: auto; color: $text-muted; padding: 0 1; }
    .bad { color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "manual", "help", key_display="F1"),
        Binding("f2", "theme", "light or dark", show=False),
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
    ]

    def __init__(self, options: Options | None = None, watch: Watch | None = None) -> None:
        super().__init__()
        self.options = options or Options()
        self.watched: Watch = watch or Idle()
        self.trace: Trace | None = None  # the way of a message, to be shown on the overlay

    def on_mount(self) -> None:
        self.theme = self.options.theme
        self.watched.start(self._tell)

    # Moving

    def open_broker(self, id_: str) -> None:
        """The screen of this broker, on top of the one that is in front."""
        self.notify(f"broker {one_line(id_)}")

    def action_manual(self) -> None:
        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            self.push_screen(ManualScreen(screen.title_, screen.manual, self._keys(screen)))

    def action_theme(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def _keys(self, screen: Screen[None]) -> Iterable[tuple[str, str]]:
        seen: dict[str, str] = {}
        for bindings in (screen._bindings, self._bindings):
            for key, each in bindings:
                if each.description:
                    seen.setdefault(each.key_display or key, each.description)
        return seen.items()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
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

    def carry_out(self, deed: Deed) -> None:
        """Ask if it matters, write it down, do it in a worker, and tell what came of it."""
        self.run_worker(self._carry_out(deed), group="deeds", exit_on_error=False)

    async def _carry_out(self, deed: Deed) -> None:
        if deed.dangerous and not await self.push_screen_wait(ConfirmScreen(deed.title, deed.means)):
            return
        try:
            self.say(await deed.act(False))
        except ClientError as error:
            self.say(str(error), problem=True)
