"""Every screen as it is drawn, small and large. When a change was wanted: --snapshot-update."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from panda_tui.app import PLACES
from tests.support.consoles import LoggedWatch, console_of, kept_run, run_snapshot, until

T0 = 1_000_000_000.0
SIZES = [(80, 24), (200, 60)]

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


AWAITED = {"1": "20010909", "5": "MARK", "7": "3 lines", "8": "p99"}


def text_of(pilot: Pilot[None]) -> str:
    rows = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in rows)
