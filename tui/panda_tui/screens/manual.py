"""Decides how a screen explains itself: what it shows and every key that it knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Markdown, Static


class ManualScreen(ModalScreen[None]):
    DEFAULT_CSS = """
    ManualScreen { align: center middle; }
    ManualScreen > VerticalScroll {
        width: 80; max-width: 96%; height: auto; max-height: 92%; padding: 0 2; border: round $accent;
        background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,question_mark", "dismiss", "close")]

    def __init__(self, title: str, manual: str, keys: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._title = title
        self._manual = manual
        self._keys = list(keys)

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Text(f"{self._title}\n", "bold"))
            yield Markdown(self._manual, open_links=False)
            width = max((len(key) for key, _ in self._keys), default=0)
            text = Text()
            for key, what in self._keys:
                text.append(f"  {key:<{width}}", "bold")
                text.append(f"  {what}\n")
            yield Static(text)
