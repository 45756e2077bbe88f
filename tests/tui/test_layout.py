"""Layouts are the same for equal graphs, and no two nodes come nearer than a slot."""

import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda_tui.overlay.graph import Graph, graph_of, natural
from panda_tui.overlay.layout import Bend, Layout, centre_of, placed

EVERY = list(Layout)


def random_tree(brokers: int, seed: int, clients: int = 0) -> Graph:
    chance = random.Random(seed)
    links = [(f"B{i}", f"B{chance.randrange(max(0, i - 12), i)}") for i in range(1, brokers)]
    guests = {f"S{i}": f"B{chance.randrange(brokers)}" for i in range(clients)}
    return graph_of([f"B{i}" for i in range(brokers)], links, guests)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = [f"B{i}" for i in range(draw(st.integers(1, 25)))]
    ends = st.sampled_from(names)
    links = draw(st.lists(st.tuples(ends, ends), max_size=40))
    guests = draw(st.dictionaries(st.sampled_from([f"C{i}" for i in range(9)]), ends, max_size=9))
    return graph_of(names, links, guests)


@given(graphs(), st.sampled_from(EVERY))
def test_everybody_has_a_place_of_their_own(graph: Graph, layout: Layout) -> None:
    points = placed(graph, layout).points
    assert set(points) == set(graph.nodes)
    for (x, y), (other_x, other_y) in itertools.combinations(points.values(), 2):
        assert max(abs(x - other_x), abs(y - other_y)) >= 1 - 1e-9


@given(graphs(), st.sampled_from(EVERY), st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_told_does_not_matter(
    graph: Graph, layout: Layout, chance: random.Random
) -> None:
    links = [edge if chance.random() < 0.5 else edge[::-1] for edge in graph.edges]
    brokers = list(graph.brokers)
    chance.shuffle(links)
    chance.shuffle(brokers)
    again = Graph(
        tuple(sorted(brokers, key=natural)),
        graph.clients,
        graph_of(brokers, links).only(graph.nodes).edges,
    )
    assert graph_of((), again.edges).edges == graph.edges
    assert placed(again, layout) == placed(graph, layout) if again == graph else graph.clients


@pytest.mark.parametrize("layout", EVERY)
def test_a_hundred_brokers_with_as_many_clients_take_a_moment(layout: Layout) -> None:
    graph = random_tree(100, seed=4, clients=100)
    before = time.process_time()
    placed(graph, layout)
    assert time.process_time() - before < 0.25  # a few milliseconds on a quiet machine


def test_a_parent_stands_above_the_middle_of_its_children() -> None:
    graph = graph_of((), [("R", "A"), ("R", "B"), ("R", "C"), ("A", "A1"), ("C", "C1")])
    standing = placed(graph, Layout.TREE)
    assert standing.bend is Bend.DOWN
    assert standing.points["R"] == (1.0, 0.0)
    assert [standing.points[name] for name in ("A", "B", "C")] == [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]
    assert standing.points["C1"] == (2.0, 2.0)


def test_a_chain_lies_down_because_screens_are_wide() -> None:
    graph = graph_of((), [(f"B{i}", f"B{i + 1}") for i in range(9)])
    standing = placed(graph, Layout.TREE)
    assert standing.bend is Bend.ACROSS
    assert standing.box == (0.0, 0.0, 5.0, 1.0)  # a V from its middle


def test_a_deep_tree_is_no_trouble() -> None:
    graph = graph_of((), [(f"B{i}", f"B{i + 1}") for i in range(3000)])
    assert len(placed(graph, Layout.TREE).points) == 3001


@pytest.mark.parametrize("length", [1, 2, 3, 10, 11])
def test_the_centre_of_a_chain_is_its_middle(length: int) -> None:
    graph = graph_of(["B0"], [(f"B{i}", f"B{i + 1}") for i in range(length - 1)])
    middle = int(centre_of(graph, graph.nodes)[1:])
    assert abs(2 * middle - (length - 1)) <= 1


def test_parts_that_nothing_connects_stand_side_by_side() -> None:
    graph = graph_of(["Z"], [("A", "B"), ("B", "C"), ("X", "Y")])
    assert [len(part) for part in graph.components()] == [3, 2, 1]
    for layout in (Layout.TREE, Layout.LAYERED):
        points = placed(graph, layout).points
        assert max(points[name][0] for name in "ABC") < min(points[name][0] for name in "XY")


@given(st.integers(2, 40), st.integers(0, 1000))
def test_links_of_a_tree_do_not_cross_on_a_circle(brokers: int, seed: int) -> None:
    graph = random_tree(brokers, seed)
    order = list(placed(graph, Layout.CIRCULAR).points)
    spots = {name: i for i, name in enumerate(order)}
    for one, other in itertools.combinations(graph.edges, 2):
        a, b = sorted(spots[name] for name in one)
        inside = [a < spots[name] < b for name in other if spots[name] not in (a, b)]
        assert len(set(inside)) < 2 or len(inside) < 2


@given(st.integers(2, 60), st.integers(0, 1000))
def test_links_of_a_tree_do_not_cross_between_layers(brokers: int, seed: int) -> None:
    graph = random_tree(brokers, seed)
    points = placed(graph, Layout.LAYERED).points
    lying = len({x for x, _ in points.values()}) <= len({y for _, y in points.values()})
    for one, other in itertools.combinations(graph.edges, 2):
        ends = [
            sorted((points[name] for name in edge), key=lambda p: p[0 if lying else 1])
            for edge in (one, other)
        ]
        levels = [[p[0 if lying else 1] for p in pair] for pair in ends]
        spots = [[p[1 if lying else 0] for p in pair] for pair in ends]
        if levels[0] == levels[1]:
            assert (spots[0][0] - spots[1][0]) * (spots[0][1] - spots[1][1]) >= 0


def test_no_graph_is_no_trouble() -> None:
    for layout in EVERY:
        assert placed(Graph(), layout).box == (0.0, 0.0, 0.0, 0.0)


# Graphs


def test_names_with_numbers_are_sorted_as_people_do() -> None:
    assert graph_of(["B10", "B9", "A", "b1"], ()).brokers == ("A", "B9", "B10", "b1")


def test_a_neighbourhood_is_all_within_so_many_hops() -> None:
    graph = graph_of((), [("A", "B"), ("B", "C"), ("C", "D")], {"S": "D"})
    assert graph.neighbourhood("B", 1).nodes == ("A", "B", "C")
    assert graph.neighbourhood("B", 2).edges == (("A", "B"), ("B", "C"), ("C", "D"))
    assert graph.neighbourhood("B", 3) == graph
    assert graph.neighbourhood("nobody", 1) is graph


@given(graphs(), st.integers(0, 6))
def test_neighbourhoods_grow_with_their_hops(graph: Graph, hops: int) -> None:
    centre = graph.nodes[0]
    near, nearer = graph.neighbourhood(centre, hops + 1), graph.neighbourhood(centre, hops)
    assert set(nearer.nodes) <= set(near.nodes)
    assert set(nearer.edges) <= set(near.edges)


def test_search_shows_what_begins_with_the_text_first() -> None:
    graph = graph_of(["Rob", "Bob", "Bobby", "Alice"], ())
    assert graph.search("BOB") == ("Bob", "Bobby")
    assert graph.search("ob") == ("Bob", "Bobby", "Rob")
    assert graph.search("b") == ("Bob", "Bobby", "Rob")
    assert graph.search("") == ()


def test_a_client_that_is_called_like_a_broker_is_not_drawn_twice() -> None:
    graph = graph_of(["A", "B"], [("A", "B")], {"A": "B", "S": "A"})
    assert graph.nodes == ("A", "B", "S")
    assert graph.edges == (("A", "B"), ("A", "S"))
