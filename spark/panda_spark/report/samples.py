"""Decides the figures of what brokers said of themselves over time, and of what composites detected."""

from __future__ import annotations

import math

from panda_spark.report.data import RunData, number, text
from panda_spark.report.figure import (
    HALF,
    ROWS,
    Absent,
    Datum,
    Figure,
    Spec,
    category,
    colours,
    label_limit,
    quantity,
)
from panda_spark.report.palette import LIGHT, SERIES
from panda_spark.report.timeline import AXIS_EXTENT, TimeAxis, y_axis
from panda_spark.report.words import ident, seconds, short

SERIES_MAX = 5  # brokers that have a colour; the others are grey
OTHERS_MAX = 25  # grey ones that are drawn

SAMPLED = (
    ("tables", "subscriptions", "Routing tables", "Size of a broker's table", "subscriptions"),
    ("queueing", "queueing_ms", "Queueing", "Mean time a publication waits in a broker", "ms"),
    ("matching", "matching_us", "Matching", "Mean time to find who wants a publication", "µs"),
    ("memory", "memory_mb", "Memory", "Memory of a broker", "MB"),
)


def sampled(data: RunData, axis: TimeAxis) -> list[Figure | Absent]:
    """What every broker said of itself, every few seconds."""
    return [_sampled(data, axis, *each) for each in SAMPLED]


def _sampled(
    data: RunData, axis: TimeAxis, name: str, column: str, title: str, says: str, unit: str
) -> Figure | Absent:
    points: list[tuple[str, float, float]] = []
    for row in data.rows("samples"):
        at = number(row, "at_s")
        value = number(row, column)
        if column == "memory_mb" and (memory := number(row, "memory_bytes")) is not None:
            value = memory / 1e6
        if at is not None and value is not None:
            points.append((ident(text(row, "broker")), at, value))
    if not points:
        return Absent(title, "the brokers logged no such samples")
    highest: dict[str, float] = {}
    for broker, _, value in points:
        highest[broker] = max(value, highest.get(broker, value))
    ranked = sorted(highest, key=lambda broker: (-highest[broker], broker))
    top, rest = ranked[:SERIES_MAX], ranked[SERIES_MAX:]
    drawn = {*top, *rest[:: math.ceil(len(rest) / OTHERS_MAX) or 1]}
    series = [*top, "others"] if rest else top
    rows: list[Datum] = [
        {"at_s": at, "broker": broker, "series": broker if broker in top else "others", "value": value}
        for broker, at, value in points
        if broker in drawn
    ]
    few = len(rows) <= 250
    line: Spec = {
        "data": ROWS,
        "mark": {"type": "line", "point": {"size": 10} if few else False, "strokeWidth": 1.5},
        "encoding": {
            "x": axis.x("at_s"),
            "y": quantity("value", title=None, axis=y_axis(minExtent=50, maxExtent=50)),
            "detail": category("broker"),
            "color": colours(series, [*SERIES[: len(top)], LIGHT["rest"]]),
            "opacity": {"condition": {"test": "datum.series === 'others'", "value": 0.6}, "value": 1},
            "tooltip": [category("broker"), quantity("at_s", title="at"), quantity("value", title=unit)],
        },
    }
    caption = f"{says}, in {unit}."
    if rest:
        grey = "the others" if len(drawn) == len(ranked) else f"{len(drawn) - len(top)} of the others"
        caption += f" The {len(top)} highest of {len(ranked)} are named, {grey} grey."
    return Figure(name, title, caption, axis.figure([line], rows, 170, width=HALF), rows, half=True)


def detections(data: RunData, axis: TimeAxis) -> Figure | Absent:
    title = "Composite detections"
    rows: list[Datum] = [
        {
            "at_s": at,
            "subscriber": ident(text(row, "subscriber")),
            "subscription": short(text(row, "subscription"), 60),
            "events": number(row, "events"),
            "latency": seconds(number(row, "latency_s")),
        }
        for row in data.rows("detections")
        if (at := number(row, "at_s")) is not None
    ]
    if not rows:
        return Absent(title, "there were no composite subscriptions, or none was met")
    names = {row["subscriber"] for row in rows}
    ticks: Spec = {
        "data": ROWS,
        "mark": {"type": "tick", "thickness": 2, "color": LIGHT["teal"]},
        "encoding": {
            "x": axis.x("at_s"),
            "y": category(
                "subscriber", title=None, axis=y_axis(labelLimit=label_limit(names, AXIS_EXTENT - 8))
            ),
            "tooltip": [category(each) for each in ("subscriber", "subscription", "events", "latency")],
        },
    }
    height = 30 + 22 * len(names)
    return Figure(
        "detections",
        title,
        "When a composite subscription was met.",
        axis.figure([ticks], rows, height),
        rows,
    )
