"""Decides the picture of the overlay and the load on its brokers; the same rows give the same layout."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from panda_spark.report.data import RunData, count, number, text
from panda_spark.report.figure import (
    ROWS,
    Absent,
    Datum,
    Figure,
    Spec,
    category,
    framed,
    label_limit,
    quantity,
    values,
)
from panda_spark.report.layout import laid_out
from panda_spark.report.palette import HEAT, LIGHT
from panda_spark.report.words import counted, digits, ident, plain, share

WIDE, HIGH, MARGIN = 1040, 600, 62  # of the picture, in pixels; it is lower where there are few brokers
BROKERS_MAX = 150  # beyond this the picture says nothing
CLIENTS_MAX = 60  # beyond this clients are numbers beside their brokers
LABEL_HIGH, LETTER_WIDE = 11.0, 6.0


@dataclass(slots=True)
class Overlay:
    """Brokers, what they carried, and the links between them."""

    records: Counter[str] = field(default_factory=Counter)
    links: Counter[tuple[str, str]] = field(default_factory=Counter)
    clients: Counter[tuple[str, str]] = field(default_factory=Counter)  # (broker, client)


def overlay(data: RunData) -> Overlay:
    found = Overlay()
    for row in data.rows("load"):
        found.records[text(row, "broker")] += count(row, "records_in") + count(row, "records_out")
    known = bool(found.records)
    for row in data.rows("links"):
        a, b = sorted((text(row, "a"), text(row, "b")))
        if a and b and a != b:
            found.links[a, b] += 0
    for row in data.rows("traffic"):
        broker, peer = text(row, "broker"), text(row, "peer")
        amount = count(row, "records_in") + count(row, "records_out")
        if not known:
            found.records[broker] += amount
        if text(row, "role") == "client":
            found.clients[broker, peer] += amount
        elif broker and peer and broker != peer:
            a, b = sorted((broker, peer))
            # Both ends count the same records; where one's log is missing the other tells.
            found.links[a, b] = max(found.links[a, b], amount)
    for ends in found.links:
        for end in ends:
            found.records[end] += 0
    return found


def topology(data: RunData) -> Figure | Absent:
    title = "Traffic on the overlay"
    net = overlay(data)
    brokers = sorted(net.records)
    if not brokers:
        return Absent(title, "no broker's traffic was logged")
    if len(brokers) > BROKERS_MAX:
        return Absent(title, f"{len(brokers)} brokers are too many for a picture; the table has their loads")
    high = _height(brokers, net)
    places = _places(brokers, net, high)
    shown_clients = sorted(net.clients) if len(net.clients) <= CLIENTS_MAX else []
    clients = _client_places(shown_clients, places, net, high)
    nodes = _nodes(brokers, places, net, counted_clients=not shown_clients)
    edges = [
        {
            "x": places[a][0],
            "y": places[a][1],
            "x2": places[b][0],
            "y2": places[b][1],
            "link": f"{ident(a)}–{ident(b)}",
            "records": amount,
        }
        for (a, b), amount in sorted(net.links.items())
    ]
    rows: list[Datum] = [{key: node[key] for key in ("broker", "records", "clients")} for node in nodes]
    rows += [{"link": edge["link"], "records": edge["records"]} for edge in edges]
    spec = framed(
        [
            *_client_layers(clients, places),
            *_edge_layers(edges),
            *_node_layers(nodes),
            *_label_layers(nodes, edges, clients, high),
        ],
        rows,
        high,
        width=WIDE,
        padding=0,
        autosize="none",
    )
    caption = "Size and colour of a broker: the records it took in and sent. Width of a link: records on it."
    if net.clients and not shown_clients:
        caption += f" + n: its clients, {digits(len(net.clients))} in all."
    return Figure("topology", title, caption, spec, rows, fixed=True)


def _height(brokers: list[str], net: Overlay) -> int:
    """As much as the brokers need: a chain lies in a strip."""
    branches = any(degree > 2 for degree in Counter(end for ends in net.links for end in ends).values())
    return min(HIGH, 200 + 36 * len(brokers)) if branches or len(net.links) >= len(brokers) else 220


def _places(brokers: list[str], net: Overlay, high: int) -> dict[str, tuple[float, float]]:
    if len(brokers) == 1:
        return {brokers[0]: (WIDE / 2, high / 2)}
    return _fitted(laid_out(brokers, sorted(net.links)), high)


def _fitted(raw: dict[str, tuple[float, float]], room: int) -> dict[str, tuple[float, float]]:
    """The layout turned so that its long side lies, and stretched to the picture."""
    middle_x = sum(x for x, _ in raw.values()) / len(raw)
    middle_y = sum(y for _, y in raw.values()) / len(raw)
    xx = sum((x - middle_x) ** 2 for x, _ in raw.values())
    yy = sum((y - middle_y) ** 2 for _, y in raw.values())
    xy = sum((x - middle_x) * (y - middle_y) for x, y in raw.values())
    angle = 0.5 * math.atan2(2 * xy, xx - yy)
    cos, sin = math.cos(-angle), math.sin(-angle)
    turned = {name: (x * cos - y * sin, x * sin + y * cos) for name, (x, y) in raw.items()}
    xs, ys = [x for x, _ in turned.values()], [y for _, y in turned.values()]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    by_x = (WIDE - 2 * MARGIN - 40) / wide if wide > 1e-6 else 0.0
    by_y = (room - 2 * MARGIN) / high if high > 0.02 * wide else 0.0
    return {
        name: (
            round(WIDE / 2 + (x - (max(xs) + min(xs)) / 2) * by_x, 1),
            round(room / 2 + (y - (max(ys) + min(ys)) / 2) * by_y, 1),
        )
        for name, (x, y) in turned.items()
    }


def _client_places(
    shown: list[tuple[str, str]], places: dict[str, tuple[float, float]], net: Overlay, high: int
) -> list[Datum]:
    """Clients on an arc around their broker, on the side where it has no links."""
    rows: list[Datum] = []
    for broker in sorted({each for each, _ in shown}):
        if broker not in places:
            continue
        own = [client for each, client in shown if each == broker]
        x, y = places[broker]
        towards = [b if a == broker else a for a, b in net.links if broker in {a, b}]
        pull_x = sum(places[each][0] - x for each in towards)
        pull_y = sum(places[each][1] - y for each in towards)
        away = math.atan2(-pull_y, -pull_x) if abs(pull_x) + abs(pull_y) > 1 else math.pi / 2
        step = min(0.62, 2 * math.pi / max(len(own), 1))
        for place, client in enumerate(own):
            turn = away + (place - (len(own) - 1) / 2) * step
            rows.append(
                {
                    "x": round(min(max(x + 40 * math.cos(turn), 8), WIDE - 8), 1),
                    "y": round(min(max(y + 40 * math.sin(turn), 8), high - 8), 1),
                    "client": ident(client),
                    "broker": broker,
                    "records": net.clients[broker, client],
                }
            )
    return rows


def _nodes(
    brokers: list[str], places: dict[str, tuple[float, float]], net: Overlay, *, counted_clients: bool
) -> list[Datum]:
    most = max(net.records.values()) or 1
    own = Counter(broker for broker, _ in net.clients)
    scale = 1.0 if len(brokers) <= 30 else 0.55
    nodes: list[Datum] = []
    for broker in brokers:
        part = net.records[broker] / most
        note = f" +{own[broker]}" if counted_clients and own[broker] else ""
        nodes.append(
            {
                "x": places[broker][0],
                "y": places[broker][1],
                "broker": ident(broker),
                "label": ident(broker, 16) + note,
                "records": net.records[broker],
                "clients": own[broker],
                "radius": round(scale * (7 + 13 * math.sqrt(part)), 1),
                "heat": HEAT[min(int(part * len(HEAT)), len(HEAT) - 1)],
            }
        )
    return nodes


def _at(**more: object) -> Spec:
    """Places are pixels already, so the scales do nothing."""
    return {
        "x": quantity("x", scale={"domain": [0, WIDE], "range": [0, WIDE], "nice": False}, axis=None),
        "y": quantity("y", scale={"domain": [0, HIGH], "range": [0, HIGH], "nice": False}, axis=None),
        **more,
    }


def _client_layers(clients: list[Datum], places: dict[str, tuple[float, float]]) -> list[Spec]:
    if not clients:
        return []
    spokes = [
        {**row, "x2": places[str(row["broker"])][0], "y2": places[str(row["broker"])][1]} for row in clients
    ]
    tooltip = [category("client"), category("broker"), quantity("records")]
    return [
        {
            "data": values(spokes),
            "mark": {"type": "rule", "color": LIGHT["line"]},
            "encoding": _at(x2={"field": "x2"}, y2={"field": "y2"}),
        },
        {
            "data": values(
                [{key: value for key, value in row.items() if key not in {"x2", "y2"}} for row in clients]
            ),
            "mark": {"type": "point", "filled": True, "size": 38, "color": LIGHT["amber"], "opacity": 1},
            "encoding": _at(tooltip=tooltip),
        },
    ]


def _edge_layers(edges: list[Datum]) -> list[Spec]:
    if not edges:
        return []
    return [
        {
            "data": values(edges),
            "mark": {"type": "rule", "color": LIGHT["rest"], "strokeCap": "round"},
            "encoding": _at(
                x2={"field": "x2"},
                y2={"field": "y2"},
                strokeWidth=quantity("records", scale={"type": "sqrt", "range": [1, 9]}, legend=None),
                tooltip=[category("link"), quantity("records")],
            ),
        }
    ]


def _node_layers(nodes: list[Datum]) -> list[Spec]:
    layers: list[Spec] = []
    for colour in HEAT:
        some = [
            {key: value for key, value in node.items() if key != "heat"}
            for node in nodes
            if node["heat"] == colour
        ]
        if some:
            layers.append(
                {
                    "data": values(some),
                    "mark": {
                        "type": "point",
                        "shape": "circle",
                        "fill": colour,
                        "stroke": LIGHT["blue"],
                        "strokeWidth": 1.2,
                        "opacity": 1,
                        "size": {"expr": "4 * datum.radius * datum.radius"},
                    },
                    "encoding": _at(tooltip=[category("broker"), quantity("records"), quantity("clients")]),
                }
            )
    return layers


Box = tuple[float, float, float, float]


def _label_layers(nodes: list[Datum], edges: list[Datum], clients: list[Datum], high: int) -> list[Spec]:
    """A label below, above, right or left of its node: where it hides least. The busiest choose first."""
    taken: list[Box] = [_round_box(node, float(str(node["radius"]))) for node in nodes]
    taken += [_round_box(client, 5.0) for client in clients]
    strokes = _strokes(edges)
    rows: list[Datum] = []
    wanting = [(node, str(node["label"]), float(str(node["radius"])), LIGHT["ink"]) for node in nodes]
    wanting.sort(key=lambda each: (-int(str(each[0]["records"])), each[1]))
    if len(clients) <= 24:
        wanting += [(client, ident(str(client["client"]), 14), 5.0, LIGHT["soft"]) for client in clients]
    for node, label, radius, colour in wanting:
        x, y = float(str(node["x"])), float(str(node["y"]))
        wide = len(label) * LETTER_WIDE
        spots = [
            (x, y + radius + 9),
            (x, y - radius - 8),
            (x + radius + 4 + wide / 2, y),
            (x - radius - 4 - wide / 2, y),
        ]
        boxes = [(cx - wide / 2, cy - LABEL_HIGH / 2, cx + wide / 2, cy + LABEL_HIGH / 2) for cx, cy in spots]
        costs = [_hidden(box, taken, strokes, high) for box in boxes]
        best = costs.index(min(costs))
        taken.append(boxes[best])
        rows.append(
            {"x": round(spots[best][0], 1), "y": round(spots[best][1], 1), "label": label, "colour": colour}
        )
    return [
        {
            "data": values(
                [{key: row[key] for key in ("x", "y", "label")} for row in rows if row["colour"] == colour]
            ),
            "mark": {
                "type": "text",
                "color": colour,
                "fontSize": 11 if len(nodes) <= 40 else 9,
                "fontWeight": "bold" if colour == LIGHT["ink"] and len(nodes) <= 40 else "normal",
            },
            "encoding": _at(text={"field": "label"}),
        }
        for colour in (LIGHT["ink"], LIGHT["soft"])
        if any(row["colour"] == colour for row in rows)
    ]


def _round_box(node: Datum, radius: float) -> Box:
    x, y = float(str(node["x"])), float(str(node["y"]))
    return x - radius, y - radius, x + radius, y + radius


def _strokes(edges: list[Datum]) -> list[tuple[float, float]]:
    """Points on the links, close enough for labels of this size."""
    found: list[tuple[float, float]] = []
    for edge in edges:
        x, y, x2, y2 = (float(str(edge[each])) for each in ("x", "y", "x2", "y2"))
        found += [(x + step / 12 * (x2 - x), y + step / 12 * (y2 - y)) for step in range(1, 12)]
    return found


def _hidden(box: Box, taken: list[Box], strokes: list[tuple[float, float]], room: int) -> float:
    """How much of a label would lie on something, in pixels; outside of the picture is worst."""
    left, top, right, bottom = box
    cost = 1e6 if left < 0 or top < 0 or right > WIDE or bottom > room else 0.0
    for other in taken:
        wide = min(right, other[2]) - max(left, other[0])
        high = min(bottom, other[3]) - max(top, other[1])
        if wide > 0 and high > 0:
            cost += 20 + wide * high
    cost += 6.0 * sum(left <= x <= right and top <= y <= bottom for x, y in strokes)
    return cost


def load(data: RunData) -> Figure | Absent:
    title = "Load of each broker"
    net = overlay(data)
    total = net.records.total()
    if not total:
        return Absent(title, "no broker counted records")
    ranked = sorted(net.records, key=lambda broker: (-net.records[broker], broker))
    rows: list[Datum] = [
        {"broker": ident(broker), "records": net.records[broker], "share": net.records[broker] / total}
        for broker in ranked
    ]
    shown = [row["broker"] for row in rows]
    names = {"labelAngle": 0 if len(ranked) <= 12 else -60, "labels": len(ranked) <= 45}
    names |= {"ticks": len(ranked) <= 45, "labelLimit": label_limit(shown, 70)}
    bars: Spec = {
        "data": ROWS,
        "mark": {"type": "bar", "color": LIGHT["mid"]},
        "encoding": {
            "x": category("broker", sort=shown, title=None, axis=names),
            "y": quantity("records", title="records in and out", axis={"tickCount": 4, "format": "~s"}),
            "tooltip": [category("broker"), quantity("records"), quantity("share", format=".1%")],
        },
    }
    mean: Spec = {
        "data": values([{"mean": total / len(ranked)}]),
        "mark": {"type": "rule", "color": LIGHT["red"], "strokeDash": [5, 3]},
        "encoding": {"y": quantity("mean"), "tooltip": [quantity("mean")]},
    }
    top = net.records[ranked[0]]
    caption = (
        f"The busiest, {ident(ranked[0], 30)}, has {share(top / total)} of all records, "
        f"{plain(top * len(ranked) / total)} times the mean (dashed) of {counted(len(ranked), 'broker')}."
    )
    spread = next((row for row in data.rows("spread") if text(row, "metric") == "records"), {})
    if (gini := number(spread, "gini")) is not None:
        caption += f" Gini coefficient {plain(gini)}: 0 is even, 1 is all on one."
    return Figure("load", title, caption, framed([bars, mean], rows, 230), rows)
