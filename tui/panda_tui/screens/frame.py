"""What all screens share: the line on top, the keys at the bottom, and how snapshots reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from panda_tui.escaping import one_line
from panda_tui.model import Connection, Snapshot
from panda_tui.news import SnapshotTaken

if TYPE_CHECKING:
    from panda_tui.app import ConsoleApp


class Places(Static):
    """Where one can go, and where one is."""

    DEFAULT_CSS = "Places { height: 1; background: $boost; padding: 0 1; }"

    def show(self, current: str) -> None:
        from panda_tui.app import PLACES

        text = Text(no_wrap=True, overflow="crop", end="")
        for key, (name, place) in PLACES.items():
            here = place.title_ == current
            meta = Style.from_meta({"@click": f"app.go('{name}')"})
            text.append(f"{key} ", Style(dim=True) + meta)
            text.append(place.title_, Style(bold=here, reverse=here) + meta)
            text.append("  ")
        self.update(text, layout=False)


class TopBar(Static):
    """Which screen, which run, how it is, and whether we are connected."""

    DEFAULT_CSS = "TopBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }"

    def show(self, title: str, snapshot: Snapshot) -> None:
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        text.append(title, "bold")
        if snapshot.run:
            text.append(f"  {one_line(snapshot.run)}")
        text.append(f"  {snapshot.state}")
        if snapshot.since_t0_s is not None and snapshot.state in LIVE_STATES:
            text.append(f"  {snapshot.since_t0_s:.0f} s")
        if snapshot.connection is Connection.CONNECTED:
            text.append(f"  ● {one_line(snapshot.connected_to)}", "green")
        elif snapshot.connection is not Connection.NONE or snapshot.why:
            text.append(f"  ○ {snapshot.connection}", "bold red")
            if snapshot.why:
                text.append(f": {one_line(snapshot.why)}", "red")
        if snapshot.holder:
            text.append(f"  steered by {one_line(snapshot.holder)}", "yellow")
        self.update(text, layout=False)


LIVE_STATES = frozenset(("phase 1", "running", "schedule done"))


class ConsoleScreen(Screen[None]):
    """A screen says its title, what helps on it, and how often it wants to be told."""

    title_: ClassVar[str] = ""
    manual: ClassVar[str] = ""  # what F1 shows, in Markdown
    pace_s: ClassVar[float] = 1.0
    DEFAULT_CSS = "ConsoleScreen > #top { dock: top; height: 2; }"

    @property
    def console_app(self) -> ConsoleApp:
        from panda_tui.app import ConsoleApp

        assert isinstance(self.app, ConsoleApp)
        return self.app

    def compose(self) -> ComposeResult:
        with Vertical(id="top"):
            yield Places()
            yield TopBar()
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """What is between the two lines."""
        yield Widget()

    def show(self, snapshot: Snapshot) -> None:
        """Draw it; called for every snapshot while this screen is in front."""

    def on_mount(self) -> None:
        self._draw(self.console_app.watched.snapshot)

    def on_screen_resume(self) -> None:
        self.console_app.watched.pace(self.pace_s)
        self._draw(self.console_app.watched.snapshot)

    def on_snapshot_taken(self, message: SnapshotTaken) -> None:
        message.stop()
        self._draw(message.snapshot)

    def _draw(self, snapshot: Snapshot) -> None:
        if self.is_mounted:
            self.query_one(Places).show(self.title_)
            self.query_one(TopBar).show(self.title_, snapshot)
            self.show(snapshot)


def ago(seconds: float) -> str:
    """How long ago, in the largest unit that says something."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
