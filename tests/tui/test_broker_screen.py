"""One broker on a screen: how it fares, what its tables hold, and being paused by a person."""

import json
from typing import Any

import pytest

from broker_runtime.client import BrokerInfo, connect
from panda_tui.live import LiveWatch
from panda_tui.model import State
from panda_tui.screens.broker import BrokerScreen
from panda_tui.screens.confirm import ConfirmScreen
from tests.support.local_brokers import LocalBrokers
from tests.support.watching import AT, FakeWatch, ScreenApp, changed, network, screen_text, until, until_seen

NETWORK = network(("A", "B"), ("A", "C"), clients={"P": "B"})
STOCK = "[class,eq,'STOCK'],[price,isPresent,@INTEGER]"
TABLES: dict[str, Any] = {
    "subscriptions": [
        {"id": "S0:x:1", "hop": "S0", "text": "[class,eq,'STOCK']"},
        {"id": "S1:x:1", "hop": "B", "text": "[class,eq,'STOCK'],[price,>,100]"},
    ],
    "advertisements": [{"id": "P:x:1", "hop": "P", "text": STOCK}],
    "links": [
        {"peer": "B", "role": "broker", "up": True, "records_in": 7, "queue_length": 3, "blocked_on": ["S9"]},
        {"peer": "P", "role": "client", "up": False},
    ],
}


def app_of(tables: dict[str, Any] = TABLES) -> ScreenApp:
    watch = FakeWatch(NETWORK)
    watch.answers["A", "tables"] = BrokerInfo("A", {}, json.dumps(tables).encode())
    for command in ("pause", "resume", "shutdown"):
        watch.answers["A", command] = BrokerInfo("A", {})
    return ScreenApp(BrokerScreen("A"), watch)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_figures_links_and_counts_are_seen(size: tuple[int, int]) -> None:
    app = app_of()
    async with app.run_test(size=size) as pilot:
        await until_seen(pilot, "Subscriptions 2")
        text = screen_text(app)
        for wanted in (
            "A  running",
            "in/s",
            "queueing ms",
            "matching µs",
            "127.0.0.1:10001",
            "Advertisements 1",
        ):
            assert wanted in text
        assert "S9" in text or size == (80, 24)
        assert "▁" in text or "█" in text


async def test_tables_are_searched_by_text_and_by_publication() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await until_seen(pilot, "Subscriptions 2")
        await pilot.press("slash", *"s1:")
        await until_seen(pilot, "Subscriptions 1/2")
        assert "covered by [class,eq,'STOCK'] (S0)" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "1/2" not in screen_text(app))
        await pilot.press("slash")
        app.screen.query_one("#search").value = "[class,'STOCK'],[price,20]"  # type: ignore[attr-defined]
        await until_seen(pilot, "Subscriptions 1/2")
        assert "covers [class,eq,'STOCK'],[price,>,100] (B)" in screen_text(app)
        app.screen.query_one("#search").value = "[class,'STOCK'],[price"  # type: ignore[attr-defined]
        await until_seen(pilot, "^")


async def test_dangerous_things_are_asked_about_first() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_seen(pilot, "Subscriptions 2")
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "says goodbye and ends" in screen_text(app)
        await pilot.press("n")
        await until(pilot, lambda: app.screen is app.front)
        assert ("A", "shutdown") not in app.fake.asked
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: ("A", "shutdown") in app.fake.asked)


async def test_what_needs_an_agent_says_so() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("K")
        await until_seen(pilot, "no process")
        assert app.deeds == []


async def test_a_broker_that_is_paused_or_gone_says_so_at_once() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        app.fake.take(changed(NETWORK, "A", state=State.PAUSED), AT + 1)
        await until_seen(pilot, "A  paused")
        app.fake.take(network(("B", "C")), AT + 2)
        await until_seen(pilot, "A  silent")


async def test_enter_on_a_neighbour_goes_there() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_seen(pilot, "Subscriptions 2")
        await pilot.press("enter")
        assert app.opened == ["B"]


async def test_the_log_is_at_the_end_and_obeys_nobody() -> None:
    app = app_of()
    app.fake.logs["BrokerA"] = "".join(f"line {i}\n" for i in range(500)) + "\x1b[2Jevil [red]x[/red]\n"
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("left_square_bracket")
        await until_seen(pilot, "evil [red]x[/red]")
        assert "\x1b" not in screen_text(app)


async def test_tables_from_afar_are_shown_and_never_obeyed() -> None:
    evil = "\x1b]0;x\x07[bold]x"
    rows = [{"id": evil, "hop": evil, "text": evil}]
    app = app_of({"subscriptions": rows, "advertisements": rows, "links": [{"peer": evil, "role": "broker"}]})
    async with app.run_test(size=(120, 40)) as pilot:
        await until_seen(pilot, "[bold]x")
        await pilot.press("right_square_bracket")
        await until_seen(pilot, "not understood")
        assert all(letter.isprintable() or letter == "\n" for letter in screen_text(app))


async def test_a_real_broker_is_paused_seen_paused_and_resumed(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    await brokers.start("B", "A")
    await brokers.start("C", "B")
    app = ScreenApp(BrokerScreen("B"), LiveWatch(None, broker=brokers.addresses["A"]))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_seen(pilot, "B  running")
        await until_seen(pilot, "Subscriptions ")
        async with (
            connect(brokers.addresses["C"], "S") as subscriber,
            connect(brokers.addresses["A"], "P") as p,
        ):
            sub = await subscriber.subscribe(STOCK)
            await p.advertise(STOCK)
            await p.settle()
            await pilot.press("slash", *"S:")
            await until_seen(pilot, "[class,eq,'STOCK'],[price,isPresent,@INTEGER]")
            await pilot.press("enter", "p")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press("y")
            await until_seen(pilot, "B  paused")
            assert brokers.servers["B"].broker.paused
            await p.publish("[class,'STOCK'],[price,7]")
            assert sub.waiting == 0
            await pilot.press("r")
            await until(
                pilot, lambda: isinstance(app.screen, ConfirmScreen) or not brokers.servers["B"].broker.paused
            )
            if isinstance(app.screen, ConfirmScreen):
                await pilot.press("y")
            await until_seen(pilot, "B  running")
            assert (await sub.get(10)).content["price"] == 7
