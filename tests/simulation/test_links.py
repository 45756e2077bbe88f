"""How two ends talk: resume, refuse, keep alive, expire, leave; what was accepted arrives exactly once."""

import pytest

from broker_runtime.client_core import Acknowledged, Connected, Disconnected, Lost, Refused
from broker_runtime.seam import Reachable
from tests.simulation.world import World

ALL = "[class,eq,'stock']"
ANY = "[class,eq,'stock'],[n,isPresent,*]"


def test_a_broken_connection_is_resumed_and_nothing_is_lost_or_repeated() -> None:
    world = World("B1-B2", delay_s=0.05)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    published = []
    for n in range(30):
        published.append(world.publish(publisher, f"[class,'stock'],[n,{n}]"))
        world.run(0.02)
        if n % 7 == 3:
            world.cut("B1", "B2")
        if n % 10 == 5:
            world.cut("s", "B2", silently=n == 5)
    world.calm()
    assert world.got(subscriber) == published
    assert world.logged("link_up {'peer': 'B2', 'resumed': True}")
    world.checked()


@pytest.mark.parametrize("fault", ["frame_lost", "frame_repeated"])
def test_lost_and_repeated_frames_are_repaired(fault: str) -> None:
    world = World("B1-B2", **{fault: 0.3})
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    world.network.chaos = True
    published = []
    for n in range(20):
        published.append(world.publish(publisher, f"[class,'stock'],[n,{n}]"))
        world.run(0.1)
    world.network.heal()
    world.calm()
    assert world.got(subscriber) == published
    world.checked()


def test_an_acknowledgement_never_overtakes_a_refusal() -> None:
    """Neither when the refusal is lost and repaired, nor while the client holds its input."""
    world = World("B1", delay_s=0.05)
    publisher = world.client("p", "B1")
    world.cluster.hold(publisher)
    held = world.publish(publisher, "[class,'stock']")
    world.run(1.0)
    assert publisher.happenings[-1:] == [Connected("B1", resumed=False)]
    world.cluster.release(publisher)
    assert [type(each) for each in publisher.happenings[-1:]] == [Refused]
    lost = world.publish(publisher, "[class,'stock']")
    world.run(0.06)  # the broker has refused it, the refusal is on its way
    world.cut("p", "B1")
    world.calm()
    assert [each.id for each in world.told(publisher, Refused)] == [held, lost]
    assert not world.told(publisher, Acknowledged)
    world.checked()


def test_a_silent_peer_is_given_up_and_dialled_again() -> None:
    world = World("B1-B2")
    world.cut("B1", "B2", silently=True)
    world.run(world.options.dead_after_s - 1.5)
    assert not world.logged("'reason': 'silent'")
    world.calm()
    assert world.logged("B1 ! link_down {'peer': 'B2', 'reason': 'silent', 'ended': False}")
    assert world.logged("B2 ! link_up {'peer': 'B1', 'resumed': True}")
    world.checked()


def test_heartbeats_keep_an_idle_connection() -> None:
    world = World("B1-B2")
    world.client("s", "B1")
    world.run(10 * world.options.dead_after_s)
    assert not world.logged("down")


def test_a_session_expires_and_takes_everything_with_it() -> None:
    world = World("B1-B2", session_expiry_s=5.0)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, ANY)
    subscription = world.subscribe(subscriber, ALL)
    world.calm()
    world.cluster.crash(subscriber, quietly=False)
    world.run(4.0)
    assert subscription in world.subscriptions("B1")
    world.run(3.0)
    assert [world.subscriptions(b) for b in ("B1", "B2")] == [{}, {}]
    world.checked()


def test_a_client_that_left_with_goodbye_is_forgotten_at_once() -> None:
    world = World("B1-B2")
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    world.cluster.leave(subscriber)
    world.run(0.5)
    assert world.subscriptions("B1") == {}
    world.checked()


def test_a_client_comes_back_as_a_new_incarnation_once_the_old_one_is_known_to_be_gone() -> None:
    world = World("B1")
    first = world.client("c", "B1")
    world.subscribe(first, ALL)
    world.calm()
    world.cluster.crash(first, quietly=True)  # the broker still believes in the connection
    second = world.cluster.come("c", "B1")
    world.run(1.0)
    assert world.logged("client c is connected already")
    world.calm()
    assert Connected("B1", resumed=False) in second.happenings
    assert world.subscriptions("B1") == {}
    world.checked()


def test_when_a_broker_lost_its_memory_clients_ask_again_and_hear_what_was_lost() -> None:
    world = World("B1-B2", delay_s=0.05)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, ANY)
    subscription = world.subscribe(subscriber, ALL)
    world.calm()
    lost = world.publish(publisher, "[class,'stock'],[n,1]")
    world.cluster.kill_broker("B1", quietly=False)
    world.run(1.0)
    world.cluster.start_broker("B1")
    world.calm()
    assert Lost(lost) in publisher.happenings
    assert world.subscriptions("B1") == {subscription: "B2"}
    again = world.publish(publisher, "[class,'stock'],[n,2]")
    world.calm()
    assert world.got(subscriber) == [again]
    world.checked()


def test_a_broker_that_stopped_with_goodbye_is_found_again() -> None:
    world = World("B1-B2")
    client = world.client("c", "B2")
    world.cluster.stop_broker("B2")
    world.run(3.0)
    assert Disconnected("stopped") in client.happenings
    world.cluster.start_broker("B2")
    world.calm()
    assert world.told(client, Connected) == [Connected("B2", resumed=False)] * 2
    world.checked()


def test_a_peer_that_can_be_reached_again_is_dialled_at_once() -> None:
    world = World("B1-B2")
    world.cluster.kill_broker("B2", quietly=False)
    world.run(10.0)  # by now tries are seconds apart
    world.cluster.start_broker("B2")
    world.network.hand(world.network.nodes["B1"], Reachable("B2"))
    world.run(0.1)
    assert world.cluster.brokers["B1"].overlay.brokers == ["B1", "B2"]
    world.checked()


def test_a_peer_that_could_not_be_reached_after_all_is_tried_again_soon() -> None:
    world = World("B1-B2")
    world.cluster.kill_broker("B2", quietly=False)
    world.run(10.0)
    world.network.hand(world.network.nodes["B1"], Reachable("B2"))
    world.run(0.05)
    world.cluster.start_broker("B2")
    world.run(0.5)
    assert world.cluster.brokers["B1"].overlay.brokers == ["B1", "B2"]
    world.checked()


def test_that_a_connected_peer_can_be_reached_is_no_news() -> None:
    world = World("B1-B2")
    world.run(1.0)
    for name, peer in (("B1", "B2"), ("B2", "B1"), ("B1", "B9")):
        world.network.hand(world.network.nodes[name], Reachable(peer))
    world.run(1.0)
    assert not world.logged("down")
    world.checked()


def test_two_brokers_that_dial_each_other_at_once_agree_on_one_connection() -> None:
    world = World("B1-B2 B2-B3 B3-B4", dialled_from_both_ends=True, delay_s=0.02)
    world.run(5.0)
    for a, b in (("B1", "B2"), ("B2", "B3"), ("B3", "B4")):
        assert sum(pipe.far.name == b for pipe in world.network.nodes[a].pipes.values()) == 1
    world.checked()


def test_time_limits_come_exactly_when_they_were_asked_for() -> None:
    """A limit of start + span must count as passed at start + span, though the difference may round down."""
    world = World("B1-B2", delay_s=0.001, jitter=0.0)
    before = world.network.events
    world.run(30.0)
    assert world.network.events - before < 500
