"""Decides what a figure is and the parts that all of them share; draws nothing itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from panda_spark.report.palette import CONFIG, LABEL_FONT, LEGEND_LABEL

Spec = dict[str, Any]
Datum = dict[str, object]

WIDTH, HALF = 1040, 508  # of the static picture; in the page a figure is as wide as its column
FLOOR_S = 1e-5  # a logarithmic axis has no zero: shorter times, and those below it, are drawn here
CEILING_S = 1e6  # and longer ones here, for nobody measured them
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

# Axis labels come as seconds and read as 5 ms; the backtick-free expression is ours, never a log's.
SECONDS_LABEL = (
    "datum.value == 0 ? '0' : abs(datum.value) < 0.000999 ? format(datum.value * 1e6, '~r') + ' µs' : "
    "abs(datum.value) < 0.999 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value, ',~r') + ' s'"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its data. `caption` says what to see."""

    name: str
    title: str
    caption: str
    spec: Spec
    rows: Sequence[Datum]
    half: bool = False  # stands beside another
    fixed: bool = False  # keeps its width in the page, and scrolls where there is less room


@dataclass(frozen=True, slots=True)
class Absent:
    """Why a figure is not there."""

    title: str
    why: str


ROWS: Spec = {"name": "rows"}  # the data of a figure, as its layers refer to it


def framed(
    layers: Sequence[Spec], rows: Sequence[Datum], height: int, *, width: int = WIDTH, **more: object
) -> Spec:
    """Layers and the rows they show as a whole specification."""
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": {"left": 4, "right": 14, "top": 6, "bottom": 4},
        "config": CONFIG,
        **more,
        "datasets": {"rows": [lean(row) for row in rows]},
        "layer": list(layers),
    }


def lean(row: Datum) -> Datum:
    """A row with seven digits to a number: more cannot be seen, and pages are sent by mail."""
    return {key: float(f"{value:.7g}") if isinstance(value, float) else value for key, value in row.items()}


def values(rows: Sequence[Datum]) -> Spec:
    """Data that stand beside those of the figure."""
    return {"values": [lean(row) for row in rows]}


def quantity(field: str, **more: object) -> Spec:
    return {"field": field, "type": "quantitative", **more}


def category(field: str, **more: object) -> Spec:
    return {"field": field, "type": "nominal", **more}


def colours(names: Sequence[str], range_: Sequence[str]) -> Spec:
    """A colour for each name, in this order, with a legend."""
    return category(
        "series",
        scale={"domain": list(names), "range": list(range_)},
        title=None,
        legend={"labelLimit": label_limit(names, LEGEND_LABEL)},
    )


def label_limit(names: Iterable[object], pixels: int, font: int = LABEL_FONT) -> int:
    """Beyond how many pixels a label is cut: 0, which is never, where none of these can be so wide.

    A label that has a limit is measured once more at every step, and measuring is most of the work.
    """
    widest = max((sum(map(_ems, str(name))) for name in names), default=0.0)
    return 0 if widest * font < pixels else pixels


def _ems(character: str) -> float:
    """At least the width of a character in the fonts that readers may have, in heights of the font."""
    if not character.isascii() and character not in "–…":
        return 16.0  # some are as wide as a sentence
    return 1.05 if character in "mwMWQ@%&–…" else 0.88


def drawable(value_s: float) -> float:
    """A time where a logarithmic axis can show it."""
    return min(max(value_s, FLOOR_S), CEILING_S)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 10, 100, or 1, 2, 5, 10 where the axis spans little."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def log_domain(found: Sequence[float]) -> tuple[float, float]:
    """An axis around positive values that is at least a decade long."""
    low, high = drawable(min(found)) / 1.25, drawable(max(found)) * 1.25
    while high / low < 10:
        low, high = low / 1.4, high * 1.4
    return low, high


def log_seconds(field: str, found: Sequence[float], title: str, **axis: object) -> Spec:
    low, high = log_domain(found)
    return quantity(
        field,
        title=title,
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"values": log_ticks(low, high), "labelExpr": SECONDS_LABEL, **axis},
    )
