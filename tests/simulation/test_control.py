"""Monitor and control are publish/subscribe too: whoever may publish can look, pause, resume and inject."""

import json

import pytest

from broker_runtime.client_core import Notification
from broker_runtime.sim.cluster import Player
from tests.simulation.world import World

ALL = "[class,eq,'stock']"
ANY = "[class,eq,'stock'],[n,isPresent,*]"
CONTROL = (
    "[class,eq,'BROKER_CONTROL'],[broker,isPresent,*],[command,isPresent,*],[request,isPresent,*],"
    "[kind,isPresent,*],[text,isPresent,*]"
)


def operator(world: World, broker: str) -> Player:
    """A client that may order, and hears what brokers say."""
    player = world.client("operator", broker)
    world.advertise(player, CONTROL)
    for kind in ("BROKER_INFO", "BROKER_TRACE"):
        world.subscribe(player, f"[class,eq,'{kind}']")
    world.calm()
    return player


def order(world: World, player: Player, broker: str, command: str, more: str = "") -> list[Notification]:
    """Give an order and return the replies to it."""
    request = f"r{len(player.happenings)}"
    text = f"[class,'BROKER_CONTROL'],[broker,'{broker}'],[command,'{command}'],[request,'{request}']{more}"
    world.publish(player, text)
    world.run(1.0)
    return [each for each in world.told(player, Notification) if each.content.get("request") == request]


def test_every_broker_answers_when_all_are_asked() -> None:
    world = World("B1-B2 B2-B3", monitors=True)
    replies = order(world, operator(world, "B1"), "*", "info")
    assert {each.content["broker"]: each.content["neighbour_count"] for each in replies} == {
        "B1": 1,
        "B2": 2,
        "B3": 1,
    }
    assert all(each.content["state"] == "running" for each in replies)


def test_status_comes_by_itself() -> None:
    world = World("B1-B2", monitors=True)
    player = operator(world, "B1")
    world.run(2 * world.options.status_every_s)
    assert {each.content["broker"] for each in world.told(player, Notification)} == {"B1", "B2"}


def test_a_paused_broker_holds_data_until_it_is_resumed_and_loses_nothing() -> None:
    world = World("B1-B2 B2-B3", monitors=True)
    boss = operator(world, "B3")
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3")
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    (paused,) = order(world, boss, "B2", "pause")
    assert (paused.content["broker"], paused.content["state"]) == ("B2", "paused")
    published = [world.publish(publisher, f"[class,'stock'],[n,{n}]") for n in range(10)]
    world.run(5.0)
    assert world.got(subscriber) == []
    (resumed,) = order(world, boss, "B2", "resume")
    assert resumed.content["state"] == "running"
    world.calm()
    assert world.got(subscriber) == published
    world.checked()


def test_tables_show_what_a_broker_knows() -> None:
    world = World("B1-B2", monitors=True)
    boss, subscriber = operator(world, "B1"), world.client("s", "B2")
    subscription = world.subscribe(subscriber, "[class,eq,'stock'],[n,>,5]")
    world.calm()
    (reply,) = order(world, boss, "B2", "tables")
    tables = json.loads(reply.payload)
    assert {"id": subscription, "hop": "s", "text": "[class,eq,'stock'],[n,>,5]"} in tables["subscriptions"]
    assert {link["peer"]: link["role"] for link in tables["links"]} == {"B1": "broker", "s": "client"}
    assert [edge[1:] for edge in tables["overlay"]] == [["B1", "B2"]]


def test_a_traced_publication_is_reported_by_every_broker_on_its_way() -> None:
    world = World("B1-B2 B2-B3", monitors=True)
    boss = operator(world, "B2")
    publisher, subscriber = world.client("p", "B1"), world.client("s", "B3")
    world.advertise(publisher, ANY)
    world.subscribe(subscriber, ALL)
    world.calm()
    traced = publisher.core.publish({"class": "stock", "n": 1}, world.network.now, trace=True)
    world.network.carry_out(publisher.node, publisher.core.flush())
    world.run(1.0)
    reports = [
        each.content for each in world.told(boss, Notification) if each.content["class"] == "BROKER_TRACE"
    ]
    ways = {(each["broker"], each["from"], each["to"]) for each in reports if each["id"] == traced}
    assert ways == {("B1", "p", "B2"), ("B2", "B1", "B3"), ("B3", "B2", "s")}


def test_messages_can_be_injected_at_any_broker() -> None:
    world = World("B1-B2", monitors=True)
    boss, subscriber = operator(world, "B1"), world.client("s", "B1")
    world.subscribe(subscriber, ALL)
    world.calm()
    quoted = ANY.replace("'", "\\'")
    (advertised,) = order(world, boss, "B2", "inject", f",[kind,'advertise'],[text,'{quoted}']")
    assert "error" not in advertised.content
    world.run(1.0)
    order(world, boss, "B2", "inject", ",[kind,'publish'],[text,'[class,\\'stock\\'],[n,3]']")
    contents = [each.content for each in world.told(subscriber, Notification)]
    assert contents == [{"class": "stock", "n": 3}]


@pytest.mark.parametrize(
    ("command", "more", "complaint"),
    [
        ("dance", "", "unknown command 'dance'"),
        ("inject", ",[kind,'whisper'],[text,'']", "kind is publish, advertise"),
        ("inject", ",[kind,'subscribe'],[text,'[class']", "line 1"),
        ("inject", ",[kind,'unadvertise'],[text,'nothing:1:1']", ""),
    ],
)
def test_a_wrong_order_is_answered_with_what_is_wrong(command: str, more: str, complaint: str) -> None:
    world = World("B1", monitors=True)
    (reply,) = order(world, operator(world, "B1"), "B1", command, more)
    assert complaint in str(reply.content.get("error", ""))


def test_shutdown_by_publication_answers_first() -> None:
    world = World("B1-B2", monitors=True)
    (reply,) = order(world, operator(world, "B1"), "B2", "shutdown")
    assert reply.content["reply"] == "shutdown"
    assert world.logged("B2 ! stop {'reason': 'shut down by BROKER_CONTROL'}")
