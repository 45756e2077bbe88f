"""The overlay stays without cycles, and every broker drops the same links."""

from __future__ import annotations

import itertools

import networkx
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.routing.overlay import Overlay
from broker_runtime.wire.records import LinkState

BROKERS = ["A", "B", "C", "D", "E", "F"]
edges = st.sets(
    st.tuples(st.sampled_from(BROKERS), st.sampled_from(BROKERS)).filter(lambda e: e[0] < e[1]), max_size=12
)


def overlays(links: dict[tuple[str, str], int]) -> dict[str, Overlay]:
    nodes = {name: Overlay(name, 1) for name in BROKERS}
    for (a, b), stamp in links.items():
        nodes[a].link_up(b, stamp)
        nodes[b].link_up(a, stamp)
    return nodes


@given(edges, st.data())
def test_with_full_knowledge_what_remains_is_a_spanning_forest(pairs, data):
    links = {pair: data.draw(st.integers(1, 4)) for pair in sorted(pairs)}
    nodes = overlays(links)
    for node in nodes.values():
        for other in nodes.values():
            node.learn(other.own)
    dropped = {tuple(sorted((name, peer))) for name, node in nodes.items() for peer in node.surplus()}
    whole, kept = networkx.Graph(list(pairs)), networkx.Graph(list(pairs - dropped))
    kept.add_nodes_from(whole)
    assert networkx.is_forest(kept) if kept else True
    assert set(map(frozenset, networkx.connected_components(whole))) == set(
        map(frozenset, networkx.connected_components(kept))
    )


@given(edges, st.data())
def test_what_is_surplus_to_partial_knowledge_is_surplus_to_full_knowledge(pairs, data):
    links = {pair: data.draw(st.integers(1, 4)) for pair in sorted(pairs)}
    known = data.draw(st.sets(st.sampled_from(BROKERS)))
    some, full = overlays(links)["A"], overlays(links)["A"]
    for name, node in overlays(links).items():
        full.learn(node.own)
        if name in known:
            some.learn(node.own)
    assert set(some.surplus()) <= set(full.surplus())


@given(edges)
def test_a_way_is_found_exactly_when_there_is_one_besides_the_direct_link(pairs):
    nodes = overlays(dict.fromkeys(sorted(pairs), 1))
    for node in nodes.values():
        nodes["A"].learn(node.own)
    graph = networkx.Graph(list(pairs))
    graph.add_nodes_from(BROKERS)
    if graph.has_edge("A", "B"):
        graph.remove_edge("A", "B")
    way = nodes["A"].way_to("B")
    assert bool(way) == networkx.has_path(graph, "A", "B")
    assert all(graph.has_edge(a, b) for a, b in itertools.pairwise(way))


@given(
    st.lists(
        st.tuples(st.sampled_from(BROKERS), st.dictionaries(st.sampled_from(BROKERS), st.integers(1, 2)))
    )
)
def test_edges_and_surplus_kept_state_by_state_are_those_of_the_states_at_hand(news):
    node = Overlay("A", 1)
    states = {"A": {}}
    for count, (name, links) in enumerate(news, 2):
        links = {peer: stamp for peer, stamp in links.items() if peer != name}
        states[name] = links
        if name == "A":
            for peer in node.own.links:
                node.link_down(peer)
            for peer, stamp in links.items():
                node.link_up(peer, stamp)
        else:
            node.learn(LinkState(name, (1, count), links))
        edges = {
            (stamp, min(a, b), max(a, b))
            for a, links_ in states.items()
            for b, stamp in links_.items()
            if states.get(b, {}).get(a) == stamp
        }
        assert node.edges() == sorted(edges)
        kept, surplus = networkx.Graph(), []
        kept.add_nodes_from(BROKERS)
        for _, a, b in sorted(edges):
            if not networkx.has_path(kept, a, b):
                kept.add_edge(a, b)
            elif "A" in (a, b):
                surplus.append(b if a == "A" else a)
        assert node.surplus() == surplus


def test_a_link_counts_only_when_both_ends_name_it_with_one_stamp():
    node = Overlay("A", 1)
    node.link_up("B", 5)
    node.learn(LinkState("B", (1, 1), {"A": 4}))
    assert node.edges() == []
    node.learn(LinkState("B", (1, 2), {"A": 5}))
    assert node.edges() == [(5, "A", "B")]


def test_old_news_changes_nothing_and_is_not_passed_on():
    node = Overlay("A", 1)
    assert node.learn(LinkState("B", (1, 2), {})) is not None
    assert node.learn(LinkState("B", (1, 2), {})) is None
    assert node.learn(LinkState("B", (1, 1), {"C": 1})) is None


def test_a_broker_that_hears_of_its_own_former_life_speaks_up_with_a_newer_version():
    node = Overlay("A", 5)
    news = node.learn(LinkState("A", (9, 3), {"B": 1}))
    assert news is not None
    assert (news.version, news.links) == ((9, 4), {})
