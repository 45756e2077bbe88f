"""Brokers are steered, asked and followed by publish/subscribe alone."""

import pytest

from broker_runtime.client import ControlFailed, NoAnswer, connect
from tests.client.test_messages import EVERY_STOCK, STOCK, stock
from tests.support.local_brokers import LocalBrokers


async def chain(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    await brokers.start("B", "A")
    await brokers.start("C", "B")


async def test_all_brokers_are_found_from_any(brokers: LocalBrokers) -> None:
    await chain(brokers)
    async with connect(brokers.addresses["A"]) as c:
        await c.control("C", "info")
        infos = await c.brokers()
        assert [info.broker for info in infos] == ["A", "B", "C"]
        assert infos[1].content["neighbours"] == "A:up,C:up"


async def test_a_trace_shows_the_way(brokers: LocalBrokers) -> None:
    await chain(brokers)
    async with connect(brokers.addresses["A"], "P") as p, connect(brokers.addresses["C"], "S") as s:
        await p.control("C", "info")
        await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        await p.settle()
        trace = await p.trace(stock(1))
        assert trace.complete
        way = [(step.broker, step.came_from, step.goes_to) for step in trace.steps]
        assert way == [("A", "P", ("B",)), ("B", "A", ("C",)), ("C", "B", ("S",))]


async def test_what_is_injected_comes_out(brokers: LocalBrokers) -> None:
    await chain(brokers)
    async with connect(brokers.addresses["A"], "S") as s:
        await s.control("C", "inject", kind="advertise", text=STOCK)
        sub = await s.subscribe(EVERY_STOCK)
        await s.settle()
        await s.control("C", "inject", kind="publish", text="[class,'STOCK'],[price,7]")
        assert (await sub.get(5)).content["price"] == 7


async def test_a_paused_broker_holds_publications_and_is_resumed_by_a_newcomer(brokers: LocalBrokers) -> None:
    await chain(brokers)
    async with connect(brokers.addresses["A"], "P") as p, connect(brokers.addresses["C"], "S") as s:
        await p.control("C", "info")
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        await p.settle()
        async with connect(brokers.addresses["B"]) as operator:
            assert (await operator.control("B", "pause")).content["state"] == "paused"
        await p.publish(stock(1))
        async with connect(brokers.addresses["B"]) as newcomer:
            assert (await newcomer.control("B", "info")).content["state"] == "paused"
            assert sub.waiting == 0
            await newcomer.control("B", "resume")
        assert (await sub.get(5)).content["price"] == 1


async def test_a_brokers_refusal_is_an_error(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A")) as c:
        with pytest.raises(ControlFailed, match="unknown command 'dance'"):
            await c.control("A", "dance")
        with pytest.raises(ControlFailed, match="line 1, column"):
            await c.control("A", "inject", kind="publish", text="[class")
        with pytest.raises(ValueError, match="no field 'colour'"):
            await c.control("A", "info", colour="red")
        with pytest.raises(NoAnswer, match="Zed did not answer"):
            await c.control("Zed", "info", timeout_s=0.2)


async def test_a_link_that_is_cut_while_publications_flow_loses_and_repeats_nothing(
    brokers: LocalBrokers,
) -> None:
    await chain(brokers)
    async with connect(brokers.addresses["A"], "P") as p, connect(brokers.addresses["C"], "S") as s:
        await p.control("C", "info")
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        await p.settle()
        for n in range(300):
            p.publish_soon(stock(n + 1))
            if n % 100 == 50:
                await p.control("B", "cut", peer="C")
                await p.control("C", "info")  # the answer comes when the link has resumed
        await p.flush()
        assert [(await sub.get(5)).content["price"] for _ in range(300)] == list(range(1, 301))
        assert sub.waiting == 0


async def test_only_what_is_connected_can_be_cut(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    async with connect(brokers.addresses["A"], "P") as p:
        with pytest.raises(ControlFailed, match="no neighbour or client of A"):
            await p.control("A", "cut", peer="Z")
