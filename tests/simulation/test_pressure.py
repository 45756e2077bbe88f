"""What happens when somebody does not keep up: every queue has a bound, and says what it does there."""

from broker_runtime.client_core import Acknowledged, Connected, Noticed
from broker_runtime.link.session import Policy
from broker_runtime.sim.cluster import Player
from tests.simulation.world import World

ALL = "[class,eq,'stock']"
ANY = "[class,eq,'stock'],[n,isPresent,*]"
TINY = {"window_records": 3, "queue_length_max": 4}


def pair(world: World, policy: Policy) -> tuple[Player, Player]:
    """A publisher, and a slow subscriber two brokers away."""
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3", policy)
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    world.cluster.hold(subscriber)
    return publisher, subscriber


def flood(world: World, publisher: Player, count: int) -> list[str]:
    """Publish as fast as the queue towards the broker lets us, up to a count."""
    published: list[str] = []
    for _ in range(10 * count):
        while not publisher.core.full and len(published) < count:
            published.append(world.publish(publisher, f"[class,'stock'],[n,{len(published)}]"))
        world.run(0.05)
    return published


def test_back_pressure_reaches_the_publisher() -> None:
    world = World("B1-B2 B2-B3", **TINY)
    publisher, subscriber = pair(world, Policy.BLOCK)
    published = flood(world, publisher, 100)
    assert publisher.core.full
    assert len(published) < 50
    waiting = len(published) - len(world.told(publisher, Acknowledged)) + 1  # one was the advertisement
    assert waiting >= TINY["queue_length_max"]
    world.cluster.release(subscriber)
    world.calm()
    assert world.got(subscriber) == published
    world.checked()


def test_one_slow_subscriber_does_not_reorder_what_another_gets() -> None:
    world = World("B1-B2 B2-B3", **TINY)
    quick = world.client("q", "B1")
    world.subscribe(quick, ALL)
    publisher, subscriber = pair(world, Policy.BLOCK)
    published = flood(world, publisher, 40)
    world.cluster.release(subscriber)
    world.calm()
    assert world.got(quick) == world.got(subscriber) == published
    world.checked()


def test_drop_oldest_keeps_the_newest_and_says_how_many_went() -> None:
    world = World("B1-B2 B2-B3", **TINY)
    publisher, subscriber = pair(world, Policy.DROP_OLDEST)
    published = flood(world, publisher, 40)
    assert len(published) == 40, "the publisher is not held up"
    world.cluster.release(subscriber)
    world.calm()
    got = world.got(subscriber)
    dropped = sum(each.count for each in world.told(subscriber, Noticed) if each.code == "DROPPED")
    assert len(got) + dropped == 40
    assert got[-4:] == published[-4:]
    assert got == [id_ for id_ in published if id_ in got]
    world.checked()


def test_a_notice_of_drops_does_not_drop_the_next_publication() -> None:
    """With room for one publication, the notice must not count as one."""
    world = World("B1-B2 B2-B3", window_records=1, queue_length_max=1)
    publisher, subscriber = pair(world, Policy.DROP_OLDEST)
    flood(world, publisher, 6)
    world.cluster.release(subscriber)
    after = [world.publish(publisher, "[class,'stock'],[n,99]")]
    world.calm()
    assert world.got(subscriber)[-1:] == after
    world.checked()


def test_disconnect_ends_the_slow_subscribers_session() -> None:
    world = World("B1-B2 B2-B3", **TINY)
    publisher, subscriber = pair(world, Policy.DISCONNECT)
    published = flood(world, publisher, 40)
    assert len(published) == 40
    world.cluster.release(subscriber)
    world.calm()
    assert any(each.code == "SLOW_SUBSCRIBER" for each in world.told(subscriber, Noticed))
    assert world.told(subscriber, Connected)[-1] == Connected("B3", resumed=False)
    last = world.publish(publisher, "[class,'stock'],[n,99]")
    world.calm()
    assert world.got(subscriber)[-1] == last
    world.checked()


def test_a_blocked_source_goes_on_when_the_slow_subscriber_dies() -> None:
    world = World("B1-B2 B2-B3", session_expiry_s=5.0, **TINY)
    publisher, subscriber = pair(world, Policy.BLOCK)
    flood(world, publisher, 40)
    assert publisher.core.full
    world.cluster.crash(subscriber, quietly=True)
    world.calm()
    assert not publisher.core.full
    world.checked()
