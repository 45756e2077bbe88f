"""The live graph of brokers, links and clients, and what is known of the one that is selected."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from panda_tui.escaping import plain
from panda_tui.model import Snapshot
from panda_tui.overlay.details import details_of, way_of, way_text
from panda_tui.overlay.pane import OverlayPane
from panda_tui.overlay.scene import sentence
from panda_tui.overlay.view import OverlayView
from panda_tui.screens.frame import ConsoleScreen

MANUAL = """\
Brokers are **●** and clients **○**, or boxes when you are near; each shows records per second. Links carry
theirs. **Colours** are by load (`c`: by state); red is a broker that is not heard of or a link that is down,
yellow one that is paused, busy or under a fault.

Arrows select, Enter opens the broker's own screen. `+` and `-` zoom, `0` shows all, Shift with arrows moves.
`/` searches, `n` and `N` go from one found to the next. `f` shows only what is within a few hops of the
selected node, `[` and `]` make it fewer or more. `l` goes from tree to layers to circle, `g` hides clients,
`t` shows a table, as small screens do anyway. Escape takes back: the search, the focus, then the trace.

The mouse: click selects, a second click opens, dragging moves, the wheel zooms.
"""


class OverlayScreen(ConsoleScreen):
    title_ = "Overlay"
    manual = MANUAL
    pace_s = 0.2
    CSS = """
    OverlayScreen #sentence { height: 1; padding: 0 1; }
    OverlayScreen #way { height: 1; padding: 0 1; display: none; }
    OverlayScreen #way.lit { display: block; }
    OverlayScreen #details {
        width: 40; height: 1fr; border-left: solid $panel; padding: 0 1;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    OverlayScreen.-narrow Horizontal { layout: vertical; }
    OverlayScreen.-narrow #details {
        width: 1fr; height: 3; border-left: none; border-top: none; background: $surface;
    }
    OverlayScreen.-narrow.-opened #details { height: 50%; }
    OverlayScreen.-closed #details { display: none; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 — Textual declares it so
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "details", "more or fewer details", show=False),
        Binding("escape", "back", "take back", show=False),
    ]

    def body(self) -> ComposeResult:
        yield Static(id="sentence")
        with Horizontal():
            yield OverlayPane()
            yield Static(id="details")
        yield Static(id="way")

    @property
    def pane(self) -> OverlayPane:
        return self.query_one(OverlayPane)

    def on_mount(self) -> None:
        self.pane.focus_inside()

    def show(self, snapshot: Snapshot) -> None:
        self.query_one("#sentence", Static).update(plain(sentence(snapshot.overlay)), layout=False)
        self.pane.show(snapshot.overlay)
        self._show_details()
        self._show_way()

    def _show_details(self) -> None:
        selected = self.pane.graph.stage.selected
        told = details_of(self.console_app.watched.snapshot, selected)
        self.query_one("#details", Static).update(told, layout=False)

    def _show_way(self) -> None:
        trace = self.console_app.trace
        way = self.query_one("#way", Static)
        way.set_class(trace is not None, "lit")
        if trace is None:
            self.pane.graph.light((), ())
        else:
            way.update(way_text(trace), layout=False)
            self.pane.graph.light(*way_of(trace))

    def on_overlay_view_selected(self, event: OverlayView.Selected) -> None:
        self._show_details()

    def on_overlay_view_opened(self, event: OverlayView.Opened) -> None:
        if self.console_app.watched.snapshot.overlay.broker(event.name) is not None:
            self.console_app.open_broker(event.name)
        else:
            self.add_class("-opened")

    def action_details(self) -> None:
        self.toggle_class("-opened" if self.has_class("-narrow") else "-closed")

    def action_back(self) -> None:
        graph = self.pane.graph
        if self.pane.end_search():
            return
        if graph.stage.centre:
            graph.focus_on("")
        elif self.console_app.trace is not None:
            self.console_app.trace = None
            self._show_way()
        else:
            graph.select("")
