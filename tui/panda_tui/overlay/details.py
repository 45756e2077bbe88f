"""Decides what is said of one node, and of the way of a traced message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap

from rich.text import Text

from broker_runtime.client import Trace
from panda_tui.escaping import one_line
from panda_tui.model import Broker, Link, Snapshot, State
from panda_tui.overlay.graph import Edge, edge_of, natural
from panda_tui.overlay.scene import rate_text

STATE_STYLE: Mapping[State, str] = {
    State.RUNNING: "green",
    State.PAUSED: "bold yellow",
    State.SILENT: "bold red",
    State.FAILED: "bold red",
    State.ENDED: "red",
}
NAMES_MAX = 12
LINKS_MAX = 24
COLUMNS = 28  # of names in a line


def details_of(snapshot: Snapshot, name: str) -> Text:
    """In as many short lines as it takes; the first says the most."""
    overlay = snapshot.overlay
    broker = overlay.broker(name)
    if broker is not None:
        links = [link for link in overlay.links if name in link.key]
        return _broker(broker, links, snapshot.at)
    client = next((each for each in overlay.clients if each.id == name), None)
    if client is None:
        return Text("Nothing is selected: arrows select a node, / searches for one.", "dim")
    text = _title(name, client.state, "client")
    _line(text, "at broker", client.broker)
    _line(text, "process", client.process)
    _line(text, "host", client.host)
    return text


def _broker(broker: Broker, links: list[Link], at: float) -> Text:
    load = broker.load
    text = _title(broker.id, broker.state, "broker")
    _line(text, "records/s", f"{rate_text(load.rate_in)} in, {rate_text(load.rate_out)} out")
    _line(text, "waiting", f"{load.queue_length}" + (f", {load.dropped} dropped" if load.dropped else ""))
    _line(text, "queueing", f"{load.queueing_ms:.2f} ms, matching {load.matching_us:.1f} µs")
    _line(text, "tables", f"{load.subscriptions} subs, {load.advertisements} advs")
    _line(text, "memory", f"{load.memory_bytes / (1 << 20):.0f} MB")
    _line(text, "host", broker.host)
    _line(text, "process", broker.process)
    _line(text, "address", broker.address)
    if broker.heard_at is None:
        _line(text, "heard", "never")
    elif at - broker.heard_at >= 2:
        _line(text, "heard", f"{at - broker.heard_at:.0f} s ago")
    for link in links[:LINKS_MAX]:
        other = link.b if link.a == broker.id else link.a
        text.append("\n↔ ", "dim")
        text.append(one_line(other), "" if link.up else "bold red")
        text.append(f" {rate_text(link.rate)}/s" if link.up else " down", "dim" if link.up else "bold red")
        if link.queue_length:
            text.append(f", {link.queue_length} waiting", "yellow")
        if link.faults:
            text.append(f" [{one_line(', '.join(link.faults))}]", "yellow")
    if len(links) > LINKS_MAX:
        text.append(f"\nand {len(links) - LINKS_MAX} more links: Enter shows them", "dim")
    for number, names in enumerate(wrap(names_text(broker.clients), COLUMNS)):
        _line(text, "" if number else "clients", names)
    return text


def names_text(names: Iterable[str]) -> str:
    known = sorted(names, key=natural)
    more = len(known) - NAMES_MAX
    return ", ".join(known[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _title(name: str, state: State, kind: str) -> Text:
    text = Text(one_line(name), "bold")
    text.append(f"  {kind}, ", "dim not bold")
    text.append(str(state), f"not bold {STATE_STYLE.get(state, '')}")
    text.style = ""
    text.stylize("bold", 0, len(one_line(name)))
    return text


def _line(text: Text, label: str, value: str) -> None:
    if value:
        text.append(f"\n{label} " if label else "\n  ", "dim")
        text.append(one_line(value))


# Ways


def way_of(trace: Trace) -> tuple[frozenset[str], frozenset[Edge]]:
    """Nodes and links that the message came by."""
    nodes = {step.broker for step in trace.steps}
    edges: set[Edge] = set()
    for step in trace.steps:
        for other in (step.came_from, *step.goes_to):
            nodes.add(other)
            edges.add(edge_of(step.broker, other))
    return frozenset(nodes), frozenset(edges)


def way_text(trace: Trace) -> Text:
    """The message's way in a line: who had it when, and whether all have told."""
    text = Text("trace ", "bold", no_wrap=True, overflow="ellipsis", end="")
    if not trace.steps:
        return text.append(f"{one_line(trace.id)}: no broker has told of it yet", "not bold")
    start = trace.steps[0].time
    for number, step in enumerate(trace.steps):
        if number:
            text.append(" → ", "dim not bold")
        text.append(one_line(step.broker), "not bold")
        if number:
            text.append(f" +{1e3 * (step.time - start):.1f} ms", "dim not bold")
    ends = {other for step in trace.steps for other in step.goes_to} - {step.broker for step in trace.steps}
    reached = names_text(ends) if ends else "nobody"
    text.append(f" ⇒ {one_line(reached)}", "not bold")
    if not trace.complete:
        text.append(" (not every broker has told)", "yellow not bold")
    return text
