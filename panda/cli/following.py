"""Decides how a run that is being followed looks: a table that moves at a terminal, lines elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from panda.cli import desk, ground, printing

if TYPE_CHECKING:
    from rich.table import Table

    from panda.experiment.folder import RunFolder

SHOWN_MAX = 15
_HEAD = ("from s", "until s", "published", "delivered", "p50 ms", "p99 ms", "errors", "late lines")


def show(at: desk.Desk, folder: RunFolder, *, as_json: bool) -> None:
    """Until the run is over and everything is read; ^C leaves the run alone."""
    from panda.analysis.following import follow

    crew = ground.crew_of(folder.id)
    printing.note(f"following {folder.id}")
    following = follow(folder, crew, at.place, at.log)
    with closing(following) as windows:
        if as_json:
            for window in windows:
                printing.result(window, "", as_json=True)
        elif printing.at_terminal():
            _show_live(windows)
        else:
            for window in windows:
                printing.note(line_of(window))


def _show_live(windows: Iterable[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.live import Live

    last: deque[dict[str, Any]] = deque(maxlen=SHOWN_MAX)
    with Live(_table(last), console=Console(stderr=True), auto_refresh=False) as live:
        for window in windows:
            last.append(window)
            live.update(_table(last), refresh=True)


def _table(windows: Iterable[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(*_HEAD)
    for window in windows:
        table.add_row(*cells_of(window))
    return table


def line_of(window: dict[str, Any]) -> str:
    since, until, published, delivered, p50, p99, errors, late = cells_of(window)
    text = (
        f"{since:>8} to {until} s  published {published}, delivered {delivered}, p50 {p50} ms, p99 {p99} ms"
    )
    return (
        text
        + (f", errors {errors}" if errors != "0" else "")
        + (f", late lines {late}" if late != "0" else "")
    )


def cells_of(window: dict[str, Any]) -> tuple[str, ...]:
    span = window.get("window_s")
    since, until = span if isinstance(span, list) and len(span) == 2 else (None, None)
    counts = (window.get("published"), window.get("delivered"))
    latencies = (_ms(window.get("p50_s")), _ms(window.get("p99_s")))
    rest = (window.get("errors", 0), window.get("late_lines", 0))
    return tuple(desk.cell_text(value) or "–" for value in (since, until, *counts, *latencies, *rest))


def _ms(seconds: object) -> str:
    return f"{1000 * seconds:.1f}" if isinstance(seconds, int | float) else "–"
