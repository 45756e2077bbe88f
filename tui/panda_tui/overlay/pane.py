"""Decides what surrounds the graph: a search, a caption, and a table in its place when there is no room."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, DataTable, Input, Static

from panda_tui.escaping import plain
from panda_tui.model import Overlay
from panda_tui.overlay.scene import table_rows
from panda_tui.overlay.view import OverlayView
from panda_tui.screens.filling import fill

GRAPH_COLUMNS_MIN = 60
GRAPH_ROWS_MIN = 15
COLUMNS = ("broker", "state", "in/s", "out/s", "queue", "neighbours")


class OverlayPane(Vertical):
    DEFAULT_CSS = """
    OverlayPane { height: 1fr; }
    OverlayPane ContentSwitcher { height: 1fr; }
    OverlayPane OverlayView { height: 1fr; }
    OverlayPane DataTable { height: 1fr; }
    OverlayPane > #search { display: none; height: 1; border: none; padding: 0 1; }
    OverlayPane > #caption { height: 1; color: $text-muted; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # At once, by priority: who types fast has typed the first letter already.
        Binding("slash", "search", "search", key_display="/", priority=True),
        Binding("t", "table", "graph or table", show=False),
    ]

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 — Textual's word
        super().__init__(id=id)
        self._table_wanted: bool | None = None  # None: when there is no room for the graph

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="graph"):
            yield OverlayView(id="graph")
            yield DataTable(id="table", cursor_type="row", zebra_stripes=True)
        yield Input(id="search", placeholder="part of a name", compact=True, select_on_focus=True)
        yield Static(id="caption")

    @property
    def graph(self) -> OverlayView:
        return self.query_one(OverlayView)

    @property
    def table(self) -> DataTable[Text]:
        return self.query_one("#table", DataTable)

    @property
    def is_table(self) -> bool:
        return self.query_one(ContentSwitcher).current == "table"

    def on_mount(self) -> None:
        for name in COLUMNS:
            self.table.add_column(name, key=name)

    def show(self, overlay: Overlay) -> None:
        self.graph.show(overlay)
        if self.is_table:
            self._fill()

    def focus_inside(self) -> None:
        self.screen.set_focus(self.table if self.is_table else self.graph)

    def on_resize(self, event: events.Resize) -> None:
        self._choose(event.size.width, event.size.height)

    def _choose(self, width: int, height: int) -> None:
        small = width < GRAPH_COLUMNS_MIN or height < GRAPH_ROWS_MIN
        wanted = small if self._table_wanted is None else self._table_wanted
        if wanted == self.is_table:
            return
        focused = self.graph.has_focus or self.table.has_focus
        self.query_one(ContentSwitcher).current = "table" if wanted else "graph"
        if wanted:
            self._fill()
        if focused:
            self.focus_inside()

    def _fill(self) -> None:
        """Bring the table up to date, cell by cell."""
        rows = table_rows(self.graph.stage.overlay)
        fill(self.table, [(row[0], [plain(cell) for cell in row]) for row in rows])

    # Searching

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a field, / is a letter."""
        return action != "search" or not isinstance(self.screen.focused, Input)

    def action_search(self) -> None:
        field = self.query_one("#search", Input)
        field.display = True
        self.screen.set_focus(field)

    def action_table(self) -> None:
        self._table_wanted = not self.is_table
        self._choose(self.size.width, self.size.height)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.graph.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._end_search()

    def end_search(self) -> bool:
        """Whether something was searched for; then it no longer is."""
        field = self.query_one("#search", Input)
        was = field.display or bool(self.graph.stage.wanted)
        field.value = ""
        self.graph.search("")
        self._end_search()
        return was

    def _end_search(self) -> None:
        field = self.query_one("#search", Input)
        if field.display:
            field.display = False
            self.focus_inside()
        found = self.graph.stage.selected
        if self.is_table and found in self.table.rows:
            self.table.move_cursor(row=self.table.get_row_index(found))

    # Choosing

    def on_overlay_view_looked(self, event: OverlayView.Looked) -> None:
        event.stop()
        self.query_one("#caption", Static).update(plain(event.caption), layout=False)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        if self.is_table and event.row_key.value is not None:
            self.graph.select(event.row_key.value)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value is not None:
            self.post_message(OverlayView.Opened(event.row_key.value))
