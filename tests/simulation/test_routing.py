"""Where messages go: the forwarding of advertisements, subscriptions and publications, hop by hop."""

import pytest

from broker_runtime.client_core import Acknowledged, Refused
from broker_runtime.language.parsing import parse_advertisement, parse_subscription
from broker_runtime.routing.forwarding import Covering
from broker_runtime.routing.router import Router
from broker_runtime.wire.records import Confirm, Subscribe, Unsubscribe
from tests.simulation.world import World

# The network of the papers' figure: B1, B2 and B4 around B3.
FIGURE = "B1-B3 B2-B3 B4-B3"
STOCK = "[class,eq,'stock'],[price,>=,0],[price,<=,100]"


def test_a_subscription_travels_to_the_advertiser_and_no_further() -> None:
    world = World(FIGURE)
    publisher, wanting, other = (world.client(c, b) for c, b in (("p", "B1"), ("s", "B2"), ("t", "B4")))
    advertisement = world.advertise(publisher, STOCK)
    world.calm()
    assert {b: world.advertisements(b) for b in ("B1", "B2", "B3", "B4")} == {
        "B1": {advertisement: "p"},
        "B2": {advertisement: "B3"},
        "B3": {advertisement: "B1"},
        "B4": {advertisement: "B3"},
    }
    matching = world.subscribe(wanting, "[class,eq,'stock'],[price,>,80]")
    strange = world.subscribe(other, "[class,eq,'stock'],[price,>,200]")
    world.calm()
    assert world.subscriptions("B2") == {matching: "s"}
    assert world.subscriptions("B3") == {matching: "B2"}
    assert world.subscriptions("B1") == {matching: "B3"}
    assert world.subscriptions("B4") == {strange: "t"}
    world.checked()


def test_a_publication_goes_where_it_is_wanted_and_nowhere_else() -> None:
    world = World(FIGURE)
    publisher, near, far = (world.client(c, b) for c, b in (("p", "B1"), ("s", "B2"), ("t", "B4")))
    world.advertise(publisher, STOCK)
    world.subscribe(near, "[class,eq,'stock'],[price,>,80]")
    world.subscribe(far, "[class,eq,'stock'],[price,<,20]")
    world.calm()
    high = world.publish(publisher, "[class,'stock'],[price,90]")
    low = world.publish(publisher, "[class,'stock'],[price,10]", b"with a payload")
    world.calm()
    assert (world.got(near), world.got(far)) == ([high], [low])
    world.checked()


def test_a_publication_that_nobody_wants_dies_at_its_first_broker() -> None:
    world = World(FIGURE)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, STOCK)
    world.subscribe(subscriber, "[class,eq,'stock'],[price,>,80]")
    world.calm()
    before = world.cluster.brokers["B3"].intake.publications
    unwanted = world.publish(publisher, "[class,'stock'],[price,50]")
    world.calm()
    assert Acknowledged(unwanted) in publisher.happenings
    assert world.cluster.brokers["B1"].intake.unwanted == 1
    assert world.cluster.brokers["B3"].intake.publications == before
    assert world.got(subscriber) == []


def test_a_late_advertisement_pulls_earlier_subscriptions() -> None:
    world = World(FIGURE)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    subscription = world.subscribe(subscriber, "[class,eq,'stock']")
    world.calm()
    assert world.subscriptions("B3") == {}
    world.advertise(publisher, STOCK)
    world.calm()
    assert world.subscriptions("B1") == {subscription: "B3"}
    publication = world.publish(publisher, "[class,'stock'],[price,1]")
    world.calm()
    assert world.got(subscriber) == [publication]
    world.checked()


def test_withdrawing_an_advertisement_takes_the_subscriptions_back() -> None:
    world = World(FIGURE)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    advertisement = world.advertise(publisher, STOCK)
    subscription = world.subscribe(subscriber, "[class,eq,'stock']")
    world.calm()
    world.cluster.unadvertise(publisher, advertisement)
    world.calm()
    assert [world.subscriptions(b) for b in ("B1", "B3")] == [{}, {}]
    assert world.subscriptions("B2") == {subscription: "s"}
    world.checked()


@pytest.mark.parametrize(
    ("covering", "told"),
    [(Covering.OFF, ["narrow", "wide"]), (Covering.LAZY, ["narrow", "wide"]), (Covering.ACTIVE, ["wide"])],
)
def test_what_a_neighbour_is_told_when_a_wider_subscription_comes(
    covering: Covering, told: list[str]
) -> None:
    world = World("B1-B2", covering=covering)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, STOCK)
    world.calm()
    ids = {
        "narrow": world.subscribe(subscriber, "[class,eq,'stock'],[price,>,80]"),
        "wide": world.subscribe(subscriber, "[class,eq,'stock'],[price,>,50]"),
    }
    world.calm()
    assert world.told_to("B2", "B1") == [ids[name] for name in told]
    assert list(world.subscriptions("B1")) == [ids[name] for name in told]
    world.checked()


@pytest.mark.parametrize("covering", list(Covering))
def test_unsubscribing_uncovers_what_was_covered(covering: Covering) -> None:
    world = World("B1-B2 B2-B3", covering=covering)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3")
    world.advertise(publisher, STOCK)
    wide = world.subscribe(subscriber, "[class,eq,'stock'],[price,>,50]")
    narrow = world.subscribe(subscriber, "[class,eq,'stock'],[price,>,80]")
    world.calm()
    world.cluster.unsubscribe(subscriber, wide)
    world.calm()
    assert world.told_to("B3", "B2") == world.told_to("B2", "B1") == [narrow]
    publication = world.publish(publisher, "[class,'stock'],[price,90]")
    world.publish(publisher, "[class,'stock'],[price,60]")
    world.calm()
    assert world.got(subscriber) == [publication]
    world.checked()


def test_an_unsubscription_is_confirmed_after_every_broker_has_carried_it_out() -> None:
    world = World("B1-B2 B2-B3", delay_s=0.1, jitter=0.0)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3")
    world.advertise(publisher, STOCK)
    subscription = world.subscribe(subscriber, "[class,eq,'stock']")
    world.calm()
    world.cluster.unsubscribe(subscriber, subscription)
    world.run(0.25)  # B3 and B2 have heard of it
    assert not world.confirmed(subscriber, subscription)
    assert subscription in world.subscriptions("B1")
    world.calm()
    assert world.confirmed(subscriber, subscription)
    assert all(subscription not in world.subscriptions(b) for b in ("B1", "B2", "B3"))


def test_a_subscription_withdrawn_for_covering_is_not_confirmed_before_that_has_arrived() -> None:
    world = World("B1-B2", delay_s=0.1, jitter=0.0)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, STOCK)
    narrow = world.subscribe(subscriber, "[class,eq,'stock'],[price,>,80]")
    world.calm()
    world.subscribe(subscriber, "[class,eq,'stock'],[price,>,50]")  # B2 withdraws the narrow one from B1
    world.cluster.unsubscribe(subscriber, narrow)
    world.run(0.15)
    assert narrow in world.subscriptions("B1")
    assert not world.confirmed(subscriber, narrow)
    world.calm()
    assert world.confirmed(subscriber, narrow)
    world.checked()


def test_two_neighbours_that_withdraw_one_subscription_from_each_other_do_not_wait_for_each_other() -> None:
    """While a cycle is being cut, a subscription may have come to both ends of a link from the other."""
    router = Router(Covering.OFF)
    for name in ("B", "C"):
        router.neighbour_up(name)
    wanted = parse_subscription("[class,eq,'stock']")
    router.advertise("a", parse_advertisement(STOCK), "B")
    assert router.subscribe("s", wanted, "C") == [("B", Subscribe("s", wanted))]
    router.subscribe("s", wanted, "B")
    assert ("B", Unsubscribe("s")) in router.unadvertise("a", "B")
    assert router.unsubscribe("s", "B") == [("B", Confirm("s"))]


def test_every_unsubscription_of_one_id_has_its_own_confirmation() -> None:
    """A covering subscription that comes and goes withdraws and tells the covered one again and again."""
    world = World("B1-B2 B2-B3 B3-B4", delay_s=0.05, window_records=1)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B4")
    world.advertise(publisher, STOCK)
    narrow = world.subscribe(subscriber, "[class,eq,'stock'],[price,>,80]")
    world.calm()
    for _ in range(3):
        wide = world.subscribe(subscriber, "[class,eq,'stock']")
        world.run(0.02)
        world.cluster.unsubscribe(subscriber, wide)
        world.run(0.02)
    world.cluster.unsubscribe(subscriber, narrow)
    world.checked()
    assert world.confirmed(subscriber, narrow)


def test_unadvertised_publications_are_refused_and_go_nowhere() -> None:
    world = World("B1-B2")
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B2")
    world.advertise(publisher, STOCK)
    world.subscribe(subscriber, "[class,isPresent,*]")
    world.calm()
    refused = [
        world.publish(publisher, "[class,'stock'],[price,101]"),  # beyond the promised range
        world.publish(publisher, "[class,'stock'],[price,5],[volume,1]"),  # an attribute not promised
        world.publish(publisher, "[class,'alarm'],[price,5]"),
        world.publish(
            subscriber, "[class,'stock'],[price,5]"
        ),  # another client's advertisement does not help
    ]
    allowed = world.publish(publisher, "[class,'stock']")  # promised attributes may be left out
    world.calm()
    answers = [*world.told(publisher, Refused), *world.told(subscriber, Refused)]
    assert [answer.id for answer in answers] == refused
    assert {answer.code for answer in answers} == {"NOT_ADVERTISED"}
    assert "advertise its attributes and values first" in answers[0].message
    assert world.got(subscriber) == [allowed]
    world.checked()


def test_identical_subscriptions_of_two_clients_are_served_when_one_leaves() -> None:
    world = World("B1-B2")
    publisher, first, second = world.client("p", "B1"), world.client("s", "B2"), world.client("t", "B2")
    world.advertise(publisher, STOCK)
    for each in (first, second):
        world.subscribe(each, "[class,eq,'stock']")
    world.calm()
    world.cluster.leave(first)
    world.calm()
    publication = world.publish(publisher, "[class,'stock'],[price,1]")
    world.calm()
    assert world.got(second) == [publication]
    world.checked()


def test_what_a_publisher_said_before_it_left_still_arrives() -> None:
    world = World("B1-B2 B2-B3", delay_s=0.05)
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3")
    world.advertise(publisher, STOCK)
    world.subscribe(subscriber, "[class,eq,'stock']")
    world.calm()
    last = world.publish(publisher, "[class,'stock'],[price,7]")
    world.cluster.leave(publisher)
    world.calm()
    assert world.got(subscriber) == [last]
    assert world.advertisements("B3") == {}
