"""Decides whether a cluster is quiet, and what its tables look like then; never changes anything.

Quiet is a statement about every session and every table, not a pause in the traffic: both ends hold the
same session over the same connection, nothing is queued, unacknowledged, held or awaited anywhere, and all
brokers see one tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker_runtime.link.session import Role, Session
from broker_runtime.sim.history import BrokerState, SessionState, Told

if TYPE_CHECKING:
    from broker_runtime.broker import Broker
    from broker_runtime.client_core import ClientCore
    from broker_runtime.language.messages import Advertisement, Subscription
    from broker_runtime.routing.forwarding import Forwarding
    from broker_runtime.sim.network import Network


def restlessness(
    network: Network, brokers: Mapping[str, Broker], clients: Mapping[str, tuple[ClientCore, str]]
) -> str:
    """The first thing that is not quiet, or nothing."""
    for name, broker in brokers.items():
        why = _broker_restless(network, name, broker, brokers, clients)
        if why:
            return why
    for name, (core, home) in clients.items():
        why = _client_restless(name, core, home, brokers)
        if why:
            return why
    return ""


def _broker_restless(
    network: Network,
    name: str,
    broker: Broker,
    brokers: Mapping[str, Broker],
    clients: Mapping[str, tuple[ClientCore, str]],
) -> str:
    node = network.nodes[name]
    if not node.alive or node.paused or broker.paused or broker.short_of_memory:
        return f"{name} is down, paused or short of memory"
    for peer, session in broker.endpoint.sessions.items():
        if session.role is Role.BROKER:
            theirs = brokers[peer].endpoint.sessions.get(name)
        elif peer in clients and clients[peer][1] == name:
            theirs = clients[peer][0].endpoint.sessions.get(name)
        else:
            return f"{name} has a session with {peer}, which is gone"
        pipe = node.pipes.get(session.connection) if session.connection is not None else None
        if theirs is None or theirs.id != session.id or pipe is None or pipe.cut:
            return f"the session {name}–{peer} is not up at both ends"
        if pipe.far_connection != theirs.connection:
            return f"the session {name}–{peer} is on two connections"
        why = _session_restless(session)
        if why:
            return f"{name}: {why} for {peer}"
    router = broker.router
    if router._awaited or router._unconfirmed:
        return f"{name} awaits confirmations {dict(router._awaited)} {router._unconfirmed}"
    if broker.overlay.brokers != sorted(brokers):
        return f"{name} sees the brokers {broker.overlay.brokers}"
    if len(broker.overlay.edges()) != len(brokers) - 1:
        return f"{name} sees the links {broker.overlay.edges()}"
    return ""


def _session_restless(session: Session) -> str:
    for number, lane in enumerate(session.lanes):
        if lane.unsent:
            return f"{len(lane.unsent)} records unsent in lane {number}"
        if lane.sent != lane.acked or lane.inflight:
            return f"{lane.sent - lane.acked} records unacknowledged in lane {number}"
        if session.input[number]:
            return f"input held in lane {number}"
    if session.blocked_on or session.blocking:
        return f"blocked on {list(session.blocked_on)}, blocking {list(session.blocking)}"
    return ""


def _client_restless(name: str, core: ClientCore, home: str, brokers: Mapping[str, Broker]) -> str:
    session = core.endpoint.sessions.get(home)
    if session is None or not core.connected:
        return f"client {name} is not connected"
    theirs = brokers[home].endpoint.sessions.get(name)
    if theirs is None or theirs.id != session.id:
        return f"client {name} has a session that {home} does not have"
    if core.held:
        return f"client {name} is held"
    why = _session_restless(session)
    if why:
        return f"client {name}: {why}"
    if any(core._pending) or core._unconfirmed or core._publications or core._backlog:
        return f"client {name} waits for answers: {core._pending} {core._unconfirmed} {core._publications}"
    return ""


def broker_state(broker: Broker) -> BrokerState:
    router = broker.router
    return BrokerState(
        broker.id,
        {(hop, id_): body for id_, hop, body in router.advertisement_entries(100_000)},
        {(hop, id_): body for id_, hop, body in router.subscription_entries(100_000)},
        {name: _told(each.advertisements) for name, each in router.neighbours.items()},
        {name: _told(each.subscriptions) for name, each in router.neighbours.items()},
        len(router._other_ways),
        len(router._awaited),
        len(router._unconfirmed),
        not broker.pressure.at_rest,
        tuple((a, b) for _, a, b in sorted(broker.overlay.edges(), key=lambda edge: edge[1:])),
        {peer: _session_state(session) for peer, session in broker.endpoint.sessions.items()},
    )


def _told(forwarding: Forwarding[Advertisement] | Forwarding[Subscription]) -> Told:
    return Told(tuple(forwarding.wanted), tuple(forwarding.told))


def _session_state(session: Session) -> SessionState:
    return SessionState(
        session.peer,
        session.id,
        session.connection is not None,
        session.role.value,
        sum(len(lane.unsent) for lane in session.lanes),
        sum(lane.sent - lane.acked for lane in session.lanes),
        sum(map(len, session.input)),
        bool(session.blocked_on),
        session.dropped,
    )
