"""Decides how a figure of the report is drawn in a terminal: which columns are axes, lines and bars.

A figure is the CSV that the report keeps beside its picture, so both show the same numbers.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from panda_tui.escaping import one_line

ROWS_MAX = 20_000
SERIES_MAX = 6
BARS_MAX = 20
CELL_CHARACTERS_MAX = 40
X_AXES = ("at_s", "planned_s")
SERIES = ("series", "host", "broker")
VALUES = ("latency_s", "per_s", "value", "offset_s", "late_s")
UNITS = {
    "latency_s": "s",
    "per_s": "per second",
    "offset_s": "s",
    "late_s": "s",
    "seconds": "s",
    "count": "how many",
}


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over the seconds since phase 2 began."""

    unit: str
    series: dict[str, tuple[list[float], list[float]]]


@dataclass(frozen=True, slots=True)
class Bars:
    unit: str
    names: list[str]
    values: dict[str, list[float]]  # by what is measured


@dataclass(frozen=True, slots=True)
class Table:
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)


Chart = Lines | Bars | Table


def figures_of(run: Path) -> list[Path]:
    """Those that the report of this run has, by name."""
    return sorted((run / "report" / "figures").glob("*.csv"))


def read_chart(path: Path) -> Chart:
    """OSError when the file cannot be read; whatever is in it, there is a chart of it."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = [row for _, row in zip(range(ROWS_MAX), csv.reader(file), strict=False)]
    if not rows:
        return Table([])
    head, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    return _lines(head, body) or _bars(head, body) or _table(head, body)


def _lines(head: list[str], body: list[list[str]]) -> Lines | None:
    x = next((name for name in X_AXES if name in head), "")
    value = next((name for name in VALUES if name in head), "")
    if not x or not value:
        return None
    name = next((each for each in SERIES if each in head), "")
    at, of, by = head.index(x), head.index(value), head.index(name) if name else -1
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in body:
        try:
            where, what = float(row[at]), float(row[of])
        except ValueError:
            continue
        xs, ys = series.setdefault(_cell(row[by]) if by >= 0 else value, ([], []))
        xs.append(where)
        ys.append(what)
    if len(series) > SERIES_MAX:  # those that go highest
        largest = sorted(series, key=lambda each: -max(series[each][1]))[:SERIES_MAX]
        series = {each: series[each] for each in largest}
    return Lines(UNITS.get(value, ""), series) if series else None


def _bars(head: list[str], body: list[list[str]]) -> Bars | None:
    if head[:2] == ["lower_s", "upper_s"]:
        made = [(f"{1000 * float(row[0]):.3g} ms", float(row[2])) for row in body if _numbers(row[:3])]
        return Bars("how many", [name for name, _ in made], {"": [value for _, value in made]})
    if head[:3] == ["key", "series", "order"] or head[:2] == ["key", "series"]:
        measure = "count" if "count" in head else head[2]
        at = head.index(measure)
        names = list(dict.fromkeys(_cell(row[0]) for row in body))[:BARS_MAX]
        kinds = list(dict.fromkeys(_cell(row[1]) for row in body))
        found = {(_cell(row[0]), _cell(row[1])): float(row[at]) for row in body if _numbers([row[at]])}
        values = {kind: [found.get((name, kind), 0.0) for name in names] for kind in kinds}
        return Bars(UNITS.get(measure, measure), names, values) if names else None
    if head[0] in ("key", "hops", "broker") and "link" not in head:
        measures: list[str] = [name for name in ("p50_s", "p99_s") if name in head] or [head[1]]
        fitting = [row for row in body if _numbers([row[head.index(each)] for each in measures])][:BARS_MAX]
        values = {each: [float(row[head.index(each)]) for row in fitting] for each in measures}
        unit = "s" if measures[0].endswith("_s") else UNITS.get(measures[0], measures[0])
        return Bars(unit, [_cell(row[0]) for row in fitting], values) if fitting else None
    return None


def _table(head: list[str], body: list[list[str]]) -> Table:
    return Table([_cell(each) for each in head], [[_cell(each) for each in row] for row in body])


def _numbers(texts: list[str]) -> bool:
    try:
        for text in texts:
            float(text)
    except ValueError:
        return False
    return True


def _cell(text: str) -> str:
    return one_line(text)[:CELL_CHARACTERS_MAX]
