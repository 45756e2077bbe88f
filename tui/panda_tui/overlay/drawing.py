"""Decides how a placed graph becomes characters: boxes when there is room, else dots with the names that fit.

A picture holds what stays while rates and states change: letters, whose each cell is, and fields that are
filled in later. No two names, boxes or fields share a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rich.cells import cell_len

from panda_tui.escaping import one_line
from panda_tui.overlay.camera import Camera, Slot
from panda_tui.overlay.canvas import Canvas
from panda_tui.overlay.graph import Edge, Graph
from panda_tui.overlay.layout import Bend, Placed

NAME_MAX: Final = 14
"""Letters of a name that are shown, with … at the end of a longer one."""
RATE_WIDTH: Final = 5
BOX_ROWS: Final = 4
BOX_INNER_MIN: Final = 7
"""Columns inside of a box: "paused" fits."""
BEND_ROWS_MIN: Final = 3.0
BEND_COLUMNS_MIN: Final = 6.0
DOT_BROKER, DOT_CLIENT, CROWD = "●", "○", "◉"
_GAP_COLUMNS: Final = 3  # beside a box, so that a link is seen
_GAP_ROWS: Final = 3

Cell = tuple[int, int]
"""Column and row."""


@dataclass(frozen=True, slots=True)
class Field:
    """Room for a text that changes."""

    column: int
    row: int
    width: int
    owner: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Owners are numbers: nodes first, as in the graph, then edges; -1 is nobody."""

    graph: Graph
    width: int
    height: int
    letters: Sequence[list[str]]
    owners: Sequence[Sequence[int]]
    fields: Sequence[Field]
    boxed: bool
    unnamed: int
    """Nodes in sight without a name."""

    def owner_at(self, column: int, row: int) -> str | Edge | None:
        if not (0 <= row < self.height and 0 <= column < self.width):
            return None
        return self.thing(self.owners[row][column])

    def thing(self, owner: int) -> str | Edge | None:
        if owner < 0:
            return None
        nodes = self.graph.nodes
        return nodes[owner] if owner < len(nodes) else self.graph.edges[owner - len(nodes)]

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.letters)


@lru_cache(maxsize=4096)
def shown_name(name: str) -> str:
    """So many letters of it, each as wide as a cell, none that could steer a terminal."""
    text = "".join(letter if cell_len(letter) == 1 else "�" for letter in one_line(name))
    return text if len(text) <= NAME_MAX else text[: NAME_MAX - 1] + "…"


def inner_width(graph: Graph) -> int:
    """Of the boxes; all have the same, so that they stand in columns."""
    return max(BOX_INNER_MIN, *(len(shown_name(name)) for name in graph.nodes), 0) | 1


def full_slot(graph: Graph) -> Slot:
    """As large as it takes to give every node a box, and every link a gap."""
    width = inner_width(graph) + 2
    return Slot(float(width + _GAP_COLUMNS), float(BOX_ROWS + _GAP_ROWS))


def drawn(
    graph: Graph, standing: Placed, camera: Camera, first: Iterable[str] = (), raised: Iterable[Edge] = ()
) -> Picture:
    """`first` get their names before others; `raised` links lie above others."""
    return _Drawing(graph, standing, camera).picture(tuple(first), frozenset(raised))


class _Drawing:
    def __init__(self, graph: Graph, standing: Placed, camera: Camera) -> None:
        self.graph = graph
        self.standing = standing
        self.camera = camera
        self.slot = camera.slot
        self.canvas = Canvas(camera.width, camera.height)
        self.numbers = {name: i for i, name in enumerate(graph.nodes)}
        self.cells = {name: camera.cell(standing.points[name], self.slot) for name in graph.nodes}
        self.clients = frozenset(graph.clients)
        self.boxed = camera.step == camera.steps
        self.fields: list[Field] = []

    def picture(self, first: tuple[str, ...], raised: frozenset[Edge]) -> Picture:
        edges = self.graph.edges
        order = sorted(range(len(edges)), key=lambda i: edges[i] in raised) if raised else range(len(edges))
        spots = [(i, self._link(edges[i], i + len(self.numbers))) for i in order]
        if self.boxed:
            self._boxes()
        unnamed = 0 if self.boxed else self._dots(first)
        for i, spot in spots:
            if spot is not None:
                self._rate(*spot, i + len(self.numbers))
        width = self.canvas.width
        owners = self.canvas.owners
        return Picture(
            self.graph,
            width,
            self.canvas.height,
            self.canvas.rows(),
            [owners[start : start + width] for start in range(0, len(owners), width or 1)],
            self.fields,
            self.boxed,
            unnamed,
        )

    # Links

    def _link(self, edge: Edge, owner: int) -> Cell | None:
        """Draw it; where its rate belongs, if it is long enough to have one."""
        parents: Mapping[Edge, tuple[str, str]] = self.standing.parents or {}
        up, down = parents.get(edge, edge)
        start, end = self.cells[up], self.cells[down]
        roomy = self.slot.rows >= BEND_ROWS_MIN and self.slot.columns >= BEND_COLUMNS_MIN
        if roomy and edge in parents:
            if self.standing.bend is Bend.DOWN:
                return self._bend_down(start, end, owner)
            return self._bend_across(start, end, owner)
        self.canvas.straight(start, end, owner)
        long = abs(start[0] - end[0]) >= 3 * RATE_WIDTH or abs(start[1] - end[1]) >= 4
        return ((start[0] + end[0]) // 2, (start[1] + end[1]) // 2) if long else None

    def _bend_down(self, start: Cell, end: Cell, owner: int) -> Cell | None:
        below = 2 if self.boxed else 0  # rows of a box under its name
        turn = start[1] + below + (end[1] - start[1] - below) // 2
        self.canvas.down(start[0], start[1], turn, owner)
        self.canvas.across(turn, start[0], end[0], owner)
        self.canvas.down(end[0], turn, end[1], owner)
        return (end[0], turn + 1) if self.boxed else None

    def _bend_across(self, start: Cell, end: Cell, owner: int) -> Cell | None:
        turn = (start[0] + end[0]) // 2 if not self.boxed else end[0] - self._half_box() - 2
        self.canvas.across(start[1], start[0], turn, owner)
        self.canvas.down(turn, start[1], end[1], owner)
        self.canvas.across(end[1], turn, end[0], owner)
        if not self.boxed:
            return None
        return (end[0], end[1] + (3 if end[1] > start[1] else -2))

    def _rate(self, column: int, row: int, owner: int) -> None:
        left = column - RATE_WIDTH // 2
        if self.canvas.is_free(left, row, RATE_WIDTH):
            self.canvas.reserve(left, row, RATE_WIDTH, owner)
            self.fields.append(Field(left, row, RATE_WIDTH, owner))

    # Nodes

    def _half_box(self) -> int:
        return inner_width(self.graph) // 2 + 1

    def _boxes(self) -> None:
        inner = inner_width(self.graph)
        half = inner // 2 + 1
        for name, (column, row) in self.cells.items():
            left, top = column - half, row - 1
            if left + inner + 2 <= 0 or left >= self.canvas.width:
                continue
            if top + BOX_ROWS <= 0 or top >= self.canvas.height:
                continue
            owner = self.numbers[name]
            line = ("╌" if name in self.clients else "─") * inner
            self.canvas.write(left, top, f"╭{line}╮", owner)
            self.canvas.write(left, top + 1, f"│{shown_name(name):^{inner}}│", owner)
            self.canvas.write(left, top + 2, "│" + " " * inner + "│", owner)
            self.canvas.write(left, top + 3, f"╰{line}╯", owner)
            if self.canvas.is_inside(left + 1, top + 2, inner):
                self.fields.append(Field(left + 1, top + 2, inner, owner))

    def _dots(self, first: tuple[str, ...]) -> int:
        """Dots, then names beside them as far as there is room; how many are left without."""
        canvas = self.canvas
        for name, (column, row) in self.cells.items():
            if canvas.text_at(column, row):
                canvas.write(column, row, CROWD, self.numbers[name])
            else:
                dot = DOT_CLIENT if name in self.clients else DOT_BROKER
                canvas.write(column, row, dot, self.numbers[name])
        unnamed = 0
        for name in self._by_rank(first):
            column, row = self.cells[name]
            if not canvas.text_at(column, row) or self._name(name, column, row):
                continue
            if name in first[:1]:  # whoever comes first is named, over the dots of others if it must be
                text = shown_name(name)
                left = column + 1 if column + len(text) < canvas.width else column - len(text)
                canvas.write(left, row, text, self.numbers[name])
            else:
                unnamed += 1
        return unnamed

    def _by_rank(self, first: tuple[str, ...]) -> list[str]:
        chosen = {name: i for i, name in enumerate(first)}
        adjacent = self.graph.adjacent

        def rank(name: str) -> tuple[int, bool, int]:
            return (chosen.get(name, len(chosen)), name in self.clients, -len(adjacent[name]))

        return sorted(self.graph.nodes, key=rank)

    def _name(self, name: str, column: int, row: int) -> bool:
        """Right of the dot, left of it, below or above: wherever it does not touch another text."""
        text = shown_name(name)
        width = len(text)
        middle = column - width // 2
        spots = (  # column, row, whether a text may touch it before and after
            (column + 1, row, True, False),
            (column - width, row, False, True),
            (middle, row + 1, False, False),
            (middle, row - 1, False, False),
        )
        canvas = self.canvas
        for left, its_row, before, after in spots:
            alone = (before or not canvas.text_at(left - 1, its_row)) and (
                after or not canvas.text_at(left + width, its_row)
            )
            if alone and canvas.is_free(left, its_row, width):
                canvas.write(left, its_row, text, self.numbers[name])
                return True
        return False
