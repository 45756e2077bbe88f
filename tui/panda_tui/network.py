"""Decides how the network looks: what agents say of processes, joined with what brokers say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from broker_runtime.language import Value
from panda.deploy.view import ProcessView, RunView, Stage
from panda_tui.model import LIVING, Broker, Client, Link, Load, Overlay, State

if TYPE_CHECKING:
    from panda_tui.brokers import Heard

GONE_S = 60.0  # a broker that is of no run is forgotten after so long
STATES: Final = {
    Stage.WAITING: State.WAITING,
    Stage.STARTING: State.STARTING,
    Stage.READY: State.RUNNING,
    Stage.PAUSED: State.PAUSED,
    Stage.ENDED: State.ENDED,
    Stage.REMOVED: State.ENDED,
    Stage.FAILED: State.FAILED,
}


def overlay_of(
    view: RunView | None,
    heard: Mapping[str, Heard],
    is_ours: Callable[[str], bool],
    now: float,
    silent_s: float,
) -> Overlay:
    processes = {each.planned.speaks: each for each in view.processes.values()} if view is not None else {}
    brokers: dict[str, Broker] = {}
    for id_, process in processes.items():
        if process.planned.is_broker:
            brokers[id_] = _broker(id_, process, heard.get(id_), is_ours, now, silent_s)
    for id_, said in heard.items():
        if id_ not in brokers and (view is None or now - said.at < GONE_S):
            brokers[id_] = _broker(id_, None, said, is_ours, now, silent_s)
    clients = _clients(brokers, processes)
    return Overlay(
        tuple(brokers[id_] for id_ in sorted(brokers)),
        tuple(_links(view, brokers, heard)),
        tuple(clients[id_] for id_ in sorted(clients)),
    )


def _broker(
    id_: str,
    process: ProcessView | None,
    said: Heard | None,
    is_ours: Callable[[str], bool],
    now: float,
    silent_s: float,
) -> Broker:
    content: Mapping[str, Value] = said.content if said is not None else {}
    state = STATES[process.stage] if process is not None else State.RUNNING
    fresh = said is not None and now - said.at <= silent_s
    if state is State.RUNNING:
        if fresh:
            state = State.PAUSED if content.get("state") == "paused" else State.RUNNING
        elif said is not None:
            state = State.SILENT
    peers = said.peers if said is not None else {}
    clients = [
        name for name, peer in peers.items() if peer.role == "client" and peer.up and not is_ours(name)
    ]
    return Broker(
        id=id_,
        state=state,
        load=_load(content) if fresh else Load(),
        heard_at=said.at if said is not None else None,
        address=str(content.get("address") or (process.planned.address if process is not None else "")),
        version=str(content.get("version", "")),
        process=process.planned.id if process is not None else "",
        host=process.planned.host if process is not None else "",
        clients=tuple(sorted(clients)) if state in LIVING else (),
        neighbours=tuple(sorted(name for name, peer in peers.items() if peer.role == "broker")),
    )


def _load(content: Mapping[str, Value]) -> Load:
    def number(name: str) -> float:
        value = content.get(name, 0)
        return float(value) if isinstance(value, int | float) else 0.0

    return Load(
        rate_in=number("rate_in"),
        rate_out=number("rate_out"),
        queue_length=int(number("queue_length")),
        queueing_ms=number("queueing_ms"),
        matching_us=number("matching_us"),
        memory_bytes=int(number("memory_bytes")),
        subscriptions=int(number("subscriptions")),
        advertisements=int(number("advertisements")),
        publications=int(number("publications")),
        dropped=int(number("dropped")),
        uptime_s=number("uptime_s"),
    )


def _clients(brokers: Mapping[str, Broker], processes: Mapping[str, ProcessView]) -> dict[str, Client]:
    clients: dict[str, Client] = {}
    for broker in brokers.values():
        if not broker.living:
            continue
        for id_ in broker.clients:
            process = processes.get(id_)
            if process is None:
                clients[id_] = Client(id_, broker.id)
            else:
                planned = process.planned
                clients[id_] = Client(id_, broker.id, STATES[process.stage], planned.id, planned.host)
    return clients


def _links(view: RunView | None, brokers: Mapping[str, Broker], heard: Mapping[str, Heard]) -> Iterable[Link]:
    keys: dict[tuple[str, str], None] = {}
    told: dict[tuple[str, str], tuple[bool, bool]] = {}
    if view is not None:
        for link in view.plan.links:
            first, second = view.processes[link.a].planned.speaks, view.processes[link.b].planned.speaks
            ends = view.link_up(link.a, link.b)
            key, swapped = ((first, second), False) if first < second else ((second, first), True)
            keys[key] = None
            told[key] = (ends[1], ends[0]) if swapped else ends
    for id_, broker in brokers.items():
        for peer in broker.neighbours:
            if peer in brokers:
                keys[min(id_, peer), max(id_, peer)] = None
    faults = _faults(view)
    for a, b in sorted(keys):
        yield _link(a, b, told.get((a, b)), brokers, heard, faults.get((a, b), ()))


def _link(
    a: str,
    b: str,
    told: tuple[bool, bool] | None,
    brokers: Mapping[str, Broker],
    heard: Mapping[str, Heard],
    faults: tuple[str, ...],
) -> Link:
    ends = [heard[x].peers.get(y) if x in heard else None for x, y in ((a, b), (b, a))]
    up = told or tuple(end is not None and end.up for end in ends)
    up_at_a = bool(up[0]) and brokers[a].living
    up_at_b = bool(up[1]) and brokers[b].living
    known = [end for end in ends if end is not None]
    moving = up_at_a and up_at_b
    return Link(
        a,
        b,
        up_at_a,
        up_at_b,
        rate=max((end.rate for end in known), default=0.0) if moving else 0.0,
        bytes_per_s=max((end.bytes_per_s for end in known), default=0.0) if moving else 0.0,
        queue_length=sum(end.queue_length for end in known),
        faults=faults,
    )


def _faults(view: RunView | None) -> dict[tuple[str, str], tuple[str, ...]]:
    """By link: what is done to it right now."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for host in view.hosts.values() if view is not None else ():
        for process, fault, peer in host.faults:
            known = view.processes.get(process) if view is not None else None
            speaks = known.planned.speaks if known is not None else process
            key = (min(speaks, peer), max(speaks, peer))
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), fault)))
    return found
