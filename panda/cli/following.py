"""Decides how a run that is being followed looks: a table that moves at a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from panda.cli import desk, ground, printing

if TYPE_CHECKING:
    from rich.table import Table

    from panda.experiment.folder import RunFolder

SHOWN_MAX = 15
_HEAD = (
    "from s",
    "until s",
    "published",
    "delivered",
    "p50 ms",
    "p99 ms",
    "errors",
    "late lines",
    "bad lines",
)


def show(at: desk.Desk, folder: RunFolder, *, as_json: bool) -> None:
    """Until the run is over and everything is read; ^C leaves the run alone."""
    from panda.analysis.following import follow

    printing.note(f"following {folder.id}")
    t0 = t0_of(folder)
    with closing(follow(folder, ground.crew_of(folder.id), at.place, at.log)) as windows:
        if as_json:
            for window in windows:
                printing.result(window, "", as_json=True)
        elif printing.at_terminal():
            _show_live(windows, t0)
        else:
            for window in windows:
                if window.get("final", True):
                    printing.note(line_of(window, t0))


def t0_of(folder: RunFolder) -> float:
    """When phase 2 began, by our clock; 0 if it did not: then times are since the epoch."""
    times = [entry.get("t0") for entry in folder.journal() if entry.get("kind") == "go"]
    return float(times[0]) if times and isinstance(times[0], int | float) else 0.0


def _show_live(windows: Iterable[dict[str, Any]], t0: float) -> None:
    """A window that is told of again is shown in its place."""
    from rich.console import Console
    from rich.live import Live

    shown: dict[tuple[str, ...], tuple[str, ...]] = {}
    with Live(_table(shown.values()), console=Console(stderr=True), auto_refresh=False) as live:
        for window in windows:
            cells = cells_of(window, t0)
            shown[cells[:2]] = cells
            if len(shown) > SHOWN_MAX:
                del shown[next(iter(shown))]
            live.update(_table(shown.values()), refresh=True)


def _table(rows: Iterable[tuple[str, ...]]) -> Table:
    from rich.table import Table

    table = Table(*_HEAD)
    for cells in rows:
        table.add_row(*cells)
    return table


def line_of(window: dict[str, Any], t0: float) -> str:
    since, until, published, delivered, p50, p99, *rest = cells_of(window, t0)
    text = (
        f"{since:>8} to {until} s  published {published}, delivered {delivered}, p50 {p50} ms, p99 {p99} ms"
    )
    return text + "".join(
        f", {name} {count}" for name, count in zip(_HEAD[-3:], rest, strict=True) if count != "0"
    )


def cells_of(window: dict[str, Any], t0: float) -> tuple[str, ...]:
    span = window.get("window_s")
    times = span if isinstance(span, list) and len(span) == 2 else (None, None)
    counts = (window.get("published"), window.get("delivered"))
    latencies = (_ms(window.get("p50_s")), _ms(window.get("p99_s")))
    rest = (window.get(name, 0) for name in ("errors", "late_lines", "bad_lines"))
    return tuple(
        desk.cell_text(value) or "–"
        for value in (*(_since(time, t0) for time in times), *counts, *latencies, *rest)
    )


def _since(time: object, t0: float) -> str:
    return f"{time - t0:.1f}" if isinstance(time, int | float) else "–"


def _ms(seconds: object) -> str:
    return f"{1000 * seconds:.1f}" if isinstance(seconds, int | float) else "–"
