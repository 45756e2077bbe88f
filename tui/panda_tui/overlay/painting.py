"""Decides how a picture is coloured and what its fields say; tells which rows differ from last time.

Letters stay while rates change, so an update costs as much as has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from panda_tui.overlay.drawing import Field, Picture
from panda_tui.overlay.graph import Edge

Thing = str | Edge


class Tone(StrEnum):
    """What a colour means."""

    IDLE = "idle"
    CALM = "calm"
    BUSY = "busy"
    HOT = "hot"
    PAUSED = "paused"
    DOWN = "down"
    UNKNOWN = "unknown"
    CLIENT = "client"


class Mark(StrEnum):
    """What a person or a trace put on it, on top of its tone."""

    NONE = ""
    FOUND = "found"
    TRACED = "traced"
    SELECTED = "selected"


@dataclass(frozen=True, slots=True)
class Look:
    tone: Tone = Tone.UNKNOWN
    text: str = ""


Looks = Mapping[Thing, Look]
Marks = Mapping[Thing, Mark]
Style = tuple[Tone, Mark]
Run = tuple[str, Style | None]

UNSEEN = Look()


@dataclass
class Painting:
    """One picture in its present colours."""

    picture: Picture
    _styles: list[Style] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _rows_of: list[set[int]] = field(default_factory=list)
    _letters: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        picture = self.picture
        count = len(picture.graph.nodes) + len(picture.graph.edges)
        self._rows_of = [set() for _ in range(count)]
        for number, owners in enumerate(picture.owners):
            for owner in set(owners):
                if owner >= 0:
                    self._rows_of[owner].add(number)
        self._styles = [(Tone.UNKNOWN, Mark.NONE)] * count
        self._texts = [""] * len(picture.fields)
        self._letters = [list(row) for row in picture.letters]

    def paint(self, looks: Looks, marks: Marks) -> set[int]:
        """Take over what is the case now; the rows that changed."""
        dirty: set[int] = set()
        graph = self.picture.graph
        things: Sequence[Thing] = (*graph.nodes, *graph.edges)
        for owner, thing in enumerate(things):
            style = (looks.get(thing, UNSEEN).tone, marks.get(thing, Mark.NONE))
            if style != self._styles[owner]:
                self._styles[owner] = style
                dirty |= self._rows_of[owner]
        for number, place in enumerate(self.picture.fields):
            text = looks.get(things[place.owner], UNSEEN).text
            if text != self._texts[number]:
                self._texts[number] = text
                self._fill(place, text[: place.width])
                dirty.add(place.row)
        return dirty

    def _fill(self, place: Field, text: str) -> None:
        """The text in the middle, and beside it what was drawn there."""
        under = self.picture.letters[place.row][place.column : place.column + place.width]
        before = (place.width - len(text)) // 2
        under[before : before + len(text)] = text
        self._letters[place.row][place.column : place.column + place.width] = under

    def runs(self, row: int) -> list[Run]:
        """The row as pieces of one style each; blanks go with what is before them, if that has no mark."""
        if not 0 <= row < self.picture.height:
            return []
        letters, styles = self._letters[row], self._styles
        owners = self.picture.owners[row]
        runs: list[Run] = []
        start, width = 0, self.picture.width
        current: Style | None = None
        last = -1  # whose the cell before is
        for at, owner in enumerate(owners):
            if owner == last:
                continue
            last = owner
            style = styles[owner] if owner >= 0 else None
            if style == current or (style is None and current is not None and not current[1]):
                continue
            if at > start:
                runs.append(("".join(letters[start:at]), current))
                start = at
            current = style
        if width > start:
            runs.append(("".join(letters[start:width]), current))
        return runs

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._letters)
