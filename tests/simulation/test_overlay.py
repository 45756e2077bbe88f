"""The overlay stays without cycles, whoever asks for which link and when."""

from itertools import combinations, pairwise

import pytest

from tests.simulation.world import World

ALL = "[class,eq,'stock']"
ANY = "[class,eq,'stock'],[n,isPresent,*]"


def test_a_link_that_would_close_a_cycle_is_refused_and_the_way_is_named() -> None:
    world = World("B1-B2 B2-B3")
    world.cluster.history.extra_links = True
    world.cluster.command("B1", "connect", "B3")
    world.run(3.0)
    assert world.logged(
        "a link B1–B3 would close a cycle with B1 – B2 – B3; this overlay has to stay without cycles"
    )
    world.checked()
    assert world.cluster.history.quiet[-1]["B1"].edges == (("B1", "B2"), ("B2", "B3"))


def test_two_links_that_close_a_cycle_at_once_lose_one_of_them() -> None:
    """B1–B2 and B3–B4 stand apart; then both links between them come up before either is known."""
    world = World("B2-B1 B4-B3 B3-B2", delay_s=0.05)
    world.cluster.command("B3", "disconnect", "B2")
    world.run(1.0)
    world.cluster.history.extra_links = True
    for dialling, address in (("B3", "B2"), ("B4", "B1")):
        world.cluster.command(dialling, "connect", address)
    world.calm()
    states = world.cluster.history.quiet[-1]
    assert len({state.edges for state in states.values()}) == 1
    assert len(states["B1"].edges) == 3


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_all_links_at_once_end_as_a_tree_that_delivers(shape: str) -> None:
    names = ["B1", "B2", "B3", "B4", "B5"]
    links = " ".join(f"{b}-{a if shape == 'chain' else 'B1'}" for a, b in pairwise(names))
    world = World(links)
    world.cluster.history.extra_links = True
    for a, b in world.cluster.edges:  # take the tree apart, and ask for every link there is
        world.cluster.command(a, "disconnect", b)
    for a, b in combinations(names, 2):
        world.cluster.command(b, "connect", a)
    world.calm()
    publisher, subscribers = world.client("p", "B1"), [world.client(f"s{b}", b) for b in names]
    world.advertise(publisher, ANY)
    for each in subscribers:
        world.subscribe(each, ALL)
    world.calm()
    published = [world.publish(publisher, f"[class,'stock'],[n,{n}]") for n in range(5)]
    world.calm()
    assert all(world.got(each) == published for each in subscribers)


def test_a_link_that_is_not_wanted_any_more_does_not_come_up_later() -> None:
    """The command to disconnect finds a dial on its way, or a handshake not finished."""
    for moment in (0.0, 0.05, 0.12, 0.17, 0.22):
        world = World("B2-B1", delay_s=0.05)
        world.cluster.command("B2", "disconnect", "B1")
        world.run(1.0)
        world.cluster.command("B2", "connect", "B1")
        world.run(moment)
        world.cluster.command("B2", "disconnect", "B1")
        world.run(5.0)
        assert world.cluster.brokers["B1"].overlay.brokers == ["B1"], moment


def test_after_a_cycle_was_cut_no_table_remembers_the_lost_way() -> None:
    """Records behind the one that ended the session, in the same frame, came from no neighbour any more."""
    world = World("B2-B1 B3-B2", delay_s=0.02)
    world.cluster.history.extra_links = True
    publisher = world.client("p", "B1")
    world.advertise(publisher, ANY)
    world.calm()
    world.cluster.kill_broker("B2", quietly=False)
    world.cluster.command("B3", "connect", "B1")
    world.run(3.0)
    world.cluster.start_broker("B2")
    world.calm()
    world.cluster.command("B3", "disconnect", "B1")
    world.checked()
    for id_ in list(publisher.advertisements):
        world.cluster.unadvertise(publisher, id_)
    world.calm()
    assert all(world.advertisements(b) == {} for b in ("B1", "B2", "B3"))
