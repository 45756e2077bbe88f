"""Decides how a screen explains itself: what it shows and every key that it knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Markdown


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
        listed = "\n".join(f"| `{key}` | {what} |" for key, what in keys)
        self._text = f"# {title}\n\n{manual}\n\n| key | |\n|---|---|\n{listed}\n"

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Markdown(self._text, open_links=False)
