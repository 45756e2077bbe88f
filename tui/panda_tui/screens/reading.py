"""Something longer to read, on top of what is in front."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.screen import ModalScreen
from textual.widgets import Static

from panda_tui.escaping import lines, plain


class ReadingScreen(ModalScreen[None]):
    DEFAULT_CSS = """
    ReadingScreen { align: center middle; }
    ReadingScreen > ScrollableContainer {
        width: 96%; height: 92%; padding: 0 1; border: round $accent; background: $surface;
    }
    ReadingScreen Static { width: auto; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "close")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with ScrollableContainer():
            yield Static(plain(self._title, "bold"))
            yield Static(lines(f"\n{self._text}"))
