"""The overlay as it is on a terminal: keys, the mouse, sizes, and what is remote is never obeyed."""

import pytest
from textual.pilot import Pilot

from broker_runtime.client import Step, Trace
from panda_tui.model import Link, State
from panda_tui.overlay.layout import Layout
from panda_tui.overlay.painting import Mark, Tone
from panda_tui.overlay.pane import OverlayPane
from panda_tui.overlay.view import OverlayView
from panda_tui.screens.overlay import OverlayScreen
from tests.support.watching import FakeWatch, ScreenApp, changed, network, screen_text

NETWORK = network(("A", "B"), ("A", "C"), ("A", "D"), ("D", "E"), clients={"P": "B", "S": "E"})
HUNDRED = network(*((f"B{i // 3:02}", f"B{i:02}") for i in range(1, 100)))


def app_of(overlay: object = NETWORK) -> ScreenApp:
    return ScreenApp(OverlayScreen(), FakeWatch(overlay))  # type: ignore[arg-type]


def graph_of(app: ScreenApp) -> OverlayView:
    return app.screen.query_one(OverlayView)


async def tell(pilot: Pilot[None], overlay: object) -> None:
    assert isinstance(pilot.app, ScreenApp)
    pilot.app.fake.take(overlay)  # type: ignore[arg-type]
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_all_brokers_links_and_rates_are_seen(size: tuple[int, int]) -> None:
    app = app_of()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        text = screen_text(app)
        assert "5 brokers · 4 links · 2 clients · 300/s" in text
        assert "●A" in text or "│   A   │" in text
        for name in "BCDEPS":
            assert name in text
        assert app.fake.paces == [0.2]


async def test_arrows_select_and_enter_opens() -> None:
    app = app_of()
    async with app.run_test(size=(140, 40)) as pilot:
        graph = graph_of(app)
        await pilot.press("down")
        assert graph.stage.selected == "C"  # in the middle
        await pilot.press("right")
        assert graph.stage.selected in "EP"
        await pilot.press("left", "left", "left", "enter")
        assert app.opened == ["A"]
        assert "A  broker, running" in screen_text(app)


async def test_search_finds_while_one_types_and_escape_takes_it_back() -> None:
    app = app_of(HUNDRED)
    async with app.run_test(size=(80, 24)) as pilot:
        graph = graph_of(app)
        await pilot.press("slash", "9", "7")
        assert graph.stage.found == ("B97",)
        assert graph.stage.selected == "B97"
        assert "/97: 1 found" in screen_text(app)
        await pilot.press("enter")
        assert graph.has_focus
        assert "B97" in screen_text(app)
        await pilot.press("escape")
        assert graph.stage.found == ()
        assert "found" not in screen_text(app)


async def test_n_goes_from_one_found_to_the_next() -> None:
    app = app_of(HUNDRED)
    async with app.run_test(size=(80, 24)) as pilot:
        graph = graph_of(app)
        await pilot.press("slash", *"B1", "enter")
        first = graph.stage.selected
        await pilot.press("n")
        assert graph.stage.selected != first
        await pilot.press("N")
        assert graph.stage.selected == first


async def test_focus_shows_what_is_within_a_few_hops() -> None:
    app = app_of()
    async with app.run_test(size=(100, 30)) as pilot:
        graph = graph_of(app)
        graph.select("E")
        await pilot.press("f")
        assert set(graph.stage.graph.nodes) == {"A", "D", "E", "S"}
        assert "2 hops around E" in screen_text(app)
        await pilot.press("left_square_bracket")
        assert set(graph.stage.graph.nodes) == {"D", "E", "S"}
        await pilot.press("f")
        assert len(graph.stage.graph.nodes) == 7


async def test_zoom_layout_clients_and_colours_have_keys() -> None:
    app = app_of(HUNDRED)
    async with app.run_test(size=(80, 24)) as pilot:
        graph = graph_of(app)
        assert not graph.stage.picture.boxed
        await pilot.press(*["plus"] * 9)
        assert graph.stage.picture.boxed
        assert "╭───────╮" in screen_text(app)
        await pilot.press("0", "l")
        assert graph.stage.layout is Layout.LAYERED
        await pilot.press("l", "l", "c")
        assert graph.stage.layout is Layout.TREE
        assert "colour: state" in screen_text(app)
        await pilot.press("g")
        assert not graph.stage.shows_clients


async def test_panning_moves_the_picture() -> None:
    app = app_of(HUNDRED)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("plus", "plus", "plus")
        before = screen_text(app)
        await pilot.press("shift+right")
        assert screen_text(app) != before
        await pilot.press("shift+left")
        assert screen_text(app) == before


async def test_the_mouse_selects_opens_drags_and_zooms() -> None:
    app = app_of()
    async with app.run_test(size=(140, 40)) as pilot:
        graph = graph_of(app)
        await pilot.pause()
        picture = graph.stage.picture
        row, column = next(
            (row, column)
            for row in range(picture.height)
            for column in range(picture.width)
            if picture.owner_at(column, row) == "D"
        )
        await pilot.click(graph, offset=(column, row))
        assert graph.stage.selected == "D"
        await pilot.click(graph, offset=(column, row))
        assert app.opened == ["D"]
        await pilot.press("plus")
        before = screen_text(app)
        await pilot.mouse_down(graph, offset=(30, 10))
        await pilot.hover(graph, offset=(24, 12))
        await pilot.mouse_up(graph, offset=(24, 12))
        assert screen_text(app) != before
        assert app.opened == ["D"]


async def test_states_and_rates_change_without_moving_anybody() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        painting = graph_of(app).stage.painting
        await tell(pilot, changed(NETWORK, "B", state=State.PAUSED))
        assert graph_of(app).stage.painting is painting
        runs = [run for row in range(painting.picture.height) for run in painting.runs(row)]
        assert any("B" in text and style == (Tone.PAUSED, Mark.NONE) for text, style in runs)
        assert "B paused" in screen_text(app)


async def test_a_broker_that_comes_is_drawn_and_one_that_is_silent_is_told_of() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        graph_of(app).select("E")
        await tell(pilot, network(("A", "B"), ("A", "Zed")))
        assert "Zed" in screen_text(app)
        assert graph_of(app).stage.selected == ""
        await tell(pilot, changed(network(("A", "B"), ("A", "Zed")), "Zed", state=State.SILENT))
        assert "Zed not heard" in screen_text(app)


async def test_a_link_that_is_down_says_so() -> None:
    app = app_of()
    async with app.run_test(size=(140, 44)) as pilot:
        links = tuple(Link("A", "B") if each.key == ("A", "B") else each for each in NETWORK.links)
        await tell(pilot, type(NETWORK)(NETWORK.brokers, links, NETWORK.clients))
        assert "1 link down" in screen_text(app)
        graph_of(app).select("B")
        await pilot.pause()
        assert "↔ A down" in screen_text(app)


async def test_small_screens_get_a_table() -> None:
    app = app_of()
    async with app.run_test(size=(50, 20)) as pilot:
        await pilot.pause()
        pane = app.screen.query_one(OverlayPane)
        assert pane.is_table
        assert "neighbours" in screen_text(app)
        await tell(pilot, changed(NETWORK, "C", state=State.PAUSED))
        assert "paused" in screen_text(app)
        await pilot.press("down", "enter")
        assert app.opened == ["B"]
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert not pane.is_table
        assert graph_of(app).has_focus


async def test_a_table_may_be_asked_for() -> None:
    app = app_of(HUNDRED)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("t")
        assert app.screen.query_one(OverlayPane).is_table
        assert app.screen.query_one(OverlayPane).table.row_count == 100
        await pilot.press("t")
        assert not app.screen.query_one(OverlayPane).is_table


async def test_the_way_of_a_message_lights_up() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        steps = (
            Step("B", "P", ("A",), 0, 5.0),
            Step("A", "B", ("D",), 1, 5.001),
            Step("D", "A", (), 2, 5.002),
        )
        app.trace = Trace("P:1:1", steps, complete=True)
        await tell(pilot, NETWORK)
        text = screen_text(app)
        assert "trace B → A +1.0 ms → D +2.0 ms ⇒ nobody" in text
        painting = graph_of(app).stage.painting
        traced = {
            letter
            for row in range(painting.picture.height)
            for text, style in painting.runs(row)
            if style is not None and style[1] is Mark.TRACED
            for letter in text
        }
        assert traced >= set("BADP")
        assert "C" not in traced
        await pilot.press("escape")
        assert "trace" not in screen_text(app)


@pytest.mark.parametrize("evil", ["\x1b[2J\x1b]0;x\x07", "[red]B[/red]", "a\nb", "\u202eB", "漢字" * 20])
async def test_names_from_afar_are_shown_and_never_obeyed(evil: str) -> None:
    overlay = network(("A", evil), clients={"S" + evil: evil})
    app = app_of(overlay)
    async with app.run_test(size=(140, 40)) as pilot:
        graph_of(app).select(evil)
        await tell(pilot, changed(overlay, evil, host=evil, address=evil))
        text = screen_text(app)
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert "[red]" in text or "red" not in evil
        await pilot.press("t")
        assert all(letter.isprintable() or letter == "\n" for letter in screen_text(app))


async def test_help_and_both_themes() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        dark = graph_of(app).get_component_rich_style("overlay-view--calm").color
        await pilot.press("f2")
        assert graph_of(app).get_component_rich_style("overlay-view--calm").color != dark
        await pilot.press("f1")
        await pilot.pause()
        assert "Arrows select" in screen_text(app)


async def test_nothing_to_see_is_no_trouble() -> None:
    app = app_of(network())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "plus", "minus", "l", "f", "n", "enter", "escape", "c", "g", "t", "t")
        assert "0 brokers" in screen_text(app)
