"""Every screen as it is drawn, small and large. When a change was wanted: --snapshot-update."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from broker_runtime.client import BrokerInfo
from panda_tui import steering
from panda_tui.app import PLACES, ConsoleApp
from panda_tui.deploying import Order
from panda_tui.screens.deployment import DeploymentScreen
from tests.support.consoles import LoggedWatch, console_of, kept_run, run_snapshot, until

T0 = 1_000_000_000.0
SIZES = [(80, 24), (200, 60)]
WRONG = """\
0 ADD Alice 10.0.1.1 startbroker.sh -p 10000 -i Alice
0 ADD Bob 10.0.1.2 startbroker.sh -p 10000 -i Bob -n 10.0.1.9:10000
5 CUT Alice Carol for 2s
9 REMOVE Alice 10.0.1.2
"""
TABLES = {
    "subscriptions": [{"id": "S0:x:1", "hop": "Carol", "text": "[class,eq,'STOCK']"}],
    "advertisements": [{"id": "P0:x:1", "hop": "Alice", "text": "[class,eq,'STOCK'],[price,>,0]"}],
    "links": [
        {"peer": "Alice", "role": "broker", "up": True, "records_in": 7, "queue_length": 3},
        {"peer": "Carol", "role": "broker", "up": False, "records_out": 7, "blocked_on": ["S0"]},
    ],
}

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def _one_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs are named by local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def watch(tmp_path: Path) -> LoggedWatch:
    folder = kept_run(tmp_path / "runs")
    folder.record("go", t0=T0, theirs={host.name: T0 for host in folder.read_plan().hosts})
    figures = folder.path / "report" / "figures"
    figures.mkdir(parents=True)
    curves = {"p50": 0.1, "p99": 0.3}
    rows = [f"{at},{name},{at * factor}" for at in range(10) for name, factor in curves.items()]
    (figures / "latency-time.csv").write_text("at_s,series,latency_s\n" + "\n".join(rows) + "\n")
    (folder.path / "analysis.json").write_text(json.dumps({"sentence": "All 60 arrived.", "summary": {}}))
    made = LoggedWatch(run_snapshot(folder))
    made.answers["Bob", "tables"] = BrokerInfo("Bob", {}, json.dumps(TABLES).encode())
    for number, (process, kind) in enumerate([("Alice", "ready"), ("Bob", "link_up"), ("Bob", "link_down")]):
        line = json.dumps({"v": 1, "t": T0 + number, "kind": kind, "peer": "Carol"})
        made.files[process, "log"] = made.files.get((process, "log"), b"") + f"{line}\n".encode()
    return made


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", PLACES, ids=lambda key: PLACES[key][0])
def test_a_screen_is_drawn_as_before(
    watch: LoggedWatch, tmp_path: Path, snap_compare: Compare, key: str, size: tuple[int, int]
) -> None:
    from panda.experiment.folder import RunFolder

    (folder,) = RunFolder.all(tmp_path / "runs")
    app = console_of(folder, watch)
    app.animation_level = "none"

    async def settle(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.screen_stack) == 2, "the first screen")
        await pilot.press(f"alt+{key}")
        await until(pilot, lambda: AWAITED.get(key, "") in text_of(pilot), "what it shows")

    assert snap_compare(app, terminal_size=size, run_before=settle)


class WaitingScreen(DeploymentScreen):
    """Of a deployment that is told of, and that nobody does."""

    SCOPED_CSS = False  # its style is written for the class that it is made from

    def _deploy(self) -> None:
        told = self._progress
        for host, what in (("10.0.1.1", "connected"), ("10.0.1.2", "connected"), ("10.0.1.3", "uploading")):
            told.note(host, what)
        told.said += ["phase 1: starting"]
        told.ready, told.of, told.missing = 3, 5, ("broker Carol on 10.0.1.3", "link Carol – Bob")


def open_topology(app: ConsoleApp) -> None:
    Path("wrong.txt").write_text(WRONG)
    app.load_topology("wrong.txt")


def ask_to_stop(app: ConsoleApp) -> None:
    assert app.folder is not None
    app.carry_out(steering.stop_deed(app, app.folder))


OPENED: dict[str, tuple[Callable[[ConsoleApp], object], str]] = {
    "broker": (lambda app: app.open_broker("Bob"), "Subscriptions 1"),
    "topology": (open_topology, "which is never added"),
    "deployment": (lambda app: app.push_screen(WaitingScreen(Order(Path("chain.txt")))), "waiting for"),
    "question": (ask_to_stop, "Do it (y)"),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", OPENED)
def test_what_is_opened_over_a_screen_is_drawn_as_before(
    watch: LoggedWatch,
    tmp_path: Path,
    snap_compare: Compare,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    size: tuple[int, int],
) -> None:
    from panda.experiment.folder import RunFolder

    monkeypatch.chdir(tmp_path)
    (folder,) = RunFolder.all(tmp_path / "runs")
    app = console_of(folder, watch)
    app.animation_level = "none"
    opening, awaited = OPENED[name]

    async def settle(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.screen_stack) == 2, "the first screen")
        await pilot.press("alt+2")
        await until(pilot, lambda: "Alice" in text_of(pilot), "the brokers")
        opening(app)
        await until(pilot, lambda: awaited in text_of(pilot), "what it shows")
        for each in app.screen.query(Input):
            each.cursor_blink = False

    assert snap_compare(app, terminal_size=size, run_before=settle)


AWAITED = {"1": "20010909", "5": "MARK", "7": "3 lines", "8": "p99"}


def text_of(pilot: Pilot[None]) -> str:
    rows = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in rows)
