"""Decides the figures of how values spread: latencies, verdicts, hops, the schedule, clocks and faults."""

from __future__ import annotations

import math
from collections import Counter

from panda_spark.report.data import RunData, count, number, text
from panda_spark.report.figure import (
    FLOOR_S,
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
from panda_spark.report.palette import LIGHT, SERIES, VERDICTS
from panda_spark.report.sentences import named
from panda_spark.report.words import counted, digits, ident, seconds, short

KEYS_MAX = 12  # classes, subscribers, brokers in one figure; the table has the others
LABELS = 150  # pixels of names left of a row
ROW = 22  # pixels of a row


def histogram(data: RunData) -> Figure | Absent:
    title = "How long deliveries took"
    rows: list[Datum] = []
    for row in data.rows("histogram"):
        low, high, amount = number(row, "lower_s"), number(row, "upper_s"), count(row, "count")
        if high is None or not amount or high <= FLOOR_S:
            continue
        rows.append({"lower_s": drawable(low or 0.0), "upper_s": drawable(high), "count": amount})
    if not rows:
        return Absent(title, "no delivery has a latency")
    edges = [float(str(row[side])) for row in rows for side in ("lower_s", "upper_s")]
    x = log_seconds("lower_s", edges, "latency", grid=False)
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "rect", "color": LIGHT["mid"], "stroke": LIGHT["ground"], "strokeWidth": 1},
        "encoding": {
            "x": x,
            "x2": {"field": "upper_s"},
            "y": quantity("count", title="deliveries", axis={"tickCount": 4}),
            "y2": {"datum": 0},
            "tooltip": [
                quantity("lower_s", title="from"),
                quantity("upper_s", title="to"),
                quantity("count", title="deliveries"),
            ],
        },
    }
    summary = data.first("summary")
    lines: list[Datum] = [
        {"latency_s": value, "label": f"{name} {seconds(value)}"}
        for name in ("p50", "p95", "p99")
        if (value := number(summary, f"latency_{name}_s")) is not None and value > FLOOR_S
    ]
    layers = [bars]
    if lines:
        place = {"x": {**x, "field": "latency_s"}}
        layers.append(
            {"data": values(lines), "mark": {"type": "rule", "color": LIGHT["ink"]}, "encoding": place}
        )
        for step, line in enumerate(lines):
            mark = {"type": "text", "align": "left", "dx": 4, "y": 8 + 14 * step, "fontWeight": "bold"}
            layers.append(
                {"data": values([line]), "mark": mark, "encoding": {**place, "text": {"field": "label"}}}
            )
    return Figure(
        "latency-distribution",
        title,
        "Logarithmic, in tenths of a decade; the rules are the quantiles of all deliveries.",
        framed(layers, rows, 240, width=HALF),
        rows,
        half=True,
    )


def percentiles(data: RunData, by: str) -> Figure | Absent:
    title = f"Latency by {by}"
    found = [row for row in data.latency(by) if number(row, "p50_s") is not None]
    if not found:
        return Absent(title, f"no delivery with a latency is known by {by}")
    found = sorted(found, key=lambda row: (-(number(row, "p99_s") or 0.0), text(row, "key")))
    rows: list[Datum] = [
        {
            "key": ident(text(row, "key")) or "(none)",
            **{f"{each}_s": drawable(number(row, f"{each}_s") or 0.0) for each in ("p50", "p95", "p99")},
            "count": number(row, "count"),
        }
        for row in found[:KEYS_MAX]
    ]
    edges = [float(str(row[f"{each}_s"])) for row in rows for each in ("p50", "p95", "p99")]
    names = [row["key"] for row in rows]
    y = category(
        "key", sort=names, title=None, axis={"labelLimit": label_limit(names, LABELS), "grid": False}
    )
    x = log_seconds("p50_s", edges, "")
    tooltip = [
        category("key", title=by),
        *(quantity(f"{each}_s", title=each) for each in ("p50", "p95", "p99")),
        quantity("count", title="deliveries"),
    ]
    rule: Spec = {
        "mark": {"type": "rule", "color": LIGHT["pale"], "strokeWidth": 3},
        "encoding": {"y": y, "x": x, "x2": {"field": "p99_s"}, "tooltip": tooltip},
    }
    dots: list[Spec] = [
        {
            "transform": [{"calculate": f"'{each}'", "as": "series"}],
            "mark": {"type": "point", "filled": True, "size": 62, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {**x, "field": f"{each}_s"},
                "color": colours(("p50", "p95", "p99"), (LIGHT["blue"], LIGHT["mid"], LIGHT["pale"])),
                "tooltip": tooltip,
            },
        }
        for each in ("p99", "p95", "p50")
    ]
    more = len(found) - len(rows)
    caption = "Slowest first." + (f" {digits(more)} more in the table." if more else "")
    spec = framed([rule, *dots], rows, 62 + ROW * len(rows), width=HALF, data=ROWS)
    return Figure(f"latency-{by}", title, caption, spec, rows, half=True)


def verdicts(data: RunData, by: str) -> Figure | Absent:
    """What went wrong per subscriber or class; those with the greatest part of it first."""
    title = f"Flaws by {by}"
    found: dict[str, Counter[str]] = {}
    for row in data.rows("verdicts"):
        key = ident(text(row, by)) or "(none)"
        verdict = text(row, "verdict")
        found.setdefault(key, Counter())[verdict if verdict in VERDICTS else "unknown"] += count(row, "count")
    found = {key: amounts for key, amounts in found.items() if amounts.total()}
    if not found:
        return Absent(title, "no publication met a subscription")
    flawed = {key: 1 - each["delivered"] / each.total() for key, each in found.items()}
    ranked = sorted((key for key in found if flawed[key]), key=lambda key: (-flawed[key], key))
    if not ranked:
        return Absent(title, "every delivery came once, in order and in time")
    kept = ranked[:KEYS_MAX]
    rows: list[Datum] = [
        {
            "key": key,
            "series": verdict,
            "order": place,
            "count": found[key][verdict],
            "share": found[key][verdict] / found[key].total(),
        }
        for key in kept
        for place, verdict in enumerate(VERDICTS)
        if verdict != "delivered" and found[key][verdict]
    ]
    used = [verdict for verdict in VERDICTS if any(row["series"] == verdict for row in rows)]
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "bar", "height": {"band": 0.7}},
        "encoding": {
            "y": category("key", sort=kept, title=None, axis={"labelLimit": label_limit(kept, LABELS)}),
            "x": quantity("share", title=None, stack="zero", axis={"format": "~%", "tickCount": 5}),
            "color": colours(used, [VERDICTS[verdict] for verdict in used]),
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [
                category("key", title=by),
                category("series", title="verdict"),
                quantity("count"),
                quantity("share", format=".2%"),
            ],
        },
    }
    caption = "Share of what each should have got, or did get, that was not once, in order and in time."
    if good := len(found) - len(ranked):
        caption += f" {digits(good)} more {'has' if good == 1 else 'have'} no flaw."
    if (more := len(ranked) - KEYS_MAX) > 0:
        caption += f" {digits(more)} more in the table."
    height = 62 + ROW * min(len(ranked), KEYS_MAX)
    spec = framed([bars], rows, height, width=HALF)
    return Figure(f"verdicts-{by}", title, caption, spec, rows, half=True)


def hops(data: RunData) -> Figure | Absent:
    title = "Brokers on the way"
    amounts: Counter[int] = Counter()
    for row in data.rows("hops"):
        if number(row, "hops") is not None:
            amounts[count(row, "hops")] += count(row, "count")
    if not amounts.total():
        return Absent(title, "no delivery was logged with its hops")
    rows: list[Datum] = [{"hops": each, "count": amounts[each]} for each in sorted(amounts)]
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "bar", "color": LIGHT["mid"], "width": {"band": 0.7}},
        "encoding": {
            "x": {"field": "hops", "type": "ordinal", "title": "hops", "axis": {"labelAngle": 0}},
            "y": quantity("count", title="deliveries", axis={"tickCount": 4}),
            "tooltip": [quantity("hops"), quantity("count", title="deliveries")],
        },
    }
    mean = sum(each * amount for each, amount in amounts.items()) / amounts.total()
    return Figure(
        "hops", title, f"{digits(mean)} in the mean.", framed([bars], rows, 240, width=HALF), rows, half=True
    )


def schedule(data: RunData) -> Figure | Absent:
    title = "How late each step was"
    rows: list[Datum] = [
        {
            "planned_s": planned,
            "late_s": late,
            "error_s": number(row, "error_s") or 0.0,
            "low_s": late - (number(row, "error_s") or 0.0),
            "high_s": late + (number(row, "error_s") or 0.0),
            "series": short(text(row, "action"), 20).upper() or "(none)",
            "what": short(text(row, "text") or text(row, "process"), 60),
        }
        for row in data.rows("schedule")
        if (planned := number(row, "planned_s")) is not None and (late := number(row, "late_s")) is not None
    ]
    if not rows:
        return Absent(title, "no step of the schedule has both a planned and an actual time")
    rows.sort(key=lambda row: (float(str(row["planned_s"])), str(row["what"])))
    actions = sorted({str(row["series"]) for row in rows})[: len(SERIES)]
    y = quantity("late_s", title="late", axis={"labelExpr": SECONDS_LABEL, "tickCount": 5})
    x = quantity(
        "planned_s", title="planned", axis={"labelExpr": SECONDS_LABEL, "grid": False}, scale={"zero": False}
    )
    whisker: Spec = {
        "mark": {"type": "rule", "color": LIGHT["line"]},
        "encoding": {"x": x, "y": {**y, "field": "low_s"}, "y2": {"field": "high_s"}},
    }
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 0.85},
        "encoding": {
            "x": x,
            "y": y,
            "color": colours(actions, SERIES[: len(actions)]),
            "tooltip": [
                category("what", title="step"),
                category("series", title="action"),
                quantity("planned_s", title="planned"),
                quantity("late_s", title="late"),
                quantity("error_s", title="clock ±"),
            ],
        },
    }
    delays = sorted(float(str(row["late_s"])) for row in rows)
    half, p99 = delays[(len(delays) - 1) // 2], delays[math.ceil(0.99 * len(delays)) - 1]
    caption = (
        f"Actual less planned start of {counted(len(delays), 'step')}: half within {seconds(half)}, "
        f"99 % within {seconds(p99)}; whiskers are what the clocks may be wrong by."
    )
    return Figure(
        "schedule", title, caption, framed([whisker, dots], rows, 230, width=HALF, data=ROWS), rows, half=True
    )


def clocks(data: RunData) -> Figure | Absent:
    title = "Clocks of the hosts"
    rows: list[Datum] = []
    for row in data.rows("clocks"):
        at, offset = number(row, "at_s"), number(row, "offset_s")
        if at is None or offset is None:
            continue
        error = number(row, "error_s") or 0.0
        rows.append(
            {
                "at_s": at,
                "host": ident(text(row, "host")),
                "offset_s": offset,
                "low_s": offset - error,
                "high_s": offset + error,
            }
        )
    if not rows:
        return Absent(title, "no clock was measured: times are as the hosts wrote them")
    hosts = sorted({str(row["host"]) for row in rows})
    named_hosts = hosts[: len(SERIES)] if len(hosts) <= len(SERIES) else []
    colour: Spec = {"color": {"value": LIGHT["blue"]}}
    if named_hosts:
        palette = {"domain": named_hosts, "range": list(SERIES[: len(named_hosts)])}
        colour = {"color": category("host", scale=palette, title=None)}
    x = quantity("at_s", title=None, axis={"labelExpr": SECONDS_LABEL, "grid": False}, scale={"zero": False})
    y = quantity("offset_s", title="offset", axis={"labelExpr": SECONDS_LABEL, "tickCount": 5})
    tooltip = [
        category("host"),
        quantity("at_s", title="at"),
        quantity("offset_s", title="offset"),
        quantity("low_s", title="at least"),
        quantity("high_s", title="at most"),
    ]
    whisker: Spec = {
        "mark": {"type": "rule", "opacity": 0.5, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": {**y, "field": "low_s"}, "y2": {"field": "high_s"}, **colour},
    }
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 34, "opacity": 1},
        "encoding": {"x": x, "y": y, "tooltip": tooltip, **colour},
    }
    caption = "Offset from the controller's clock as measured during the run, with what it may be wrong by."
    return Figure(
        "clocks", title, caption, framed([dots, whisker], rows, 210, width=HALF, data=ROWS), rows, half=True
    )


def faults(data: RunData) -> Figure | Absent:
    """How long each fault lasted, the silence it made and how long that outlived it."""
    title = "Faults and their silences"
    if not data.rows("faults"):
        return Absent(title, "no fault was injected")
    rows: list[Datum] = []
    order: list[str] = []
    for place, row in enumerate(data.rows("faults")[: 2 * KEYS_MAX], start=1):
        key = f"{place}  {short(named(row), 40)}"
        order.append(key)
        start, end = number(row, "from_s"), number(row, "until_s")
        lasted = end - start if start is not None and end is not None else None
        for series, value in (
            ("it lasted", lasted),
            ("longest silence", number(row, "gap_s")),
            ("until recovered", number(row, "recover_s")),
        ):
            if value is not None:
                rows.append({"key": key, "series": series, "seconds": value})
    if not rows:
        return Absent(title, "nothing could be measured of the faults")
    names = ("it lasted", "longest silence", "until recovered")
    labels = {"labelLimit": label_limit(order, 240), "grid": False}
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "bar", "height": {"band": 0.85}},
        "encoding": {
            "y": category("key", sort=order, title=None, axis=labels),
            "yOffset": {"field": "series", "sort": list(names)},
            "x": quantity("seconds", title=None, axis={"labelExpr": SECONDS_LABEL, "tickCount": 6}),
            "color": colours(names, (LIGHT["rest"], LIGHT["red"], LIGHT["amber"])),
            "tooltip": [
                category("key", title="fault"),
                category("series", title="time"),
                quantity("seconds"),
            ],
        },
    }
    return Figure("faults", title, "", framed([bars], rows, 62 + 40 * len(order)), rows)
