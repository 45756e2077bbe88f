"""A program's messages are answered: taken, refused for a reason, or delivered in order."""

import asyncio
from pathlib import Path

import pytest

from broker_runtime.client import (
    ClientClosed,
    ClientOptions,
    LinkSettings,
    NotAdvertised,
    NotAllPublished,
    Notification,
    QueueFull,
    connect,
)
from broker_runtime.language import LanguageError
from tests.support.local_brokers import LocalBrokers

STOCK = "[class,eq,'STOCK'],[price,isPresent,@FLOAT]"
EVERY_STOCK = "[class,eq,'STOCK']"


def stock(price: float) -> dict[str, object]:
    return {"class": "STOCK", "price": price}


async def test_a_publication_reaches_a_subscriber_three_brokers_away(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    await brokers.start("B", "A")
    await brokers.start("C", "B")
    async with connect(brokers.addresses["A"], "P") as p, connect(brokers.addresses["C"], "S") as s:
        await p.control("C", "info")
        sub = await s.subscribe("[class,eq,'STOCK'],[price,>,10]")
        await p.advertise(STOCK)
        await p.settle()
        id_ = await p.publish("[class,'STOCK'],[price,20]", payload=b"chart")
        notification = await sub.get(5)
        assert (notification.id, notification.content, notification.payload, notification.hops) == (
            id_,
            stock(20),
            b"chart",
            3,
        )
        assert notification.subscriptions == (sub.id,)


async def test_what_was_not_advertised_is_refused_by_name(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p:
        with pytest.raises(NotAdvertised, match="advertise its attributes") as refused:
            await p.publish(stock(1))
        assert refused.value.code == "NOT_ADVERTISED"
        assert refused.value.id.startswith("P:")


async def test_an_advertisement_withdrawn_allows_nothing_more(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p:
        promise = await p.advertise(STOCK)
        await p.publish(stock(1))
        await promise.unadvertise()
        with pytest.raises(NotAdvertised):
            await p.publish(stock(1))


async def test_text_that_is_no_message_is_refused_before_it_is_sent(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p:
        for call in (p.advertise, p.subscribe, p.publish):
            with pytest.raises(LanguageError):
                await call("[class,")
        with pytest.raises(ValueError, match="class is missing"):
            await p.publish({"price": 1})
        assert p.unacknowledged == 0


async def test_publications_in_a_pipeline_arrive_in_order(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p, connect(brokers.addresses["A"], "S") as s:
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        assert await p.publish_all(stock(n) for n in range(5000)) == 5000
        assert p.unacknowledged == 0
        assert [(await sub.get(5)).content["price"] for _ in range(5000)] == list(range(5000))


async def test_flush_tells_what_was_refused(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p:
        await p.advertise(STOCK)
        p.publish_soon(stock(1))
        p.publish_soon({"class": "OTHER"})
        p.publish_soon({"class": "OTHER"})
        with pytest.raises(NotAllPublished) as failed:
            await p.flush()
        assert failed.value.count == 2
        assert all(isinstance(error, NotAdvertised) for error in failed.value.errors)
        await p.flush()


async def test_a_full_queue_refuses_and_drain_makes_room(brokers: LocalBrokers) -> None:
    options = ClientOptions(link=LinkSettings(queue_length_max=10))
    async with connect(await brokers.start("A"), "P", options=options) as p:
        await p.advertise(STOCK)
        for n in range(10):
            p.publish_soon(stock(n))
        with pytest.raises(QueueFull):
            p.publish_soon(stock(10))
        await p.drain()
        p.publish_soon(stock(10))
        await p.flush()


async def test_unsubscribe_completes_everywhere_and_ends_the_iteration(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    await brokers.start("B", "A")
    async with connect(brokers.addresses["A"], "P") as p, connect(brokers.addresses["B"], "S") as s:
        await s.control("A", "info")
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        await p.settle()
        await p.publish(stock(1))
        assert (await sub.get(5)).content["price"] == 1
        await sub.unsubscribe()
        tables = (await s.control("A", "tables")).tables()
        assert not any(entry["id"] == sub.id for entry in tables["subscriptions"])
        assert [notification async for notification in sub] == []
        with pytest.raises(EOFError):
            await sub.get(1)


async def test_handlers_may_be_functions_or_coroutines_and_may_fail(brokers: LocalBrokers) -> None:
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, about: complaints.append(about))
    seen: list[object] = []
    done = asyncio.Event()

    def plain(notification: Notification) -> None:
        seen.append(("plain", notification.content["price"]))
        if notification.content["price"] == 1:
            raise RuntimeError("mine")

    async def slow(notification: Notification) -> None:
        await asyncio.sleep(0)
        seen.append(("slow", notification.content["price"]))
        if notification.content["price"] == 2:
            done.set()

    async with connect(await brokers.start("A"), "C") as c:
        await c.subscribe(EVERY_STOCK, plain)
        await c.subscribe(EVERY_STOCK, slow)
        await c.advertise(STOCK)
        await c.publish(stock(1))
        await c.publish(stock(2))
        await asyncio.wait_for(done.wait(), 5)
    assert sorted(map(str, seen)) == ["('plain', 1)", "('plain', 2)", "('slow', 1)", "('slow', 2)"]
    assert len(complaints) == 1


async def test_a_closed_client_says_so(brokers: LocalBrokers) -> None:
    client = await connect(await brokers.start("A"), "C")
    sub = await client.subscribe(EVERY_STOCK)
    reading = asyncio.create_task(anext(sub))
    await asyncio.sleep(0)
    await client.close()
    await client.close()
    with pytest.raises(StopAsyncIteration):
        await reading
    with pytest.raises(ClientClosed):
        await client.publish(stock(1))


async def test_a_client_logs_what_it_published_and_received(brokers: LocalBrokers, tmp_path: Path) -> None:
    import json

    options = ClientOptions(log=tmp_path / "c.jsonl", log_every=1, run="r1")
    async with connect(await brokers.start("A"), "C", options=options) as c:
        sub = await c.subscribe(EVERY_STOCK)
        await c.advertise(STOCK)
        id_ = await c.publish(stock(1))
        await sub.get(5)
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert {line["run"] for line in lines} == {"r1"}
    (published,) = [line for line in lines if line["kind"] == "publish"]
    (delivered,) = [line for line in lines if line["kind"] == "deliver"]
    assert published["id"] == delivered["id"] == id_
    assert delivered["hops"] == 1
    assert 0 <= delivered["latency_s"] < 5
    assert published["time"] == delivered["time"]
