"""Decides whether the tables of quiet brokers are right: agree with each other, and say what they should.

These look at routing directly, so that a wrong table is found even when no publication happens to show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.routing.forwarding import Covering
from broker_runtime.sim.history import BrokerState, History, Told

T = TypeVar("T", Advertisement, Subscription)


def told_is_known(history: History) -> Iterator[str]:
    """What a broker has told a neighbour is what the neighbour has from it, and nothing else."""
    for window, states in enumerate(history.quiet):
        for state in states.values():
            for name, told in state.told_subscriptions.items():
                known = {id_ for hop, id_ in states[name].subscriptions if hop == state.name}
                if known != set(told.told):
                    odd = sorted(known ^ set(told.told))
                    yield f"window {window}: {state.name} told {name} other subscriptions than it has: {odd}"
            for name, told in state.told_advertisements.items():
                known = {id_ for hop, id_ in states[name].advertisements if hop == state.name}
                if known != set(told.told):
                    odd = sorted(known ^ set(told.told))
                    yield f"window {window}: {state.name} told {name} other advertisements than it has: {odd}"


def wanted_is_told(history: History) -> Iterator[str]:
    """A neighbour is served with exactly what its advertisements overlap, and told enough of it."""
    for window, states in enumerate(history.quiet):
        for state in states.values():
            subscriptions = {id_: body for (_, id_), body in state.subscriptions.items()}
            advertisements = {id_: body for (_, id_), body in state.advertisements.items()}
            for name, told in state.told_subscriptions.items():
                promised = [body for (hop, _), body in state.advertisements.items() if hop == name]
                right = {
                    id_
                    for (hop, id_), body in state.subscriptions.items()
                    if hop != name and any(each.overlaps(body) for each in promised)
                }
                for problem in _judge(told, right, subscriptions, history.covering):
                    yield f"window {window}: subscriptions of {state.name} for {name}: {problem}"
            for name, told in state.told_advertisements.items():
                right = {id_ for hop, id_ in state.advertisements if hop != name}
                for problem in _judge(told, right, advertisements, history.covering):
                    yield f"window {window}: advertisements of {state.name} for {name}: {problem}"


def _judge(told: Told, right: set[str], bodies: Mapping[str, T], covering: Covering) -> Iterator[str]:
    if set(told.wanted) != right:
        yield f"wanted is wrong by {sorted(set(told.wanted) ^ right)}"
        return
    if not set(told.told) <= right:
        yield f"told what is not wanted: {sorted(set(told.told) - right)}"
        return
    if covering is Covering.OFF and set(told.told) != right:
        yield f"not told: {sorted(right - set(told.told))}"
    for id_ in told.wanted:
        if id_ not in told.told and not any(_covers(bodies[other], bodies[id_]) for other in told.told):
            yield f"{id_} is neither told nor covered"
    if covering is Covering.ACTIVE:
        for id_ in told.told:
            if any(other != id_ and _covers(bodies[other], bodies[id_]) for other in told.told):
                yield f"{id_} is told although it is covered"


def _covers(a: T, b: T) -> bool:
    return a.covers(b)


def overlay_is_a_tree(history: History) -> Iterator[str]:
    """All brokers see the same links, which are a tree: the given one, unless others were asked for."""
    for window, states in enumerate(history.quiet):
        seen = {state.edges for state in states.values()}
        if len(seen) != 1:
            yield f"window {window}: brokers see different overlays"
            continue
        (edges,) = seen
        linked = {
            (min(name, peer), max(name, peer))
            for name, state in states.items()
            for peer, session in state.sessions.items()
            if session.role == "broker"
        }
        if set(edges) != linked:
            yield f"window {window}: the overlay {edges} is not the links {sorted(linked)}"
        if not history.extra_links and edges != history.tree:
            yield f"window {window}: the overlay {edges} is not the tree {history.tree}"


def back_to_baseline(history: History) -> Iterator[str]:
    """When everything is withdrawn, only what the brokers' own monitors say and ask is left."""
    if not history.withdrawn or history.problems:
        return
    states = history.quiet[-1]
    if any(state.edges != history.tree for state in states.values()):
        yield "the overlay did not return to the tree"
        return
    own = 2 * len(states) if history.monitors else 0
    for state in states.values():
        yield from _leftovers(state, own, 1 if history.monitors else 0)


def _leftovers(state: BrokerState, advertisements: int, subscriptions: int) -> Iterator[str]:
    if len(state.advertisements) != advertisements:
        yield f"{state.name} keeps advertisements {sorted(state.advertisements)}"
    if len(state.subscriptions) != subscriptions:
        yield f"{state.name} keeps subscriptions {sorted(state.subscriptions)}"
    for name, told in state.told_subscriptions.items():
        if told.wanted or told.told:
            yield f"{state.name} still wants {told.wanted} of {name}"
    if state.other_ways or state.awaited or state.unconfirmed or state.congested:
        yield (
            f"{state.name} keeps other ways {state.other_ways}, awaited {state.awaited},"
            f" unconfirmed {state.unconfirmed}, congested {state.congested}"
        )
    for session in state.sessions.values():
        if session.unsent or session.in_flight or session.input or session.blocked or not session.up:
            yield f"{state.name} has a restless session {session}"
