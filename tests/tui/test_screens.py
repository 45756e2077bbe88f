"""The console's screens on a run that is made up: what they show, and what their keys do."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import DataTable, Input

from panda.experiment.folder import RunFolder
from panda_tui.app import PLACES as ALL_PLACES
from panda_tui.app import ConsoleApp
from panda_tui.deeds import Deed
from panda_tui.escaping import one_line
from panda_tui.model import Connection, State
from panda_tui.options import Options
from panda_tui.screens.confirm import ConfirmScreen
from panda_tui.screens.logs import LogsScreen, LogView
from panda_tui.screens.manual import ManualScreen
from tests.support.consoles import (
    LoggedWatch,
    close_all,
    console_of,
    kept_run,
    run_snapshot,
    screen_text,
    until,
    until_shown,
    until_told,
)

PLACES = {key: place.title_ for key, (_, place) in ALL_PLACES.items()}
T0 = 1_000_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = kept_run(tmp_path / "runs")
    made.record("go", t0=T0, theirs={host.name: T0 for host in made.read_plan().hosts})
    return made


@pytest.fixture
def watch(folder: RunFolder) -> LoggedWatch:
    return LoggedWatch(run_snapshot(folder))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_every_screen_is_reached_explains_itself_and_knows_both_themes(
    folder: RunFolder, watch: LoggedWatch, size: tuple[int, int]
) -> None:
    app = console_of(folder, watch)
    themes: set[str] = set()
    async with app.run_test(size=size) as pilot:
        for key, title in PLACES.items():
            await pilot.press(f"alt+{key}")
            await until(pilot, lambda title=title: app.screen.title_ == title, title)  # type: ignore[misc, attr-defined]
            assert title in screen_text(app)
            assert folder.id in screen_text(app)
            await pilot.press("f1")
            await until(pilot, lambda: isinstance(app.screen, ManualScreen), "it explains itself")
            await pilot.press("escape", "f2")
            themes.add(app.theme)
    assert themes == {"textual-light", "textual-dark"}


async def test_the_command_palette_knows_places_and_keys(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("2")
        await pilot.press("ctrl+p")
        await pilot.press(*"sched")
        await until_shown(pilot, "Go to the screen Schedule")
        await pilot.press("enter")
        await pilot.press("enter")
        await until_shown(pilot, "how it stands")


# Runs


async def test_runs_are_listed_with_state_and_verdict(tmp_path: Path) -> None:
    first, second = (kept_run(tmp_path / "runs", name=name) for name in ("first", "second"))
    close_all(first)
    (first.path / "analysis.json").write_text(json.dumps({"summary": {"expected": 60, "lost": 2}}))
    app = ConsoleApp(Options(tmp_path / "runs"))
    async with app.run_test(size=(120, 24)) as pilot:
        await until_shown(pilot, first.id)
        shown = screen_text(app)
        assert "2 lost, of 60 expected deliveries" in shown
        assert "stopped" in shown
        assert "not begun" in shown
        with second.locked("somebody else"):
            await until_shown(pilot, "steered")


async def test_only_a_run_that_is_over_is_deleted_and_only_when_that_is_meant(folder: RunFolder) -> None:
    app = ConsoleApp(Options(folder.path.parent))
    async with app.run_test(size=(120, 24)) as pilot:
        await until_shown(pilot, folder.id)
        await pilot.press("d")
        await until_told(pilot, "is not over: stop it first")
        close_all(folder)
        await until_shown(pilot, "stopped")
        await pilot.press("d")
        await until_shown(pilot, f"Delete {folder.id}?")
        await pilot.press("escape")
        assert folder.path.is_dir()
        await pilot.press("d")
        await until_shown(pilot, f"Delete {folder.id}?")
        await pilot.press("y")
        await until(pilot, lambda: not folder.path.exists(), "it is gone")


# Brokers


async def test_brokers_and_processes_are_in_tables_that_move(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(120, 24)) as pilot:
        await until_shown(pilot, "● Alice")
        table = app.screen.query_one("#broker-table", DataTable)
        assert table.row_count == 3
        brokers = watch.snapshot.overlay.brokers
        dead = replace(
            watch.snapshot.overlay, brokers=(replace(brokers[0], state=State.FAILED), *brokers[1:])
        )
        watch.change(overlay=dead, connection=Connection.LOST, why="Connection refused")
        await until_shown(pilot, "failed")
        await until_shown(pilot, "○ connection lost: Connection refused")
        await pilot.press("tab")
        await until_shown(pilot, "linked with")
        await pilot.press("slash", *"s0", "enter")
        assert app.screen.query_one("#process-table", DataTable).row_count == 1


async def test_a_process_is_ended_by_a_line_that_says_so(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(120, 24)) as pilot:
        await until_shown(pilot, "Alice")
        await pilot.press("tab", "down", "K")
        await until_shown(pilot, "Kill broker Bob on 10.0.1.2?")
        assert "10.0 KILL Bob" in screen_text(app)
        await pilot.press("n")
        assert not isinstance(app.screen, ConfirmScreen)
        assert "asked" not in (folder.path / "journal.jsonl").read_text()


# Deeds


async def test_a_deed_is_in_the_journal_before_it_is_done_and_after(
    folder: RunFolder, watch: LoggedWatch
) -> None:
    app = console_of(folder, watch)
    seen: list[str] = []

    async def act(force: bool) -> str:
        seen.append((folder.path / "journal.jsonl").read_text().splitlines()[-1])
        return "it is done"

    async with app.run_test(size=(100, 24)) as pilot:
        app.carry_out(Deed("Try this", "Nothing happens.", act, {"action": "try"}, folder))
        await until_shown(pilot, "Nothing happens.")
        assert seen == []
        await pilot.press("y")
        await until_told(pilot, "it is done")
        before = json.loads(seen[0])
        after = json.loads((folder.path / "journal.jsonl").read_text().splitlines()[-1])
        assert (before["kind"], after["kind"]) == ("asked", "obeyed")
        assert before["action"] == "try"
        assert before["who"] == after["who"] != ""


async def test_somebody_elses_run_is_taken_over_only_when_that_is_meant(
    folder: RunFolder, watch: LoggedWatch
) -> None:
    app = console_of(folder, watch)
    forced: list[bool] = []

    async def act(force: bool) -> str:
        with folder.locked("me", force=force):
            forced.append(force)
            return "it is mine"

    async with app.run_test(size=(100, 24)) as pilot:
        with folder.locked("eve@elsewhere (pid 7)"):
            app.carry_out(Deed("Try this", "Nothing happens.", act, {}, folder))
            await until_shown(pilot, "Try this?")
            await pilot.press("y")
            await until_shown(pilot, "eve@elsewhere (pid 7) steers this run.")
            await pilot.press("y")
            await until_told(pilot, "it is mine")
    assert forced == [True]


async def test_a_deed_that_fails_is_told_in_words(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)

    async def act(force: bool) -> str:
        await asyncio.to_thread(lambda: 1 / 0)
        return ""

    async with app.run_test(size=(100, 24)) as pilot:
        app.carry_out(Deed("Try this", "Nothing happens.", act, {}, folder, dangerous=False))
        await until_told(pilot, "internal error: ZeroDivisionError")
        assert '"refused"' in (folder.path / "journal.jsonl").read_text()


# Topologies


async def test_problems_of_a_topology_stand_at_their_lines_and_follow_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.txt"
    path.write_text("0 ADD Alice h1 startbroker.sh -p 10000 -i Alice\n5 CUT Alice Bob for 5s\n")
    app = ConsoleApp(Options(tmp_path / "runs"))
    async with app.run_test(size=(120, 36)) as pilot:
        await until_shown(pilot, "There are no runs")
        await pilot.press("n")
        app.screen.query_one("#path", Input).value = str(path)
        await until_shown(pilot, "CUT of Bob, which is never added")
        assert "1 problem" in screen_text(app)
        assert app.screen.query_one("#deploy").disabled
        await pilot.press("ctrl+d")
        await until_told(pilot, "it cannot be deployed")
        path.write_text("0 ADD Alice h1 startbroker.sh -p 10000 -i Alice\n")
        await until_shown(pilot, "no problems")
        await until_shown(pilot, "Phase 1, at once:")
        assert not app.screen.query_one("#deploy").disabled
        await pilot.press("escape")
        await until_shown(pilot, "verdict")


async def test_a_path_is_completed(tmp_path: Path) -> None:
    from panda_tui.screens.topology import suggestion_for

    (tmp_path / "stock.txt").touch()
    (tmp_path / "storage").mkdir()
    (tmp_path / "stop.bin").touch()
    assert suggestion_for(f"{tmp_path}/stoc") == f"{tmp_path}/stock.txt"
    assert suggestion_for(f"{tmp_path}/stor") == f"{tmp_path}/storage/"
    assert suggestion_for(f"{tmp_path}/stop") is None
    assert suggestion_for("/nowhere/at/all") is None


# Schedule


async def test_the_schedule_says_what_was_planned_and_what_was_done(
    folder: RunFolder, watch: LoggedWatch
) -> None:
    steps = [
        replace(step, actual_s=step.at_s + 0.25) if step.action == "mark" else step
        for step in watch.snapshot.steps
    ]
    watch.snapshot = replace(watch.snapshot, steps=tuple(steps))
    app = console_of(folder, watch)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("5")
        await until_shown(pilot, "MARK it begins")
        shown = screen_text(app)
        assert "+250.0" in shown
        assert "in 590 s" in shown
        assert "seconds" in shown


async def test_a_line_is_checked_while_it_is_typed(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("5", "a")
        await pilot.press(*"0 CUT Alice X")
        await until_shown(pilot, "CUT of X, which is never added")
        assert "^" in screen_text(app)
        await pilot.press(*["backspace"] * 20)
        await pilot.press(*"0 CUT Alice Bob for 5s")
        await until(pilot, lambda: "error" not in screen_text(app), "it is fine")
        await pilot.press("enter")
        await until_shown(pilot, "Add '0 CUT Alice Bob for 5s'?")
        await pilot.press("escape")


# Hosts


async def test_a_lost_host_is_shown_with_the_reason(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("6")
        await until_shown(pilot, "+1.200")
        first, *others = watch.snapshot.hosts
        lost = replace(first, present=False, why="the connection ended")
        watch.change(hosts=(lost, *others))
        await until_shown(pilot, "the connection ended")
        watch.change(hosts=(first, *others))
        await until(pilot, lambda: "the connection ended" not in screen_text(app), "it is back")


async def test_the_doctor_looks_at_a_host(folder: RunFolder, watch: LoggedWatch) -> None:
    app = console_of(folder, watch)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("6", "d")
        await until_shown(pilot, "doctor: reachable")


# Logs


async def test_logs_are_filtered_searched_and_their_errors_found(
    folder: RunFolder, watch: LoggedWatch
) -> None:
    watch.files["Alice", "stderr"] = b"Alice: link with Bob is up\n\x1b[2J cannot go on\n"
    entry = {"v": 1, "t": 1_000_000_004.5, "kind": "link_down", "peer": "Alice"}
    watch.files["Bob", "log"] = (json.dumps(entry) + "\n").encode()
    app = console_of(folder, watch)
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("7")
        await until_shown(pilot, "4.499 Bob")
        await until_shown(pilot, "cannot go on")
        assert "\x1b" not in screen_text(app)
        await pilot.press("e")
        assert app.screen.query_one(LogView).at == 0
        await pilot.press("e")
        assert app.screen.query_one(LogView).at == 2
        await pilot.press("slash", *"alice with", "enter")
        await until_shown(pilot, "1 lines of 5 processes")
        watch.files["Alice", "stderr"] += b"Alice: link with Bob is down\n"
        await until_shown(pilot, "2 lines of 5 processes")
        app.show_logs("Bob")
        assert isinstance(app.screen, LogsScreen)
        await until(pilot, lambda: "link_down peer=Alice" in screen_text(app), "Bob alone")


async def test_the_end_of_a_log_can_be_had(folder: RunFolder, watch: LoggedWatch) -> None:
    watch.files["Alice", "stdout"] = b"".join(b"%d\n" % number for number in range(100))
    app = console_of(folder, watch)
    async with app.run_test():
        assert await app.tail("Alice", "stdout", 3) == "97\n98\n99"
        assert await app.tail("Nobody", "stdout", 3) == ""


# Analysis


async def test_figures_are_drawn_of_the_reports_numbers(folder: RunFolder, watch: LoggedWatch) -> None:
    figures = folder.path / "report" / "figures"
    figures.mkdir(parents=True)
    (figures / "hops.csv").write_text("hops,count\n1,5\n2,7\n")
    (figures / "latency-time.csv").write_text(
        "at_s,series,latency_s\n1,p50,0.5\n2,p50,0.7\n1,p99,1\n2,p99,2\n"
    )
    (figures / "lives.csv").write_text("name,why\n\x1b[31mB1,ended\n")
    (folder.path / "analysis.json").write_text(json.dumps({"sentence": "All went well.", "summary": {}}))
    app = console_of(folder, watch)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("8")
        await until_shown(pilot, "All went well.")
        await until_shown(pilot, "p99")
        await pilot.press("up")
        await until_shown(pilot, "how many")
        await pilot.press("down", "down")
        await until_shown(pilot, "ended")
        assert "\x1b" not in screen_text(app)


def test_nothing_from_afar_steers_the_terminal() -> None:
    assert one_line("a\x1b[31mb\x07\x9bc\nd\te\u202e") == "a�[31mb��c d    e�"
