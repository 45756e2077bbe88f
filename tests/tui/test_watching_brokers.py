"""A broker alone is watched by an ordinary client: real brokers on loopback, that die and come back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from panda_tui.live import LiveWatch
from panda_tui.model import Connection, Snapshot, State
from panda_tui.watch import Away
from tests.support.local_brokers import LocalBrokers

TIMEOUT_S = 30.0


class Told:
    """Gets snapshots; one can wait for a next one."""

    def __init__(self) -> None:
        self.news = asyncio.Event()

    def __call__(self, snapshot: Snapshot) -> None:
        self.news.set()


told = Told()


async def until(holds: Callable[[], Any], what: str) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():
                told.news.clear()
                await told.news.wait()
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


@pytest.fixture
async def watch(brokers: LocalBrokers) -> AsyncIterator[LiveWatch]:
    address = await brokers.start("A")
    await brokers.start("B", "A")
    await brokers.start("C", "B")
    made = LiveWatch(None, broker=address)
    told.news = asyncio.Event()
    made.start(told)
    made.pace(0.1)
    yield made
    await made.close()


def states(watch: LiveWatch) -> dict[str, State]:
    return {each.id: each.state for each in watch.snapshot.overlay.brokers}


async def test_every_broker_and_link_is_found_through_one(watch: LiveWatch, brokers: LocalBrokers) -> None:
    await until(lambda: len(states(watch)) == 3, "three brokers")
    await until(lambda: all(link.up for link in watch.snapshot.overlay.links), "their links")
    assert [link.key for link in watch.snapshot.overlay.links] == [("A", "B"), ("B", "C")]
    assert set(states(watch).values()) == {State.RUNNING}
    assert watch.snapshot.connection is Connection.CONNECTED
    assert watch.snapshot.connected_to == "A"
    assert watch.snapshot.overlay.clients == (), "who only watches is not shown"
    async with watch.visit("C", "guest"):
        await until(lambda: [c.id for c in watch.snapshot.overlay.clients] == ["guest"], "a guest")
    with pytest.raises(Away):
        await watch.control("D", "pause")


async def test_a_paused_broker_is_shown_and_resumed_though_the_way_to_it_is_held(
    watch: LiveWatch, brokers: LocalBrokers
) -> None:
    await until(lambda: len(states(watch)) == 3, "three brokers")
    await watch.control("B", "pause")
    await until(lambda: states(watch)["B"] is State.PAUSED, "it is paused")
    await watch.control("B", "resume")
    await until(lambda: states(watch)["B"] is State.RUNNING, "it goes on")


async def test_a_lost_connection_is_told_at_once_and_another_broker_is_found(
    watch: LiveWatch, brokers: LocalBrokers
) -> None:
    await until(lambda: len(states(watch)) == 3, "three brokers")
    await brokers.stop("A")
    await until(lambda: watch.snapshot.connection is Connection.LOST, "the loss is told")
    assert watch.snapshot.why
    await until(lambda: watch.snapshot.connection is Connection.CONNECTED, "another one is found")
    assert watch.snapshot.connected_to in {"B", "C"}
    await until(lambda: states(watch)["A"] is State.SILENT, "it is missed")


async def test_a_broker_that_comes_back_is_found_again(watch: LiveWatch, brokers: LocalBrokers) -> None:
    await until(lambda: len(states(watch)) == 3, "three brokers")
    await brokers.restart("C", "B")
    await until(lambda: watch.snapshot.overlay.broker("C").load.uptime_s < 5, "its new life is seen")  # type: ignore[union-attr]
    await until(lambda: states(watch)["C"] is State.RUNNING, "it runs")
