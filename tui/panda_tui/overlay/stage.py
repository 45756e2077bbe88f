"""Decides what is in front of the spectator: which part of the graph, from where, what is selected and found.

Everything that changes the picture returns the rows that look different now; nothing here knows a widget.
"""

from __future__ import annotations

from typing import Final

from panda_tui.model import Overlay
from panda_tui.overlay.camera import Camera, camera_for
from panda_tui.overlay.drawing import Picture, drawn, full_slot
from panda_tui.overlay.graph import Edge, Graph
from panda_tui.overlay.layout import Layout, Placed, placed
from panda_tui.overlay.painting import Looks, Mark, Marks, Painting, Thing
from panda_tui.overlay.scene import Colouring, graph_of_overlay, looks_of

HOPS_FIRST: Final = 2
HOPS_MAX: Final = 20
CLIENTS_MAX: Final = 150
"""Beyond so many, clients are shown only when asked for."""

Rows = set[int]


class Stage:
    def __init__(self) -> None:
        self.layout = Layout.TREE
        self.colouring = Colouring.LOAD
        self.clients: bool | None = None  # None: unless there are too many
        self.selected = ""
        self.centre = ""  # of the neighbourhood that is in focus; empty: everything
        self.hops = HOPS_FIRST
        self.wanted = ""  # what was searched for
        self.found: tuple[str, ...] = ()
        self.overlay = Overlay()
        self._way_nodes: frozenset[str] = frozenset()
        self._way_edges: frozenset[Edge] = frozenset()
        self._whole = Graph()
        self.graph = Graph()
        self._standing = Placed({})
        self._camera = camera_for(self._standing, full_slot(self.graph), 1, 1)
        self._painting = Painting(drawn(self.graph, self._standing, self._camera))
        self._looks: Looks = {}

    @property
    def picture(self) -> Picture:
        return self._painting.picture

    @property
    def painting(self) -> Painting:
        return self._painting

    @property
    def shows_clients(self) -> bool:
        return len(self._whole.clients) <= CLIENTS_MAX if self.clients is None else self.clients

    # What is the case

    def show(self, overlay: Overlay) -> Rows:
        """The network as it is now."""
        grown = overlay.shape != self.overlay.shape
        self.overlay = overlay
        self._looks = looks_of(overlay, self.colouring)
        if not grown:
            return self._repaint()
        self._whole = graph_of_overlay(overlay)
        if self.selected not in self._whole.adjacent:
            self.selected = ""
        if self.centre not in self._whole.adjacent:
            self.centre = ""
        self.found = self._whole.search(self.wanted)
        return self._regraph()

    def light(self, nodes: frozenset[str], edges: frozenset[Edge]) -> Rows:
        """Light up the way of a message."""
        if (nodes, edges) == (self._way_nodes, self._way_edges):
            return set()
        self._way_nodes, self._way_edges = nodes, edges
        return self._redraw()

    # How it is looked at

    def resize(self, width: int, height: int) -> Rows:
        if (width, height) == (self._camera.width, self._camera.height):
            return set()
        self._aim(width, height)
        self._redraw()
        return set(range(height))

    def lay_out(self, layout: Layout) -> Rows:
        self.layout = layout
        return self._regraph()

    def colour(self, colouring: Colouring) -> Rows:
        self.colouring = colouring
        self._looks = looks_of(self.overlay, colouring)
        return self._repaint()

    def show_clients(self, wanted: bool) -> Rows:
        self.clients = wanted
        return self._regraph()

    def zoom(self, by: int, at: tuple[int, int] | None = None) -> Rows:
        """Closer or farther, around a cell, or around what is selected."""
        old = self._camera
        new = old.zoomed(by)
        if at is not None:
            column, row = at[0] - old.width / 2, at[1] - old.height / 2
            new = old.panned(column, row).zoomed(by).panned(-column, -row)
        elif self.selected in self._standing.points:
            new = new.at(self._standing.points[self.selected]) if by > 0 else new
        return self._look(new if new.step else self._fitting())

    def fit(self) -> Rows:
        return self._look(self._fitting())

    def pan(self, columns: float, rows: float) -> Rows:
        return self._look(self._camera.panned(columns, rows).within(self._standing.box))

    # Choosing

    def select(self, name: str) -> Rows:
        if name and name not in self._whole.adjacent:
            return set()
        self.selected = name
        if name and name not in self.graph.adjacent:  # out of focus, or a client that is not shown
            self.centre = ""
            if name in self._whole.clients:
                self.clients = True
            return self._regraph()
        point = self._standing.points.get(name)
        return self._look(self._camera.seeing(point)) if point else self._redraw()

    def step(self, columns: int, rows: int) -> Rows:
        """Select the nearest node in a direction; when nothing is selected, the one nearest to the middle."""
        camera, slot = self._camera, self._camera.slot
        cells = {name: camera.cell(point, slot) for name, point in self._standing.points.items()}
        start = cells.get(self.selected)
        if start is None:
            middle = (camera.width // 2, camera.height // 2)
            names = sorted(cells, key=lambda each: _distance(cells[each], middle))
            return self.select(names[0]) if names else set()
        best, least = "", float("inf")
        for name, (column, row) in cells.items():
            across, down = (column - start[0]) / 2, float(row - start[1])  # a cell is twice as high as wide
            ahead = across * columns + down * rows
            aside = abs(across * rows) + abs(down * columns)
            cost = ahead + 2 * aside
            if ahead > 0 and cost < least:
                best, least = name, cost
        return self.select(best) if best else set()

    def search(self, text: str) -> Rows:
        self.wanted = text
        self.found = self._whole.search(text)
        if self.found and self.selected not in self.found:
            return self.select(self.found[0])
        return self._redraw()

    def next_found(self, by: int) -> Rows:
        if not self.found:
            return set()
        at = self.found.index(self.selected) if self.selected in self.found else -1
        return self.select(self.found[(at + by) % len(self.found)])

    def focus(self, centre: str, hops: int = 0) -> Rows:
        """Show only what is near this node; the whole again when it is empty."""
        self.centre = centre if centre in self._whole.adjacent else ""
        self.hops = min(HOPS_MAX, max(1, hops or self.hops))
        return self._regraph()

    def caption(self) -> str:
        """How all this is looked at, in a line."""
        camera, picture = self._camera, self.picture
        parts = [f"{self.layout}", f"colour: {self.colouring}"]
        if camera.steps:
            parts.append(f"zoom {camera.step}/{camera.steps}")
        if self.centre:
            parts.append(f"{self.hops} {'hop' if self.hops == 1 else 'hops'} around {self.centre}")
        if self.wanted:
            parts.append(f"/{self.wanted}: {len(self.found) or 'none'} found")
        if not self.shows_clients and self._whole.clients:
            parts.append("clients hidden")
        if picture.unnamed:
            parts.append(f"{picture.unnamed} without a name: zoom in")
        return " · ".join(parts)

    # Inside

    def _regraph(self) -> Rows:
        graph = self._whole if self.shows_clients else self._whole.without_clients()
        if self.centre:
            graph = graph.neighbourhood(self.centre, self.hops)
        self.graph = graph
        self._standing = placed(graph, self.layout)
        self._aim(self._camera.width, self._camera.height)
        return self._redraw()

    def _aim(self, width: int, height: int) -> None:
        """A new camera for what there is now, about where the old one was."""
        old = self._camera
        camera = camera_for(self._standing, full_slot(self.graph), width, height)
        if old.step and camera.steps:
            spot = self._standing.points.get(self.selected, (old.x, old.y))
            camera = camera.zoomed(old.step).at(spot).within(self._standing.box)
        self._camera = camera

    def _fitting(self) -> Camera:
        camera = self._camera
        return camera_for(self._standing, camera.full, camera.width, camera.height)

    def _look(self, camera: Camera) -> Rows:
        self._camera = camera
        return self._redraw()

    def _redraw(self) -> Rows:
        old = self._painting
        first = [each for each in (self.selected, self.centre, *self.found) if each]
        first += sorted(self._way_nodes)
        picture = drawn(self.graph, self._standing, self._camera, first, self._way_edges)
        self._painting = Painting(picture)
        self._repaint()
        if (old.picture.width, old.picture.height) != (picture.width, picture.height):
            return set(range(picture.height))
        return {row for row in range(picture.height) if old.runs(row) != self._painting.runs(row)}

    def _repaint(self) -> Rows:
        return self._painting.paint(self._looks, self._marks())

    def _marks(self) -> Marks:
        marks: dict[Thing, Mark] = dict.fromkeys(self.found, Mark.FOUND)
        marks.update(dict.fromkeys(self._way_nodes, Mark.TRACED))
        marks.update(dict.fromkeys(self._way_edges, Mark.TRACED))
        if self.selected:
            marks[self.selected] = Mark.SELECTED
        return marks


def _distance(one: tuple[int, int], other: tuple[int, int]) -> float:
    return (one[0] - other[0]) ** 2 / 4 + (one[1] - other[1]) ** 2
