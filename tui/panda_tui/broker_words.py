"""Decides how one broker, its links and its subscriptions are put into words."""

from __future__ import annotations

from rich.text import Text

from panda_tui.escaping import one_line, plain
from panda_tui.model import Broker, Snapshot
from panda_tui.routing import Entry, LinkRow
from panda_tui.screens.frame import ago

COVERS_SHOWN_MAX = 6


def facts_of(broker: Broker, snapshot: Snapshot) -> Text:
    load = broker.load
    heard = "never heard" if broker.heard_at is None else f"heard {ago(snapshot.at - broker.heard_at)} ago"
    parts = [
        f"at {broker.address}" if broker.address else "",
        f"version {broker.version}" if broker.version else "",
        f"on {broker.host} as {broker.process}" if broker.process else "",
        f"up {ago(load.uptime_s)}" if load.uptime_s else "",
        f"{load.publications} publications",
        f"{load.dropped} dropped" if load.dropped else "",
        heard,
    ]
    process = snapshot.process(broker.process) if broker.process else None
    if process is not None and process.pid:
        parts.append(
            f"pid {process.pid}" + (f", started {process.starts} times" if process.starts > 1 else "")
        )
    if process is not None and process.ended:
        parts.append(process.ended)
    text = plain(" · ".join(filter(None, parts)))
    text.no_wrap = False
    return text


def link_cells(row: LinkRow) -> tuple[Text, ...]:
    return (
        plain(row.peer),
        plain(row.role),
        Text("up", "green") if row.up else Text("down", "bold red"),
        *(_count(value) for value in (row.records_in, row.records_out)),
        *(Text(f"{value / 1e6:.1f}", justify="right") for value in (row.bytes_in, row.bytes_out)),
        *(_count(value) for value in (row.queue_length, row.in_flight, row.dropped)),
        plain(", ".join(row.blocked_on)),
    )


def _count(value: int) -> Text:
    return Text(str(value), justify="right")


def names_of(entries: list[Entry]) -> str:
    shown = ", ".join(f"{entry.text} ({entry.hop})" for entry in entries[:COVERS_SHOWN_MAX])
    more = len(entries) - COVERS_SHOWN_MAX
    return one_line(shown) + (f" and {more} more" if more > 0 else "")
