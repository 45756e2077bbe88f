"""Decides how a person is asked: what will happen, in full sentences, and yes or no."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from panda_tui.escaping import lines, plain


class ConfirmScreen(ModalScreen[bool]):
    """No is where the keyboard is at first, and what Escape means."""

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Vertical {
        width: 72; max-width: 95%; height: auto; max-height: 90%; padding: 1 2; border: thick $error;
        background: $surface;
    }
    ConfirmScreen Static { height: auto; margin-bottom: 1; }
    ConfirmScreen Horizontal { height: auto; align-horizontal: right; }
    ConfirmScreen Button { margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
    ]

    def __init__(self, title: str, means: str, yes: str = "Do it") -> None:
        super().__init__()
        self._title = title
        self._means = means
        self._yes = yes

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(plain(f"{self._title}?", "bold"))
            yield Static(lines(self._means))
            with Horizontal():
                yield Button("No (n)", id="no")
                yield Button(f"{self._yes} (y)", id="yes", variant="error")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        self.dismiss(pressed.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
