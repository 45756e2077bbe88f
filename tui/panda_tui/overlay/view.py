"""Decides how keys and the mouse move the stage, and hands its rows to Textual: only those that changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from panda_tui.model import Overlay
from panda_tui.overlay.graph import Edge
from panda_tui.overlay.painting import Mark, Tone
from panda_tui.overlay.painting import Style as Meaning
from panda_tui.overlay.stage import Stage

PAN_SHARE = 0.25  # of the screen, for a key


class OverlayView(Widget, can_focus=True):
    """The graph. Arrows select, + and - zoom; see the bindings."""

    DEFAULT_CSS = """
    OverlayView {
        background: $background;
        color: $foreground;
        & > .overlay-view--idle { color: $text-muted; }
        & > .overlay-view--calm { color: $text-success; }
        & > .overlay-view--busy { color: $text-warning; }
        & > .overlay-view--hot { color: $text-error; text-style: bold; }
        & > .overlay-view--paused { color: $text-warning; text-style: bold italic; }
        & > .overlay-view--down { color: $text-error; text-style: bold; }
        & > .overlay-view--unknown { color: $text-disabled; }
        & > .overlay-view--client { color: $text-secondary; }
        & > .overlay-view--found { background: $warning-muted; }
        & > .overlay-view--traced { color: $text-accent; background: $accent-muted; text-style: bold; }
        & > .overlay-view--selected { text-style: reverse bold; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"overlay-view--{tone}" for tone in Tone),
        *(f"overlay-view--{mark}" for mark in Mark if mark),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "details"),
        Binding("plus,equals_sign", "zoom(1)", "closer", key_display="+"),
        Binding("minus", "zoom(-1)", "farther", key_display="-"),
        Binding("0", "fit", "all of it", show=False),
        Binding("l", "layout", "layout"),
        Binding("f", "focus_here", "focus"),
        Binding("left_square_bracket", "hops(-1)", "fewer hops", key_display="[", show=False),
        Binding("right_square_bracket", "hops(1)", "more hops", key_display="]", show=False),
        Binding("c", "colour", "colour by load or state", show=False),
        Binding("g", "clients", "clients shown or not", show=False),
        Binding("n", "found(1)", "next found", show=False),
        Binding("N", "found(-1)", "previous found", show=False),
        Binding("left", "step(-1, 0)", "select the next node there", key_display="arrows", show=False),
        Binding("right", "step(1, 0)", show=False),
        Binding("up", "step(0, -1)", show=False),
        Binding("down", "step(0, 1)", show=False),
        Binding("shift+left", "pan(-1, 0)", "move", key_display="shift+arrows", show=False),
        Binding("shift+right", "pan(1, 0)", show=False),
        Binding("shift+up", "pan(0, -1)", show=False),
        Binding("shift+down", "pan(0, 1)", show=False),
    ]

    @dataclass
    class Selected(Message):
        """Another node is selected, or none."""

        name: str

    @dataclass
    class Opened(Message):
        """Somebody wants to know more of a node."""

        name: str

    @dataclass
    class Looked(Message):
        """It is looked at in another way: what is said about that has changed."""

        caption: str

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 — Textual's word
        super().__init__(id=id)
        self.stage = Stage()
        self._styles: dict[Meaning, Style] = {}
        self._dragged_from: tuple[int, int] | None = None
        self._dragged = False
        self._told = ("", "")

    # What is the case

    def show(self, overlay: Overlay) -> None:
        self._changed(self.stage.show(overlay))

    def light(self, nodes: Iterable[str], edges: Iterable[Edge]) -> None:
        self._changed(self.stage.light(frozenset(nodes), frozenset(edges)))

    def select(self, name: str) -> None:
        self._changed(self.stage.select(name))

    def search(self, text: str) -> None:
        self._changed(self.stage.search(text))

    def focus_on(self, centre: str) -> None:
        self._changed(self.stage.focus(centre))

    # Drawing

    def render_line(self, y: int) -> Strip:
        runs = self.stage.painting.runs(y)
        base = self.rich_style
        segments = [Segment(text, self._style(meaning, base)) for text, meaning in runs]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def notify_style_update(self) -> None:
        self._styles.clear()
        super().notify_style_update()

    def _style(self, meaning: Meaning | None, base: Style) -> Style:
        if meaning is None:
            return base
        known = self._styles.get(meaning)
        if known is None:
            tone, mark = meaning
            known = base + self.get_component_rich_style(f"overlay-view--{tone}", partial=True)
            if mark:
                known += self.get_component_rich_style(f"overlay-view--{mark}", partial=True)
            self._styles[meaning] = known
        return known

    def _changed(self, rows: set[int]) -> None:
        width, height = self.size
        if len(rows) >= height:
            self.refresh()
        elif rows:
            self.refresh(*(Region(0, row, width, 1) for row in sorted(rows)))
        told = (self.stage.caption(), self.stage.selected)
        if told[1] != self._told[1]:
            self.post_message(self.Selected(told[1]))
        if told != self._told:
            self._told = told
            self.post_message(self.Looked(told[0]))

    def on_resize(self, event: events.Resize) -> None:
        self._changed(self.stage.resize(event.size.width, event.size.height))

    # Keys

    def action_open(self) -> None:
        if self.stage.selected:
            self.post_message(self.Opened(self.stage.selected))

    def action_zoom(self, by: int) -> None:
        self._changed(self.stage.zoom(by))

    def action_fit(self) -> None:
        self._changed(self.stage.fit())

    def action_layout(self) -> None:
        self._changed(self.stage.lay_out(self.stage.layout.next))

    def action_colour(self) -> None:
        self._changed(self.stage.colour(self.stage.colouring.next))

    def action_clients(self) -> None:
        self._changed(self.stage.show_clients(not self.stage.shows_clients))

    def action_focus_here(self) -> None:
        """On the selected node; on everything when it is in focus already."""
        stage = self.stage
        self._changed(stage.focus("" if stage.centre == stage.selected else stage.selected))

    def action_hops(self, by: int) -> None:
        stage = self.stage
        if stage.centre:
            self._changed(stage.focus(stage.centre, max(1, stage.hops + by)))

    def action_found(self, by: int) -> None:
        self._changed(self.stage.next_found(by))

    def action_step(self, columns: int, rows: int) -> None:
        self._changed(self.stage.step(columns, rows))

    def action_pan(self, columns: int, rows: int) -> None:
        width, height = self.size
        self._changed(self.stage.pan(columns * width * PAN_SHARE, rows * height * PAN_SHARE))

    # The mouse: click selects, a second click opens, dragging moves, the wheel zooms

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragged_from = (event.x, event.y)
        self._dragged = False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged_from is None:
            return
        column, row = self._dragged_from
        if (event.x, event.y) != (column, row):
            self._dragged = True
            self._dragged_from = (event.x, event.y)
            self._changed(self.stage.pan(column - event.x, row - event.y))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        pressed, self._dragged_from = self._dragged_from, None
        if pressed is None or self._dragged:
            return
        thing = self.stage.picture.owner_at(event.x, event.y)
        if not isinstance(thing, str):
            return
        if thing == self.stage.selected:
            self.action_open()
        else:
            self._changed(self.stage.select(thing))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._changed(self.stage.zoom(1, (event.x, event.y)))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._changed(self.stage.zoom(-1, (event.x, event.y)))
