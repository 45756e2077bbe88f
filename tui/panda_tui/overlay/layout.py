"""Decides where nodes stand, in slots: two nodes are always at least one slot apart, across or down.

A slot is as wide and as high as a camera makes it. Nothing here depends on chance, hashing or what was drawn
before, so that equal graphs stand alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from panda_tui.overlay.graph import Edge, Graph, edge_of

Point = tuple[float, float]

SWEEPS = 5  # of the barycentre method; the last one goes down, which leaves a tree without crossings
PART_GAP = 1.0  # slots between parts that nothing connects, beyond the one that nodes have anyway


class Layout(StrEnum):
    TREE = "tree"
    LAYERED = "layered"
    CIRCULAR = "circular"

    @property
    def next(self) -> Layout:
        known = list(Layout)
        return known[(known.index(self) + 1) % len(known)]


class Bend(StrEnum):
    """How links of a tree turn: from level to level down the screen, or across it."""

    DOWN = "down"
    ACROSS = "across"


@dataclass(frozen=True)
class Placed:
    points: Mapping[str, Point]
    bend: Bend | None = None
    parents: Mapping[Edge, tuple[str, str]] | None = None
    """Links of the tree, with parent and child; they turn corners, all others are straight."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        if not self.points:
            return (0.0, 0.0, 0.0, 0.0)
        across = [x for x, _ in self.points.values()]
        down = [y for _, y in self.points.values()]
        return (min(across), min(down), max(across), max(down))


def placed(graph: Graph, layout: Layout) -> Placed:
    return _LAYOUTS[layout](graph)


def centre_of(graph: Graph, part: Iterable[str]) -> str:
    """The middle of a longest way through the part, which makes its tree lowest; exact without cycles."""
    start = next(iter(part))
    one = _farthest(graph, start)
    from_one = graph.distances(one)
    other = _farthest(graph, one)
    length = from_one[other]
    from_other = graph.distances(other)
    on_way = [name for name, hops in from_one.items() if hops + from_other[name] == length]
    return min(on_way, key=lambda name: (abs(2 * from_one[name] - length), -len(graph.adjacent[name])))


def _farthest(graph: Graph, start: str) -> str:
    distances = graph.distances(start)
    most = max(distances.values())
    return next(name for name, hops in distances.items() if hops == most)


# Tree: Reingold and Tilford's tidy drawing, with the contours of subtrees kept as lists


def tree(graph: Graph) -> Placed:
    points: dict[str, Point] = {}
    parents: dict[Edge, tuple[str, str]] = {}
    left = 0.0
    for part in graph.components():
        children = _spanning(graph, centre_of(graph, part))
        standing = _tidy(children)
        shift = left - min(x for x, _ in standing.values())
        points.update({name: (x + shift, y) for name, (x, y) in standing.items()})
        left = max(x for x, _ in standing.values()) + shift + 1.0 + PART_GAP
        parents.update({edge_of(up, down): (up, down) for up, downs in children.items() for down in downs})
    return _turned(points, parents)


def _spanning(graph: Graph, root: str) -> dict[str, list[str]]:
    """Children by parent, parents before their children."""
    children: dict[str, list[str]] = {root: []}
    order = [root]
    for name in order:
        for other in graph.adjacent[name]:
            if other not in children:
                children[other] = []
                children[name].append(other)
                order.append(other)
    return children


def _tidy(children: Mapping[str, list[str]]) -> dict[str, Point]:
    order = list(children)
    offsets: dict[str, float] = {}  # of a child from its parent
    contours: dict[str, tuple[list[float], list[float]]] = {}  # of a subtree: left and right, by depth
    for name in reversed(order):
        spots, left, right = _side_by_side([contours.pop(child) for child in children[name]])
        middle = (spots[0] + spots[-1]) / 2 if spots else 0.0
        offsets.update({child: spot - middle for child, spot in zip(children[name], spots, strict=True)})
        contours[name] = ([0.0, *(x - middle for x in left)], [0.0, *(x - middle for x in right)])
    points: dict[str, Point] = {order[0]: (0.0, 0.0)}
    for name in order:
        x, y = points[name]
        points.update({child: (x + offsets[child], y + 1) for child in children[name]})
    return points


def _side_by_side(
    contours: list[tuple[list[float], list[float]]],
) -> tuple[list[float], list[float], list[float]]:
    """Where subtrees stand when each is as near to those before it as it may be, and their contour."""
    spots: list[float] = []
    left: list[float] = []
    right: list[float] = []
    for its_left, its_right in contours:
        common = zip(right, its_left, strict=False)
        spot = max((theirs - its + 1.0 for theirs, its in common), default=0.0)
        spots.append(spot)
        left.extend(x + spot for x in its_left[len(left) :])
        right = [x + spot for x in its_right] + right[len(its_right) :]
    return spots, left, right


def _turned(points: dict[str, Point], parents: Mapping[Edge, tuple[str, str]] | None) -> Placed:
    """Screens are wide: what is higher than wide lies down."""
    upright = Placed(points, Bend.DOWN if parents is not None else None, parents)
    left, top, right, bottom = upright.box
    if bottom - top <= right - left:
        return upright
    lying = {name: (y, x) for name, (x, y) in points.items()}
    return Placed(lying, Bend.ACROSS if parents is not None else None, parents)


# Layered: by distance from the centre, ordered by barycentres (Sugiyama, Tagawa and Toda)


def layered(graph: Graph) -> Placed:
    points: dict[str, Point] = {}
    left = 0.0
    for part in graph.components():
        layers = _layers(graph, centre_of(graph, part))
        wide = max(map(len, layers))
        for y, layer in enumerate(layers):
            start = left + (wide - len(layer)) / 2
            points.update({name: (start + i, float(y)) for i, name in enumerate(layer)})
        left += wide + PART_GAP
    return _turned(points, None)


def _layers(graph: Graph, root: str) -> list[list[str]]:
    distances = graph.distances(root)
    layers: list[list[str]] = [[] for _ in range(max(distances.values()) + 1)]
    for name, hops in distances.items():
        layers[hops].append(name)
    for sweep in range(SWEEPS):
        going_down = sweep % 2 == 0
        numbers = range(1, len(layers)) if going_down else range(len(layers) - 2, -1, -1)
        for number in numbers:
            beside = layers[number - 1 if going_down else number + 1]
            spots = {name: i - len(beside) / 2 for i, name in enumerate(beside)}
            layers[number] = _by_barycentre(graph, layers[number], spots)
    return layers


def _by_barycentre(graph: Graph, layer: list[str], spots: Mapping[str, float]) -> list[str]:
    half = len(layer) / 2

    def barycentre(i: int) -> float:
        near = [spots[other] for other in graph.adjacent[layer[i]] if other in spots]
        return sum(near) / len(near) if near else i - half

    order = sorted(range(len(layer)), key=lambda i: (barycentre(i), i))
    return [layer[i] for i in order]


# Circular: in the order of a walk through the tree, so that links of a tree never cross


def circular(graph: Graph) -> Placed:
    names = [name for part in graph.components() for name in _walk(graph, centre_of(graph, part))]
    if len(names) < 2:
        return Placed(dict.fromkeys(names, (0.0, 0.0)))
    turn = 2 * math.pi / len(names)
    # A chord of √2 or more is at least one slot across or down.
    radius = math.sqrt(0.5) / math.sin(turn / 2) + 1e-9
    points = {
        name: (radius * math.sin(i * turn), -radius * math.cos(i * turn)) for i, name in enumerate(names)
    }
    return Placed(points)


def _walk(graph: Graph, root: str) -> list[str]:
    children = _spanning(graph, root)
    walked: list[str] = []
    stack = [root]
    while stack:
        name = stack.pop()
        walked.append(name)
        stack.extend(reversed(children[name]))
    return walked


_LAYOUTS: dict[Layout, Callable[[Graph], Placed]] = {
    Layout.TREE: tree,
    Layout.LAYERED: layered,
    Layout.CIRCULAR: circular,
}
