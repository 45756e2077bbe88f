"""A whole session with real processes of this machine: load, deploy, fault, steer, stop, delete."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

from panda_tui.app import ConsoleApp
from panda_tui.deploying import Order
from panda_tui.model import Connection, Overlay, State
from panda_tui.options import Options
from panda_tui.screens.brokers import BrokersScreen
from panda_tui.screens.logs import LogsScreen
from tests.support.consoles import CHAIN, screen_text, until, until_shown, until_told


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder; whatever was started in it is ended."""
    yield tmp_path
    for pid in working_below(tmp_path):
        os.kill(pid, signal.SIGKILL)


def working_below(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                here = (entry / "cwd").readlink()
            except OSError:
                continue
            if here.is_relative_to(folder):
                found.append(int(entry.name))
    return found


def relays() -> list[int]:
    """The console's own connections to agents: children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    pids = {int(child) for child in children}
    for task in Path("/proc/self/task").iterdir():
        pids |= {int(child) for child in (task / "children").read_text().split()}
    return [pid for pid in pids if b"relay" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def test_from_a_file_to_a_run_and_to_its_end(place: Path) -> None:
    (place / "chain.txt").write_text(CHAIN)
    app = ConsoleApp(Options(place / "runs"))

    def state(process: str) -> State | None:
        found = app.watched.snapshot.process(process)
        return found.state if found is not None else None

    def overlay() -> Overlay:
        return app.watched.snapshot.overlay

    def broker(id_: str) -> State | None:
        found = overlay().broker(id_)
        return found.state if found is not None else None

    def heard(id_: str) -> bool:
        found = overlay().broker(id_)
        return found is not None and found.load.uptime_s > 0

    def journal() -> list[dict[str, object]]:
        assert app.folder is not None
        return [json.loads(line) for line in (app.folder.path / "journal.jsonl").read_text().splitlines()]

    async with app.run_test(size=(120, 36)) as pilot:
        # Load and deploy
        await until_shown(pilot, "There are no runs")
        await pilot.press("n")
        app.screen.query_one("#path", Input).value = str(place / "chain.txt")
        await until_shown(pilot, "no problems")
        await until_shown(pilot, "Phase 1, at once:")
        await pilot.press("ctrl+d")
        await until_shown(pilot, "Deploy chain.txt on this machine?")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, BrokersScreen), "phase 2 has begun")
        await until(pilot, lambda: all(map(heard, ("Alice", "Bob", "Carol"))), "every broker tells of itself")
        await until_shown(pilot, "● ")
        assert app.watched.snapshot.state == "running"
        assert [link.key for link in overlay().links if link.up] == [
            ("Alice", "Bob"),
            ("Bob", "Carol"),
        ]
        await until(
            pilot, lambda: {c.id for c in app.watched.snapshot.overlay.clients} == {"P0", "S0"}, "clients"
        )

        # A fault, as a line that is checked
        await pilot.press("5", "a")
        line = app.screen.query_one("#line", Input)
        line.value = "0 CUT Bob Nobody for 60s"
        await until_shown(pilot, "Nobody, which is never added")
        line.value = "0 CUT Bob Carol for 6s"
        await pilot.press("enter")
        await until_shown(pilot, "Add '0 CUT Bob Carol for 6s'?")
        await pilot.press("y")
        await until(pilot, lambda: any(x.faults for x in overlay().links), "the link is cut")
        await until(pilot, lambda: not all(x.up for x in overlay().links), "the link is down")
        await until_shown(pilot, "heals in")
        await until(pilot, lambda: all(x.up for x in overlay().links), "the link has healed")
        asked = [entry for entry in journal() if entry["kind"] in ("asked", "line", "obeyed")]
        assert [entry["kind"] for entry in asked] == ["asked", "line", "obeyed"]
        assert all(str(os.getpid()) in str(entry["who"]) for entry in asked)

        # A broker is paused and goes on
        await pilot.press("2", "p", "y")
        await until(pilot, lambda: broker("Alice") is State.PAUSED, "Alice is paused")
        await until_shown(pilot, "paused")
        await pilot.press("r", "y")
        await until(pilot, lambda: broker("Alice") is State.RUNNING, "Alice goes on")

        # The broker that the console is connected to dies, and is shown at once; another one is found
        first = app.watched.snapshot.connected_to
        process = app.watched.snapshot.process(first)
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await until(pilot, lambda: broker(first) is State.FAILED, "the death is shown")
        await until(
            pilot,
            lambda: (
                app.watched.snapshot.connection is Connection.CONNECTED
                and app.watched.snapshot.connected_to != first
            ),
            "another broker is found",
        )
        await pilot.press("R")
        await until_shown(pilot, f"Restart broker {first}")
        await pilot.press("y")
        await until(pilot, lambda: state(first) is State.RUNNING and heard(first), "it runs again")

        # Connections to agents break, and come back by themselves
        await pilot.press("6")
        await until_shown(pilot, "answers")
        broken = relays()
        assert len(broken) == 3
        for pid in broken:
            os.kill(pid, signal.SIGKILL)
        await until(pilot, lambda: not all(h.present for h in app.watched.snapshot.hosts), "they are missed")
        await until(pilot, lambda: all(h.present for h in app.watched.snapshot.hosts), "they answer again")

        # What they said, in one order
        await pilot.press("7")
        assert isinstance(app.screen, LogsScreen)
        await until_shown(pilot, "link_up peer=")
        await pilot.press("e")
        await until_shown(pilot, "not following")

        # The end
        await pilot.press("1")
        await until_shown(pilot, "verdict")
        await pilot.press("s")
        await until_shown(pilot, "Every process of the run ends")
        await pilot.press("y")
        assert app.folder is not None
        await until(pilot, lambda: app.folder is not None and app.folder.over, "the run is over")
        await until(pilot, lambda: not working_below(place), "nothing of it runs")
        await until_shown(pilot, "stopped")
        await until_told(pilot, "is stopped; its logs are in")
        await pilot.press("d")
        await until_shown(pilot, "Delete ")
        await pilot.press("y")
        await until(pilot, lambda: list((place / "runs").iterdir()) == [], "its folder is gone")
        await until_shown(pilot, "There are no runs")
        assert "internal error" not in screen_text(app)


async def test_when_the_gate_is_not_met_what_is_missing_stays_on_the_screen(place: Path) -> None:
    lines = CHAIN.splitlines()[0] + "\n0 ADD Broken 10.0.1.2 false\n"
    (place / "broken.txt").write_text(lines)
    app = ConsoleApp(Options(place / "runs"))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_shown(pilot, "There are no runs")
        await pilot.press("n")
        app.screen.query_one("#path", Input).value = str(place / "broken.txt")
        await until_shown(pilot, "Phase 1, at once:")
        await pilot.press("ctrl+d")
        await until_shown(pilot, "Deploy broken.txt on this machine?")
        await pilot.press("y")
        await until_shown(pilot, "gate not met")
        await until_shown(pilot, "process Broken on 10.0.1.2: exit code 1")
        await until(pilot, lambda: not working_below(place), "all of it is taken back")
        await pilot.press("escape", "escape")
        await until_shown(pilot, "verdict")


async def test_a_deployment_is_given_up_and_takes_everything_back(place: Path) -> None:
    (place / "token").write_text("another secret\n")  # so that the two never link
    first, second, *_ = CHAIN.splitlines()
    (place / "apart.txt").write_text(f"{first}\n{second} --token-file {place}/token\n")
    app = ConsoleApp(Options(place / "runs"))
    async with app.run_test(size=(120, 30)) as pilot:
        await until_shown(pilot, "There are no runs")
        app.deploy(Order(place / "apart.txt"), "two brokers")
        await until_shown(pilot, "two brokers")
        await pilot.press("y")
        await until_shown(pilot, "waiting for link Bob – Alice")
        await pilot.press("escape")
        await until_shown(pilot, "Give this deployment up?")
        await pilot.press("y")
        await until_shown(pilot, "given up at the console")
        await until(pilot, lambda: not working_below(place), "all of it is taken back")
