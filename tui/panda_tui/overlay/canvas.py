"""Decides which characters lines become, and remembers whose each cell is.

Straight lines are dots of Braille, eight to a cell; lines that turn corners are box-drawing characters,
joined where they meet. What lies beyond the edges costs nothing.
"""

from __future__ import annotations

from typing import Final

NOBODY: Final = -1

_NORTH, _EAST, _SOUTH, _WEST = 1, 2, 4, 8
_BENDS: Final = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"  # by the sum of the directions that a cell joins
_BRAILLE: Final = 0x2800
# The bit of each dot of a cell, [column][row].
_DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        cells = width * height
        self._texts: dict[int, str] = {}
        self._reserved: set[int] = set()
        self._braille = bytearray(cells)
        self._bends = bytearray(cells)
        self.owners = [NOBODY] * cells

    # Lines

    def straight(self, start: tuple[int, int], end: tuple[int, int], owner: int) -> None:
        """From the middle of one cell to the middle of another, by Bresenham."""
        width, height = 2 * self.width, 4 * self.height
        clipped = _clipped(
            (2 * start[0] + 0.5, 4 * start[1] + 1.5), (2 * end[0] + 0.5, 4 * end[1] + 1.5), width, height
        )
        if clipped is None:
            return
        x, y, end_x, end_y = clipped
        across, down = abs(end_x - x), -abs(end_y - y)
        step_x, step_y = (1 if x < end_x else -1), (1 if y < end_y else -1)
        error = across + down
        braille, owners, columns = self._braille, self.owners, self.width
        while True:
            cell = (y >> 2) * columns + (x >> 1)
            braille[cell] |= _DOTS[x & 1][y & 3]
            owners[cell] = owner
            if x == end_x and y == end_y:
                return
            twice = 2 * error
            if twice >= down:
                error += down
                x += step_x
            if twice <= across:
                error += across
                y += step_y

    def across(self, row: int, one: int, other: int, owner: int) -> None:
        if not 0 <= row < self.height:
            return
        left, right = min(one, other), max(one, other)
        for column in range(max(0, left), min(self.width - 1, right) + 1):
            joins = (_WEST if column > left else 0) | (_EAST if column < right else 0)
            self._join(row * self.width + column, joins, owner)

    def down(self, column: int, one: int, other: int, owner: int) -> None:
        if not 0 <= column < self.width:
            return
        top, bottom = min(one, other), max(one, other)
        for row in range(max(0, top), min(self.height - 1, bottom) + 1):
            joins = (_NORTH if row > top else 0) | (_SOUTH if row < bottom else 0)
            self._join(row * self.width + column, joins, owner)

    def _join(self, cell: int, joins: int, owner: int) -> None:
        if joins:
            self._bends[cell] |= joins
            self.owners[cell] = owner

    # Text

    def write(self, column: int, row: int, text: str, owner: int) -> None:
        """Over whatever is there; what does not fit is cut off."""
        if not 0 <= row < self.height:
            return
        start = row * self.width
        for at, letter in enumerate(text, column):
            if 0 <= at < self.width:
                self._texts[start + at] = letter
                self.owners[start + at] = owner

    def is_inside(self, column: int, row: int, width: int) -> bool:
        return 0 <= row < self.height and column >= 0 and column + width <= self.width

    def is_free(self, column: int, row: int, width: int) -> bool:
        """Whether all of it is in sight and holds no text, now or later; lines are in nobody's way."""
        if not self.is_inside(column, row, width):
            return False
        start = row * self.width + column
        cells = range(start, start + width)
        return self._reserved.isdisjoint(cells) and not any(cell in self._texts for cell in cells)

    def reserve(self, column: int, row: int, width: int, owner: int) -> None:
        """Keep room for a text to come; until then what is drawn there is seen."""
        start = row * self.width + column
        self._reserved.update(range(start, start + width))
        self.owners[start : start + width] = [owner] * width

    def text_at(self, column: int, row: int) -> str:
        if 0 <= row < self.height and 0 <= column < self.width:
            return self._texts.get(row * self.width + column, "")
        return ""

    def rows(self) -> list[list[str]]:
        """Characters, row by row."""
        letters = [
            chr(_BRAILLE + dots) if dots else _BENDS[joins]
            for dots, joins in zip(self._braille, self._bends, strict=True)
        ]
        for cell, joins in enumerate(self._bends):
            if joins:  # a corner says more than the dots of a line that passes
                letters[cell] = _BENDS[joins]
        for cell, letter in self._texts.items():
            letters[cell] = letter
        return [letters[start : start + self.width] for start in range(0, len(letters), self.width or 1)]


def _clipped(
    start: tuple[float, float], end: tuple[float, float], width: int, height: int
) -> tuple[int, int, int, int] | None:
    """The part of a line within the canvas, by Liang and Barsky; None if there is none."""
    (x, y), (end_x, end_y) = start, end
    across, down = end_x - x, end_y - y
    enter, leave = 0.0, 1.0
    for towards, room in ((-across, x), (across, width - 1 - x), (-down, y), (down, height - 1 - y)):
        if towards == 0:
            if room < 0:
                return None
        elif towards < 0:
            enter = max(enter, room / towards)
        else:
            leave = min(leave, room / towards)
    if enter > leave:
        return None

    def inside(value: float, size: int) -> int:
        return min(size - 1, max(0, int(value)))

    return (
        inside(x + enter * across, width),
        inside(y + enter * down, height),
        inside(x + leave * across, width),
        inside(y + leave * down, height),
    )
