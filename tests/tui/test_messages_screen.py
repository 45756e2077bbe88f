"""Being a client on a screen, of real brokers: what is typed is done, what arrives is seen."""

from pathlib import Path

from broker_runtime.client import connect
from panda_tui.live import LiveWatch
from panda_tui.messages.line import LineInput
from panda_tui.overlay.details import way_of
from panda_tui.overlay.graph import edge_of
from panda_tui.overlay.painting import Mark
from panda_tui.overlay.view import OverlayView
from panda_tui.screens.confirm import ConfirmScreen
from panda_tui.screens.messages import MessagesScreen
from panda_tui.screens.overlay import OverlayScreen
from tests.support.local_brokers import LocalBrokers
from tests.support.watching import FakeWatch, ScreenApp, network, screen_text, until, until_seen

STOCK = "[class,eq,'STOCK'],[price,isPresent,*]"


async def chain(brokers: LocalBrokers) -> ScreenApp:
    await brokers.start("A")
    await brokers.start("B", "A")
    await brokers.start("C", "B")
    return ScreenApp(MessagesScreen(), LiveWatch(None, broker=brokers.addresses["A"]))


def line_of(app: ScreenApp) -> LineInput:
    return app.screen.query_one(LineInput)


async def say(pilot: object, line: str, seen: str) -> None:
    line_of(pilot.app).put(line)  # type: ignore[attr-defined]
    await pilot.press("enter")  # type: ignore[attr-defined]
    await until_seen(pilot, seen)  # type: ignore[arg-type]


async def test_advertise_subscribe_publish_and_withdraw(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await say(pilot, f"a {STOCK}", "advertised a1")
        await say(pilot, "s [class,eq,'STOCK'],[price,>,10]", "subscribed s2")
        await say(pilot, "p [class,'STOCK'],[price,20]", "s2 ← [class,'STOCK'],[price,20]")
        await say(pilot, "unsub all", "unsubscribed s2 after 1 notification")
        await say(pilot, "unadv a1", "unadvertised a1")
        await say(pilot, "list", "nothing is advertised or subscribed")
        await say(pilot, "unsub s9", "there is no s9")
        await say(pilot, "info C", "C: running")


async def test_a_publication_that_was_not_advertised_is_helped_along(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await say(pilot, "p [class,'STOCK'],[price,20]", "Enter says this first")
        assert line_of(app).value == "advertise [class,eq,'STOCK'],[price,isPresent,*]"
        await pilot.press("enter")
        await until_seen(pilot, "advertised a1")
        await pilot.press("up", "up", "enter")
        await until_seen(pilot, "published console-")


async def test_a_message_is_traced_and_its_way_kept_for_the_overlay(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with (
        app.run_test(size=(140, 40)) as pilot,
        connect(brokers.addresses["C"], "S") as subscriber,
    ):
        await subscriber.subscribe("[class,eq,'STOCK']")
        await until_seen(pilot, "● at A")
        await say(pilot, f"a {STOCK}", "advertised a1")
        await say(pilot, "settle", "every broker has acted")
        await say(pilot, "trace [class,'STOCK'],[price,20]", "C: from B to S")
        await until_seen(pilot, "trace A → B")
        assert app.trace is not None
        assert app.trace.complete
        nodes, edges = way_of(app.trace)
        assert nodes >= {"A", "B", "C", "S"}
        assert edges >= {edge_of("A", "B"), edge_of("B", "C"), edge_of("C", "S")}
        await app.push_screen(OverlayScreen())
        await until_seen(pilot, "⇒ S")
        painting = app.screen.query_one(OverlayView).stage.painting
        lit = [
            text
            for row in range(40)
            for text, style in painting.runs(row)
            if style and style[1] is Mark.TRACED
        ]
        assert all(any(name in text for text in lit) for name in "ABCS")


async def test_escape_stops_waiting_for_an_answer_that_does_not_come(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await say(pilot, "info Nobody", "1 being carried out")
        await pilot.press("escape")
        await until_seen(pilot, "no longer waited for")
        await until(pilot, lambda: "being carried out" not in screen_text(app))
        await say(pilot, "settle", "every broker has acted")


async def test_mistakes_are_told_under_their_place_while_one_types(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(100, 30)) as pilot:
        await until_seen(pilot, "● at A")
        line_of(app).put("s [class,eqq,'X']")
        await until_seen(pilot, "unknown operator 'eqq'")
        rows = screen_text(app).splitlines()
        caret = next(row for row in rows if "^ unknown operator" in row)
        typed = rows[rows.index(caret) - 1]
        assert typed[caret.index("^")] == "e"
        assert typed[caret.index("^") :].startswith("eqq")
        await pilot.press("enter")
        assert line_of(app).value == "s [class,eqq,'X']"  # stays, to be mended


async def test_tab_completes_from_what_brokers_know(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot, connect(brokers.addresses["A"], "P") as publisher:
        await publisher.advertise("[class,eq,'STOCK'],[volume,>,0]")
        await until_seen(pilot, "● at A")
        await until(pilot, lambda: "volume" in app.front._vocabulary.values)  # type: ignore[attr-defined]
        await pilot.press(*"subs", "tab")
        assert line_of(app).value == "subscribe "
        await pilot.press("tab")
        assert line_of(app).value == "subscribe [class,eq,"
        await pilot.press(*"'STO", "tab", ",", "left_square_bracket", "v", "tab", ">", "tab")
        assert line_of(app).value == "subscribe [class,eq,'STOCK'],[volume,>,"


async def test_a_batch_goes_step_by_step_and_stops_at_a_mistake(
    brokers: LocalBrokers, tmp_path: Path
) -> None:
    app = await chain(brokers)
    file = tmp_path / "words.txt"
    file.write_text(f"# first\na {STOCK}\ns [class,eq,'STOCK']\n\np [class,'STOCK'],[price,7]\nfoo\nlist\n")
    async with app.run_test(size=(160, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await say(pilot, f"batch {file}", "line 2 of 7")
        assert line_of(app).value == f"a {STOCK}"
        await pilot.press("enter")
        await until_seen(pilot, "line 3 of 7")
        await pilot.press("ctrl+r")
        await until_seen(pilot, "s2 ← [class,'STOCK'],[price,7]")
        await until_seen(pilot, "unknown word 'foo'")
        assert line_of(app).value == "foo"
        await pilot.press("ctrl+n", "enter")
        await until_seen(pilot, "is done")
        await say(pilot, "batch /nowhere/at/all", "No such file")


async def test_another_broker_and_another_ones_messages(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await until(pilot, lambda: len(app.watched.snapshot.overlay.brokers) == 3)
        await say(pilot, "connect C", "● at C")
        await until(pilot, lambda: app.front._desk is not None)  # type: ignore[attr-defined]
        await say(pilot, "s [class,eq,'STOCK']", "subscribed s1")
        await say(pilot, f"inject A advertise {STOCK}", "A: advertise done")
        await say(pilot, "settle", "every broker has acted")
        await say(pilot, "inject A publish [class,'STOCK'],[price,3]", "s1 ← [class,'STOCK'],[price,3]")


async def test_a_broker_that_dies_is_told_of_and_comes_back(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        await say(pilot, f"a {STOCK}", "advertised a1")
        await brokers.restart("A")
        await until_seen(pilot, "● at A")
        await say(pilot, "p [class,'STOCK'],[price,1]", "published console-")


async def test_another_run_is_another_stay(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    await brokers.start("Z")
    other = FakeWatch(network(("Z", "Y")))
    other.addresses["Z"] = other.addresses["Y"] = brokers.addresses["Z"]
    async with app.run_test(size=(140, 40)) as pilot:
        await until_seen(pilot, "● at A")
        before, app.watched = app.watched, other
        await before.close()
        other.start(app._tell)
        await until_seen(pilot, "● at Y")


async def test_dangerous_words_are_asked_about(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(100, 30)) as pilot:
        await until_seen(pilot, "● at A")
        line_of(app).put("shutdown C")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("n")
        line_of(app).put("cut B C")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: len(brokers.logs["B"].of("disconnected")) > 0 or app.screen is app.front)


async def test_what_arrives_is_shown_and_never_obeyed(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(140, 40)) as pilot, connect(brokers.addresses["A"], "P") as publisher:
        await publisher.advertise("[class,eq,'E'],[x,isPresent,*]")
        await until_seen(pilot, "● at A")
        await say(pilot, "s [class,eq,'E']", "subscribed s1")
        await publisher.publish({"class": "E", "x": "\x1b[2J\x1b]0;evil\x07[red]no[/red]"})
        await until_seen(pilot, "[red]no[/red]")
        assert all(letter.isprintable() or letter == "\n" for letter in screen_text(app))


async def test_a_flood_does_not_hold_up_the_keys(brokers: LocalBrokers) -> None:
    app = await chain(brokers)
    async with app.run_test(size=(100, 30)) as pilot, connect(brokers.addresses["A"], "P") as publisher:
        await publisher.advertise("[class,eq,'E'],[x,isPresent,*]")
        await until_seen(pilot, "● at A")
        await say(pilot, "s [class,eq,'E']", "subscribed s1")
        await publisher.publish_all({"class": "E", "x": n} for n in range(3000))
        await until_seen(pilot, "[x,2999]")
        await pilot.press(*"list", "enter")
        await until_seen(pilot, "(3000)")


async def test_without_a_broker_it_waits_for_one() -> None:
    app = ScreenApp(MessagesScreen(), FakeWatch(network()))
    async with app.run_test(size=(80, 24)) as pilot:
        await until_seen(pilot, "no broker")
        line_of(app).put("list")
        await pilot.press("enter")
        await until_seen(pilot, "not connected to any broker yet")
        await pilot.press("f1")
        await until_seen(pilot, "ordinary client")
