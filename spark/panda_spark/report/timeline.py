"""Decides the time axis of a run and its first figures: latency, throughput, the lives of what ran."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from panda_spark.report.data import Row, RunData, number, text
from panda_spark.report.figure import (
    ROWS,
    WIDTH,
    Absent,
    Datum,
    Figure,
    Spec,
    category,
    colours,
    drawable,
    framed,
    label_limit,
    log_seconds,
    quantity,
    values,
)
from panda_spark.report.palette import CONFIG, LEGEND, LIGHT
from panda_spark.report.sentences import named
from panda_spark.report.words import counted, ident, short

AXIS_EXTENT = 84  # left of every plot on the time axis, so that they stand exactly below each other
LABEL_ROWS = 3  # of marks and faults above the first figure
LABEL_CHARACTERS = (34, 18)  # of a label, and where there is less room
LABEL_WIDTH = 6.2  # of a character, in pixels
CROSS = "M-1,-1L1,1M1,-1L-1,1"
LIVES_MAX = 60  # rows of the lives of processes and links


def span(data: RunData) -> tuple[float, float]:
    """The time axis of all figures of a run."""
    columns = {
        "latency": ("bucket_s",),
        "throughput": ("bucket_s",),
        "faults": ("from_s", "until_s"),
        "marks": ("at_s",),
        "samples": ("at_s",),
        "processes": ("ready_s", "ended_s"),
        "links": ("from_s", "until_s"),
    }
    found = [
        value
        for table, names in columns.items()
        for row in data.rows(table)
        for name in names
        if (value := number(row, name)) is not None
    ]
    run = data.first("runs")
    found += [value for name in ("first_s", "last_s") if (value := number(run, name)) is not None]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    return low, high if high > low else low + 1.0


class TimeAxis:
    """The axis with what is drawn in every figure on it: faults as shades, marks as rules."""

    def __init__(self, data: RunData) -> None:
        self.from_s, self.until_s = span(data)
        self.faults: list[Datum] = [
            {
                "from_s": start,
                "until_s": end if (end := number(row, "until_s")) is not None else self.until_s,
                "what": named(row),
            }
            for row in data.rows("faults")
            if (start := number(row, "from_s")) is not None
        ]
        self.marks: list[Datum] = [
            {"at_s": at, "what": short(text(row, "text"), 60)}
            for row in data.rows("marks")
            if (at := number(row, "at_s")) is not None
        ]

    def x(self, field: str, **more: object) -> Spec:
        scale = {"domain": [{"expr": "from_s"}, {"expr": "until_s"}], "nice": False, "zero": False}
        axis = {
            "grid": False,
            "labelExpr": "format(datum.value, ',~r') + ' s'",
            "tickCount": 8,
            "labelFlush": True,
        }
        return quantity(field, scale=scale, axis=axis, title=None, **more)

    def figure(
        self,
        layers: Sequence[Spec],
        rows: Sequence[Datum],
        height: int,
        *,
        width: int = WIDTH,
        labels: bool = False,
    ) -> Spec:
        under: list[Spec] = []
        if self.faults:
            under.append(
                {
                    "data": values(self.faults),
                    "mark": {"type": "rect", "color": LIGHT["red"], "opacity": 0.13},
                    "encoding": {
                        "x": self.x("from_s"),
                        "x2": {"field": "until_s"},
                        "tooltip": [category("what", title="fault"), quantity("from_s"), quantity("until_s")],
                    },
                }
            )
        if self.marks:
            under.append(
                {
                    "data": values(self.marks),
                    "mark": {"type": "rule", "color": LIGHT["soft"], "strokeDash": [3, 3]},
                    "encoding": {
                        "x": self.x("at_s"),
                        "tooltip": [category("what", title="mark"), quantity("at_s")],
                    },
                }
            )
        found = self._labels() if labels else []
        if found:
            under.append(self._label_layer(found))
        above = 13 * (1 + max((int(str(row["row"])) for row in found), default=-1))
        return framed(
            [*under, *layers],
            rows,
            height + above,
            width=width,
            params=[{"name": "from_s", "value": self.from_s}, {"name": "until_s", "value": self.until_s}],
            config={**CONFIG, "legend": {**LEGEND, "offset": 6 + above}},
        )

    def _labels(self) -> list[Datum]:
        """Labels of marks and faults in rows, each in the first where it does not run into another."""
        scale = (WIDTH - AXIS_EXTENT) / (self.until_s - self.from_s)
        wanted = [(float(str(row["from_s"])), str(row["what"]), LIGHT["red"]) for row in self.faults]
        wanted += [(float(str(row["at_s"])), str(row["what"]), LIGHT["soft"]) for row in self.marks]
        ends = [float("-inf")] * LABEL_ROWS
        rows: list[Datum] = []
        for at, what, colour in sorted(wanted):
            for characters in LABEL_CHARACTERS:
                label = short(what, characters)
                left, width = (at - self.from_s) * scale, len(label) * LABEL_WIDTH
                right = left + width > WIDTH - AXIS_EXTENT
                left -= width if right else 0.0
                row = next((each for each in range(LABEL_ROWS) if ends[each] + 8 <= left), None)
                if row is not None:
                    ends[row] = left + width
                    rows.append({"at_s": at, "label": label, "row": row, "colour": colour, "right": right})
                    break
            # Without room the rule still stands there; its text is in the tooltip and in the table.
        return rows

    def _label_layer(self, rows: list[Datum]) -> Spec:
        sides: list[Spec] = []
        for right in (False, True):
            for colour in (LIGHT["red"], LIGHT["soft"]):
                some = [row for row in rows if row["right"] is right and row["colour"] == colour]
                if not some:
                    continue
                mark = {
                    "type": "text",
                    "align": "right" if right else "left",
                    "color": colour,
                    "baseline": "bottom",
                }
                sides.append(
                    {
                        "data": values([{k: v for k, v in row.items() if k != "colour"} for row in some]),
                        "transform": [{"filter": "datum.at_s >= from_s && datum.at_s <= until_s"}],
                        "mark": {**mark, "y": {"expr": "-4 - 13 * datum.row"}, "dx": -3 if right else 0},
                        "encoding": {"x": self.x("at_s"), "text": {"field": "label"}},
                    }
                )
        return {"layer": sides}


def y_axis(**more: object) -> Spec:
    return {"minExtent": AXIS_EXTENT, "maxExtent": AXIS_EXTENT, "tickCount": 4, **more}


def latency(data: RunData, axis: TimeAxis) -> Figure | Absent:
    title = "Latency over time"
    found = sorted(
        (row for row in data.latency("time") if number(row, "bucket_s") is not None),
        key=lambda row: number(row, "bucket_s") or 0.0,
    )
    found = [row for row in found if number(row, "p50_s") is not None]
    if not found:
        return Absent(title, "no delivery has a latency, so there is none to show over time")
    step = _step(found, data)
    rows: list[Datum] = []
    for before, row in zip([None, *found], found, strict=False):
        at = number(row, "bucket_s") or 0.0
        if before is not None and step and at - (number(before, "bucket_s") or 0.0) > 1.5 * step:
            # A bucket in which nothing arrived ends the line: it must not look like a measurement.
            rows += [
                {"at_s": at - step, "series": series, "shown_s": None, "latency_s": None, "count": 0}
                for series in ("p50", "p95", "p99")
            ]
        for series in ("p50", "p95", "p99"):
            value = number(row, f"{series}_s")
            shown = None if value is None else drawable(value)
            rows.append(
                {
                    "at_s": at + step / 2,
                    "series": series,
                    "shown_s": shown,
                    "latency_s": value,
                    "count": number(row, "count"),
                }
            )
    heights = [float(str(row["shown_s"])) for row in rows if row["shown_s"] is not None]
    line: Spec = {
        "data": ROWS,
        "mark": {"type": "line", "point": {"size": 14, "filled": True} if len(found) <= 150 else False},
        "encoding": {
            "x": axis.x("at_s"),
            "y": log_seconds("shown_s", heights, "", **y_axis(tickCount=None)),
            "color": colours(("p50", "p95", "p99"), (LIGHT["blue"], LIGHT["mid"], LIGHT["pale"])),
            "tooltip": [
                quantity("at_s", title="at"),
                category("series", title="quantile"),
                quantity("latency_s", title="latency"),
                quantity("count", title="deliveries"),
            ],
        },
    }
    caption = "Half of the deliveries are below p50, 95 % below p95, 99 % below p99; logarithmic."
    if axis.faults:
        caption += " Faults are shaded."
    return Figure("latency-time", title, caption, axis.figure([line], rows, 250, labels=True), rows)


def _step(found: Sequence[Row], data: RunData) -> float:
    width = number(data.first("throughput"), "width_s")
    if width:
        return width
    times = [number(row, "bucket_s") or 0.0 for row in found]
    return min((b - a for a, b in itertools.pairwise(times) if b > a), default=0.0)


def throughput(data: RunData, axis: TimeAxis) -> Figure | Absent:
    title = "Throughput over time"
    rows: list[Datum] = []
    for row in data.rows("throughput"):
        at, width = number(row, "bucket_s"), number(row, "width_s") or 1.0
        if at is None:
            continue
        for series in ("published", "delivered"):
            amount = number(row, series)
            if amount is not None:
                rows.append({"at_s": at, "series": series, "per_s": amount / width, "count": amount})
    if not any(row["count"] for row in rows):
        return Absent(title, "nothing was published or delivered")
    line: Spec = {
        "data": ROWS,
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": axis.x("at_s"),
            "y": quantity("per_s", title=None, axis=y_axis()),
            "color": colours(("published", "delivered"), (LIGHT["amber"], LIGHT["blue"])),
            "tooltip": [
                quantity("at_s", title="from"),
                category("series"),
                quantity("count"),
                quantity("per_s"),
            ],
        },
    }
    return Figure(
        "throughput", title, "Publications and deliveries a second.", axis.figure([line], rows, 170), rows
    )


def lives(data: RunData, axis: TimeAxis) -> Figure | Absent:
    title = "Processes and links"
    rows = [*_process_rows(data, axis), *_link_rows(data, axis)]
    if not rows:
        return Absent(title, "no process and no link was logged")
    troubled = {str(row["name"]) for row in rows if row["failed"] or row["series"] == "link down"}
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    kept = sorted(names, key=lambda name: name not in troubled)[:LIVES_MAX]
    order = [name for name in names if name in set(kept)]
    rows = [row for row in rows if row["name"] in set(kept)]
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "bar", "height": {"band": 0.62}, "cornerRadius": 1},
        "encoding": {
            "x": axis.x("from_s"),
            "x2": {"field": "until_s"},
            "y": category(
                "name",
                sort=order,
                title=None,
                axis=y_axis(labelLimit=label_limit(order, AXIS_EXTENT - 8, 10), grid=False, labelFontSize=10),
            ),
            "color": colours(
                ("process", "link up", "link down"),
                (LIGHT["mid"], LIGHT["rest"], LIGHT["amber"]),
            ),
            "tooltip": [
                category("name"),
                category("series", title="state"),
                quantity("from_s", title="from"),
                quantity("until_s", title="until"),
                category("why"),
            ],
        },
    }
    crosses: Spec = {
        "data": ROWS,
        "transform": [{"filter": "datum.failed"}],
        "mark": {"type": "point", "shape": CROSS, "stroke": LIGHT["red"], "strokeWidth": 2.5, "size": 90},
        "encoding": {"x": axis.x("until_s"), "y": category("name", sort=order)},
    }
    left_out = len(names) - len(order)
    caption = "From start to end; ✕ is an end that nobody asked for."
    if left_out:
        caption += f" {counted(left_out, 'line')} left out, where all was well."
    height = 30 + 15 * len(order)
    return Figure("lives", title, caption, axis.figure([bars, crosses], rows, height), rows)


def _process_rows(data: RunData, axis: TimeAxis) -> list[Datum]:
    found = sorted(
        data.rows("processes"),
        key=lambda row: (
            text(row, "role") != "broker",
            number(row, "started_s") or 0.0,
            text(row, "process"),
        ),
    )
    rows: list[Datum] = []
    for row in found:
        start = number(row, "started_s")
        if start is None:
            continue
        end = number(row, "ended_s")
        failed = end is not None and row.get("expected") is False
        code, signal = text(row, "code"), text(row, "signal")
        why = f"ended by {signal}" if signal else f"ended with {code}" if code else ""
        rows.append(
            {
                "name": ident(text(row, "process")),
                "series": "process",
                "failed": failed,
                "from_s": max(start, axis.from_s),
                "until_s": axis.until_s if end is None else end,
                "why": why,
            }
        )
    return rows


def _link_rows(data: RunData, axis: TimeAxis) -> list[Datum]:
    found = sorted(
        data.rows("links"), key=lambda row: (text(row, "a"), text(row, "b"), number(row, "from_s") or 0.0)
    )
    rows: list[Datum] = []
    for row in found:
        start = number(row, "from_s")
        if start is None:
            continue
        end = number(row, "until_s")
        down = text(row, "state") == "down"
        rows.append(
            {
                "name": f"{ident(text(row, 'a'), 20)}–{ident(text(row, 'b'), 20)}",
                "series": "link down" if down else "link up",
                "failed": False,
                "from_s": max(start, axis.from_s),
                "until_s": axis.until_s if end is None else end,
                "why": short(text(row, "reason")),
            }
        )
    return rows
