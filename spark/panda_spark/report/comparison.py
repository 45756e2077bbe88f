"""Decides the figures and tables of a comparison of two groups of runs; the statistics come with the rows."""

from __future__ import annotations

from collections.abc import Callable

from panda_spark.report.data import ComparisonData, Row, count, number, text
from panda_spark.report.figure import (
    HALF,
    ROWS,
    SECONDS_LABEL,
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
from panda_spark.report.palette import LIGHT
from panda_spark.report.sentences import Headline
from panda_spark.report.tables import Cell, Column, Table, amount, octets, part, table, time, words, yes
from panda_spark.report.words import counted, digits, plain, seconds, short, size

METRICS_MAX = 40
SHARE_MAX = 10.0  # a difference of more than ten times is drawn at the edge
GROUPS = ("A", "B")
GROUP_COLOURS = (LIGHT["rest"], LIGHT["blue"])
IMPORTANT = (
    ("latency_p50_s", "Median latency"),
    ("latency_p99_s", "99 % latency"),
    ("delivered_per_s", "Deliveries per second"),
    ("lost", "Lost"),
    ("late", "Late"),
    ("records", "Records"),
)
JUDGED = {
    "better": LIGHT["teal"],
    "worse": LIGHT["red"],
    "different": LIGHT["blue"],
    "chance": LIGHT["rest"],
}


def shown(unit: str) -> Callable[[float | None], str]:
    return {"s": seconds, "bytes": size}.get(unit, plain)


def judged(row: Row) -> str:
    """What a difference is worth: better or worse only when chance does not explain it."""
    difference = number(row, "difference")
    if row.get("significant") is not True or not difference:
        return "chance"
    better = text(row, "better")
    if better not in {"lower", "higher"}:
        return "different"
    return "better" if (difference < 0) is (better == "lower") else "worse"


def headlines(data: ComparisonData) -> list[Headline]:
    if not data.metrics:
        return []
    found = [judged(row) for row in data.metrics]
    limits = [row for row in data.metrics if text(row, "threshold")]
    crossed = [row for row in limits if row.get("crossed") is not False]
    a, b = (max(count(row, f"{side}_runs") for row in data.metrics) for side in "ab")
    worse = found.count("worse")
    heads = [
        Headline("Runs", f"{digits(a)} and {digits(b)}", "in A and in B"),
        Headline(
            "Worse in B", digits(worse), f"of {counted(len(found), 'metric')}", "bad" if worse else "good"
        ),
        Headline("Better in B", digits(found.count("better")), "by more than chance explains"),
    ]
    if limits:
        note = f"of {counted(len(limits), 'threshold')} crossed or not to be told"
        heads.append(Headline("Thresholds", digits(len(crossed)), note, _state(len(crossed))))
    return heads


def _state(bad: int) -> str:
    return "bad" if bad else "good"


def intervals(data: ComparisonData) -> Figure | Absent:
    title = "B against A"
    rows: list[Datum] = []
    for row in data.metrics:
        part_ = number(row, "difference_share")
        if part_ is None:
            continue
        low, high = _relative(row, part_)
        rows.append(
            {
                "metric": short(text(row, "metric"), 40),
                "share": _bounded(part_),
                "low": _bounded(low),
                "high": _bounded(high),
                "series": judged(row),
                "difference": shown(text(row, "unit"))(number(row, "difference")),
                "p": plain(number(row, "p_value")),
            }
        )
    rows = rows[:METRICS_MAX]
    if not rows:
        return Absent(title, "no metric has a relative difference")
    names = [row["metric"] for row in rows]
    y = category("metric", sort=names, title=None, axis={"labelLimit": label_limit(names, 200)})
    x = quantity("share", title="difference of the means, with its 95 % interval", axis={"format": "+.0%"})
    used = [name for name in JUDGED if any(row["series"] == name for row in rows)]
    colour = colours(used, [JUDGED[name] for name in used])
    layers: list[Spec] = [
        {
            "data": values([{"share": 0}]),
            "mark": {"type": "rule", "color": LIGHT["soft"]},
            "encoding": {"x": x},
        },
        {
            "data": ROWS,
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "data": ROWS,
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {
                "y": y,
                "x": x,
                "color": colour,
                "tooltip": [
                    category("metric"),
                    quantity("share", format="+.1%", title="relative"),
                    quantity("low", format="+.1%", title="at least"),
                    quantity("high", format="+.1%", title="at most"),
                    category("difference"),
                    category("p"),
                ],
            },
        },
    ]
    caption = "A difference whose interval crosses zero may be chance."
    return Figure("intervals", title, caption, framed(layers, rows, 74 + 21 * len(rows)), rows)


def _relative(row: Row, share: float) -> tuple[float, float]:
    """The interval as a part of A's mean; without one, the point itself."""
    mean, low, high = number(row, "a_mean"), number(row, "difference_low"), number(row, "difference_high")
    if not mean or low is None or high is None:
        return share, share
    ends = sorted((low / abs(mean), high / abs(mean)))
    return ends[0], ends[1]


def _bounded(value: float) -> float:
    return min(max(value, -SHARE_MAX), SHARE_MAX)


def dots(data: ComparisonData) -> list[Figure | Absent]:
    """Every run as a dot, for the metrics that matter most."""
    if not data.runs:
        return [Absent("Every run", "the rows of the runs were not given")]
    return [each for name, title in IMPORTANT if (each := _dots(data, name, title)) is not None]


def _dots(data: ComparisonData, name: str, title: str) -> Figure | None:
    rows: list[Datum] = [
        {
            "series": text(row, "group").upper(),
            "run": short(text(row, "run"), 60),
            "value": value,
            "shown": seconds(value) if _is_time(name) else plain(value),
        }
        for row in data.runs
        if (value := number(row, name)) is not None and text(row, "group").upper() in GROUPS
    ]
    if not any(row["value"] for row in rows):
        return None
    label = {"labelExpr": SECONDS_LABEL} if _is_time(name) else {"format": "~s"}
    layer: Spec = {
        "mark": {"type": "point", "filled": True, "size": 64, "opacity": 0.75},
        "encoding": {
            "x": quantity(
                "value", title=None, scale={"zero": False, "padding": 12}, axis={**label, "tickCount": 5}
            ),
            "y": category("series", sort=list(GROUPS), title=None, axis={"grid": True, "labelFontSize": 12}),
            "color": {**colours(GROUPS, (LIGHT["soft"], LIGHT["blue"])), "legend": None},
            "tooltip": [category("run"), category("series", title="group"), category("shown", title=title)],
        },
    }
    mean: Spec = {
        "mark": {"type": "tick", "thickness": 2, "size": 26, "color": LIGHT["ink"]},
        "encoding": {
            "x": {"aggregate": "mean", "field": "value", "type": "quantitative"},
            "y": category("series", sort=list(GROUPS)),
        },
    }
    spec = framed([layer, mean], rows, 120, width=HALF, data=ROWS)
    return Figure(f"runs-{name}", title, "A dot for each run; the bar is the mean.", spec, rows, half=True)


def _is_time(metric: str) -> bool:
    return metric.endswith("_s") and not metric.endswith("_per_s")


def latencies(data: ComparisonData) -> Figure | Absent:
    title = "Latency of every run"
    rows: list[Datum] = [
        {
            "series": text(row, "group").upper(),
            "run": short(text(row, "run"), 60),
            "quantile": quantile,
            "latency_s": drawable(value),
        }
        for row in data.latencies
        if (quantile := number(row, "quantile")) is not None
        and (value := number(row, "latency_s")) is not None
        and text(row, "group").upper() in GROUPS
    ]
    if not rows:
        return Absent(title, "no quantiles of latencies were given")
    line: Spec = {
        "data": ROWS,
        "mark": {"type": "line", "opacity": 0.85, "interpolate": "monotone"},
        "encoding": {
            "x": log_seconds(
                "latency_s", [float(str(row["latency_s"])) for row in rows], "latency", grid=True
            ),
            "y": quantity("quantile", title="share below", axis={"format": ".0%"}, scale={"domain": [0, 1]}),
            "order": quantity("quantile"),
            "detail": category("run"),
            "color": colours(GROUPS, GROUP_COLOURS),
            "tooltip": [
                category("run"),
                category("series", title="group"),
                quantity("quantile"),
                quantity("latency_s", title="latency"),
            ],
        },
    }
    caption = "The share of deliveries that took no longer; a line for each run. Further left is faster."
    return Figure("latencies", title, caption, framed([line], rows, 300), rows)


def _in_unit(row: Row, column: str) -> Cell:
    return {"s": time, "bytes": octets}.get(text(row, "unit"), amount)(row, column)


def _interval(row: Row, side: str) -> Cell:
    low, high = (_in_unit(row, f"{side}_{end}").shown for end in ("low", "high"))
    return Cell("" if low == high == "–" else f"{low} … {high}")


def _signed_share(row: Row, column: str) -> Cell:
    cell = part(row, column)
    return Cell(f"+{cell.shown}", cell.value) if (cell.value or 0.0) > 0 else cell


def metric_table(data: ComparisonData) -> Table:
    rows: list[Row] = [{**row, "judged": judged(row)} for row in data.metrics]

    columns = (
        Column("metric", "metric"),
        Column("B", "judged"),
        Column("mean of A", "a_mean", _in_unit),
        Column("A, 95 %", "a", _interval),
        Column("mean of B", "b_mean", _in_unit),
        Column("B, 95 %", "b", _interval),
        Column("difference", "difference_share", _signed_share),
        Column("absolute", "difference", _in_unit),
        Column("p", "p_value", amount),
        Column("threshold", "threshold"),
        Column("crossed", "crossed", yes),
        Column("method", "method", words),
    )
    note = "Means with 95 % intervals. Better and worse are said only of what chance does not explain."
    return table("metrics", "All metrics", columns, rows, note, open_=True)


def run_table(data: ComparisonData) -> Table:
    columns = (
        Column("group", "group"),
        Column("run", "run"),
        Column("published", "published", amount),
        Column("delivered", "delivered", amount),
        Column("late", "late", amount),
        Column("lost", "lost", amount),
        Column("p50", "latency_p50_s", time),
        Column("p95", "latency_p95_s", time),
        Column("p99", "latency_p99_s", time),
        Column("delivered per s", "delivered_per_s", amount),
        Column("records", "records", amount),
        Column("bytes", "bytes", octets),
        Column("lasted", "duration_s", time),
    )
    return table("runs", "All runs", columns, data.runs)
