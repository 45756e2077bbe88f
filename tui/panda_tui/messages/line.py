"""Decides how a line is typed: earlier lines by arrows, completion by Tab, mistakes under their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from broker_runtime.language import LanguageError, Problem
from panda_tui.escaping import one_line
from panda_tui.messages.completion import Names, Offer, Vocabulary, offers
from panda_tui.messages.recall import Recall
from panda_tui.messages.words import is_comment, read


class LineInput(Input):
    """Tells what would help with each change; the line itself comes as Input.Submitted."""

    DEFAULT_CSS = "LineInput { border: none; height: 1; padding: 0 1 !important; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=True, key_display="Tab"),
        Binding("up", "recall(-1)", "earlier lines", key_display="↑", show=False),
        Binding("down", "recall(1)", "later lines", key_display="↓", show=False),
    ]

    @dataclass
    class Helped(Message):
        """What is wrong with the line so far, and what may come next."""

        text: Text

    def __init__(self, vocabulary: Vocabulary, names: Callable[[], Names], id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, select_on_focus=False, placeholder="a word; Tab shows them")
        self.recalled = Recall()
        self._vocabulary = vocabulary
        self._names = names
        self._offered: list[Offer] = []
        self._turn = -1  # which offer is in the line
        self._completed = ""  # the line as the last Tab left it

    def put(self, line: str) -> None:
        """Have this line in it, with the cursor at its end."""
        self.value = line
        self.cursor_position = len(line)

    def action_complete(self) -> None:
        """The first offer; the next one with each further Tab."""
        if self.value != self._completed or not self._offered:
            self._offered = offers(self.value, self.cursor_position, self._vocabulary, self._names())
            self._turn = -1
        if not self._offered:
            return
        cursor = self.cursor_position
        self._turn = (self._turn + 1) % len(self._offered)
        offer = self._offered[self._turn]
        self._completed = self.value[: offer.start] + offer.text + self.value[cursor:]
        self.value = self._completed
        self.cursor_position = offer.start + len(offer.text)
        if len(self._offered) == 1:
            self._offered = []

    def action_recall(self, by: int) -> None:
        self.put(self.recalled.back(self.value) if by < 0 else self.recalled.forward(self.value))

    def watch_selection(self) -> None:
        self._help()

    def on_input_changed(self) -> None:
        self._help()

    def _help(self) -> None:
        if self.is_mounted:
            self.post_message(self.Helped(self._helping()))

    def _helping(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        problem = problem_of(self.value)
        if problem is not None:
            shift = cell_len(self.value[: problem.column - 1]) - round(self.scroll_x)
            unfinished = problem.column > len(self.value)
            text.append(
                " " * max(0, shift) + "^ " if shift >= 0 else "… ", "dim" if unfinished else "bold yellow"
            )
            text.append(one_line(problem.message), "dim" if unfinished else "yellow")
            if problem.hint:
                text.append(f"  {one_line(problem.hint)}", "dim")
        text.append("\n")
        if self.value == self._completed and self._offered:
            found, chosen = self._offered, self._turn
        else:
            found = offers(self.value, self.cursor_position, self._vocabulary, self._names())
            chosen = -1
        for number, offer in enumerate(found):
            text.append(f"{one_line(offer.text)} ", "reverse" if number == chosen else "dim")
            text.append(" ")
        return text


def problem_of(line: str) -> Problem | None:
    """The first thing that is wrong with it; nothing is with an empty one."""
    if is_comment(line):
        return None
    try:
        read(line, datetime.now(UTC))
    except LanguageError as error:
        return error.problems[0]
    return None
