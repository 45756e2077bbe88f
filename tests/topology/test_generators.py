"""Generated topologies have the shape that was asked for, are valid, and are the same for the same seed."""

from collections import Counter
from itertools import product

import pytest

from panda.topology.generators import (
    CYCLIC_NOTE,
    Kind,
    Wish,
    default_hosts,
    generate,
    read_client_templates,
)
from panda.topology.problems import TopologyRefused
from panda.topology.reading import read_topology
from panda.topology.writing import write_text, write_yaml

ACYCLIC = (Kind.CHAIN, Kind.STAR, Kind.TREE, Kind.RANDOM)


@pytest.mark.parametrize(("kind", "brokers"), list(product(ACYCLIC, (1, 2, 17))))
def test_overlays_without_cycles_validate_clean_in_both_forms(kind: Kind, brokers: int) -> None:
    wish = Wish(
        kind=kind, brokers=brokers, hosts=default_hosts(3), publishers=5, subscribers=7, seed=11, fan_out=3
    )
    topology, heading = generate(wish)
    assert len(topology.links) == brokers - 1
    assert CYCLIC_NOTE not in heading
    for path, text in (("g.txt", write_text(topology, heading)), ("g.yaml", write_yaml(topology, heading))):
        reading = read_topology(text, path)
        assert reading.problems == ()
        assert reading.accepted().steps == topology.steps


@pytest.mark.parametrize(
    ("wish", "links"),
    [
        (Wish(kind=Kind.RING, brokers=5), 5),
        (Wish(kind=Kind.MESH, brokers=5), 10),
        (Wish(kind=Kind.RANDOM, brokers=5, extra_links=2), 6),
    ],
)
def test_overlays_with_cycles_say_so_and_are_refused(wish: Wish, links: int) -> None:
    topology, heading = generate(wish)
    assert len(topology.links) == links
    assert f"# {CYCLIC_NOTE}" in write_text(topology, heading)
    errors = read_topology(write_text(topology, heading), "g.txt").errors
    assert [error.message.partition(":")[0] for error in errors] == ["the overlay has a cycle"]


def test_shapes() -> None:
    def degrees(**wish: object) -> list[int]:
        topology, _ = generate(Wish(**wish))  # type: ignore[arg-type]
        ends = Counter(end for link in topology.links for end in (link.a, link.b))
        return sorted(ends.values(), reverse=True)

    assert degrees(kind=Kind.CHAIN, brokers=5) == [2, 2, 2, 1, 1]
    assert degrees(kind=Kind.STAR, brokers=5) == [4, 1, 1, 1, 1]
    assert degrees(kind=Kind.TREE, brokers=13, fan_out=3) == [4, 4, 4, 3, *[1] * 9]
    assert degrees(kind=Kind.RING, brokers=5) == [2] * 5
    assert degrees(kind=Kind.MESH, brokers=5) == [4] * 5


def test_the_seed_decides_and_nothing_else() -> None:
    def text(seed: int) -> str:
        return write_text(
            generate(Wish(kind=Kind.RANDOM, brokers=20, publishers=9, subscribers=9, seed=seed))[0]
        )

    assert text(4) == text(4)
    assert text(4) != text(5)


def test_weights_decide_how_often_a_template_is_taken() -> None:
    often, seldom = '{weight: 9, command: "echo often {id}"}', "{weight: 1, command: \"echo 'sel dom'\"}"
    templates = read_client_templates(f"publishers: [{often}, {seldom}]", "templates.yaml")
    topology, _ = generate(Wish(kind=Kind.STAR, brokers=2, publishers=500, templates=templates))
    counts = Counter(process.command[1] for process in topology.processes if process.kind == "command")
    assert set(counts) == {"often", "sel dom"}
    assert 400 < counts["often"] < 490


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publisher: []", "unknown key publisher"),
        ("publishers: []", "there is no template here"),
        ("publishers: [{weight: 0, command: x}]", "0: a weight is a number more than 0, and at most 1e+06"),
        (
            "publishers: [{weight: nan, command: x}]",
            "nan: a weight is a number more than 0, and at most 1e+06",
        ),
        ("publishers: [{weight: 1}]", "a template has a command and perhaps a weight"),
        ('publishers: [{command: "\'x"}]', "the quote ' is never closed"),
        ("5", "templates are a mapping"),
    ],
)
def test_templates_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(TopologyRefused) as refused:
        read_client_templates(text, "templates.yaml")
    assert [problem.message for problem in refused.value.problems] == [message]


@pytest.mark.parametrize(
    "wish",
    [
        Wish(kind=Kind.CHAIN, brokers=0),
        Wish(kind=Kind.RING, brokers=2),
        Wish(kind=Kind.CHAIN, brokers=3, extra_links=1),
        Wish(kind=Kind.RANDOM, brokers=3, extra_links=2),
        Wish(kind=Kind.TREE, brokers=3, fan_out=0),
        Wish(kind=Kind.MESH, brokers=9000),
        Wish(kind=Kind.CHAIN, brokers=3, hosts=()),
        Wish(kind=Kind.CHAIN, brokers=3, publishers=-1),
    ],
)
def test_what_cannot_be_is_refused(wish: Wish) -> None:
    with pytest.raises(ValueError, match=r"not from|only|at least|at most|so many"):
        generate(wish)
