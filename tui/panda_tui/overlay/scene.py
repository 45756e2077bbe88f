"""Decides what the network's present state looks like on the graph: tones by state or load, rates as text."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from panda_tui.model import Broker, Client, Link, Overlay, State
from panda_tui.overlay.graph import Graph, edge_of, graph_of
from panda_tui.overlay.painting import Look, Looks, Thing, Tone

QUEUE_HOT = 1_000  # records waiting at one broker or on one link
QUEUE_BUSY = 100
SHARE_HOT = 0.75  # of the busiest broker's or link's rate
SHARE_BUSY = 0.35
RATE_FLOOR = 50.0  # records per second: below it nothing is called busy, however still the others are


class Colouring(StrEnum):
    LOAD = "load"
    STATE = "state"

    @property
    def next(self) -> Colouring:
        return Colouring.STATE if self is Colouring.LOAD else Colouring.LOAD


_UNITS = ((9_999.5, 1.0, ""), (999_500.0, 1e3, "k"), (9_999.5e6, 1e6, "M"))
_BY_STATE = {
    State.WAITING: Tone.UNKNOWN,
    State.STARTING: Tone.UNKNOWN,
    State.RUNNING: Tone.CALM,
    State.PAUSED: Tone.PAUSED,
    State.SILENT: Tone.DOWN,
    State.ENDED: Tone.DOWN,
    State.FAILED: Tone.DOWN,
}


def graph_of_overlay(overlay: Overlay) -> Graph:
    return graph_of(
        (each.id for each in overlay.brokers),
        (each.key for each in overlay.links),
        {each.id: each.broker for each in overlay.clients if each.broker},
    )


def looks_of(overlay: Overlay, colouring: Colouring) -> Looks:
    """Of every broker, link and client. Trouble is shown whatever the colours mean."""
    looks: dict[Thing, Look] = {}
    most = max((rate_of(each) for each in overlay.brokers), default=0.0)
    for broker in overlay.brokers:
        text = rate_text(rate_of(broker)) if broker.state is State.RUNNING else str(broker.state)
        looks[broker.id] = Look(_tone_of_broker(broker, colouring, most), text)
    most_linked = max((each.rate for each in overlay.links), default=0.0)
    for link in overlay.links:
        text = rate_text(link.rate) if link.up else "down"
        looks[edge_of(link.a, link.b)] = Look(_tone_of_link(link, colouring, most_linked), text)
    for client in overlay.clients:
        trouble = "" if client.state is State.RUNNING else str(client.state)
        looks[client.id] = Look(_tone_of_client(client), trouble)
        looks[edge_of(client.id, client.broker)] = Look(Tone.CLIENT)
    return looks


def rate_of(broker: Broker) -> float:
    return broker.load.rate_in + broker.load.rate_out


def rate_text(rate: float) -> str:
    """In five letters: records per second."""
    if rate < 0.05:
        return "·"
    for limit, size, unit in _UNITS:
        if rate < limit:
            return f"{rate / size:.0f}{unit}" if rate >= 9.95 else f"{rate:.1f}"
    return "∞"


def sentence(overlay: Overlay) -> str:
    """The whole network in a line."""
    total = sum(rate_of(each) for each in overlay.brokers)
    parts = [_counted(len(overlay.brokers), "broker"), _counted(len(overlay.links), "link")]
    if overlay.clients:
        parts.append(_counted(len(overlay.clients), "client"))
    parts.append(f"{rate_text(total)}/s" if total >= 0.05 else "idle")
    for tone, word in ((Tone.PAUSED, "paused"), (Tone.DOWN, "not heard")):
        found = [each.id for each in overlay.brokers if _BY_STATE[each.state] is tone]
        if found:
            parts.append(f"{len(found)} {word}" if len(found) > 2 else f"{' and '.join(found)} {word}")
    broken = [each for each in overlay.links if not each.up]
    if broken:
        parts.append(f"{_counted(len(broken), 'link')} down")
    return " · ".join(parts)


def _tone_of_broker(broker: Broker, colouring: Colouring, most: float) -> Tone:
    tone = _BY_STATE[broker.state]
    if tone is not Tone.CALM or colouring is Colouring.STATE:
        return tone
    return _by_load(rate_of(broker), most, broker.load.queue_length)


def _tone_of_link(link: Link, colouring: Colouring, most: float) -> Tone:
    if not link.up:
        return Tone.DOWN
    if link.faults:
        return Tone.PAUSED
    return Tone.CALM if colouring is Colouring.STATE else _by_load(link.rate, most, link.queue_length)


def _tone_of_client(client: Client) -> Tone:
    tone = _BY_STATE[client.state]
    return Tone.CLIENT if tone is Tone.CALM else tone


def _by_load(rate: float, most: float, queue_length: int) -> Tone:
    if queue_length >= QUEUE_HOT:
        return Tone.HOT
    if queue_length >= QUEUE_BUSY:
        return Tone.BUSY
    if rate < 0.05:
        return Tone.IDLE
    share = rate / max(most, RATE_FLOOR)
    return Tone.HOT if share >= SHARE_HOT else Tone.BUSY if share >= SHARE_BUSY else Tone.CALM


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def table_rows(overlay: Overlay) -> Sequence[tuple[str, ...]]:
    """For screens that are too small for a graph: broker, state, rates, queue, neighbours."""
    down = {(link.a, link.b) for link in overlay.links if not link.up}
    down |= {(b, a) for a, b in down}
    beside: dict[str, list[str]] = {each.id: [] for each in overlay.brokers}
    for link in overlay.links:
        for one, other in (link.key, link.key[::-1]):
            beside.setdefault(one, []).append(other if (one, other) not in down else f"{other}!")
    return [
        (
            each.id,
            str(each.state),
            rate_text(each.load.rate_in),
            rate_text(each.load.rate_out),
            str(each.load.queue_length),
            " ".join(beside[each.id]),
        )
        for each in overlay.brokers
    ]
