"""Decides whether what happens to processes can happen to them at that time."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from broker_runtime.dialect.options import nearest
from panda.topology.model import PROCESS_ACTIONS, Action, Step, Topology
from panda.topology.problems import Problem, error, shown, warning


class _State(Enum):
    ABSENT = "has not been added yet"
    RUNNING = "is running"
    PAUSED = "is paused"
    KILLED = "has been killed"
    REMOVED = "has been removed already"


_AFTER = {
    Action.ADD: _State.RUNNING,
    Action.REMOVE: _State.REMOVED,
    Action.KILL: _State.KILLED,
    Action.PAUSE: _State.PAUSED,
    Action.RESUME: _State.RUNNING,
    Action.RESTART: _State.RUNNING,
}


def unknown_process(topology: Topology) -> Iterator[Problem]:
    """Every name in a step means one process; those that could be resolved are ids by now."""
    ids = {each.id for each in topology.processes}
    speaking: dict[str, list[str]] = {}
    for process in topology.processes:
        speaking.setdefault(process.speaks, []).append(process.id)
    for step in topology.steps:
        single = step.action in PROCESS_ACTIONS
        names = {step.process} if single else {name for group in step.groups for name in group}
        for name in sorted(names - ids - topology.unread):
            place = step.where("process" if single else f"member {name}")
            if name in speaking:
                who = ", ".join(speaking[name])
                yield error(place, f"{shown(name)} can mean any of {who}", "use the id of the process")
            else:
                hint = nearest(name, ids | speaking.keys()).strip(" ()") or "add it first"
                yield error(place, f"{step.action} of {shown(name)}, which is never added", hint)


def out_of_order(topology: Topology) -> Iterator[Problem]:
    states: dict[str, _State] = {}
    known = {each.id: each for each in topology.processes}
    for step in topology.steps:
        if step.action is Action.ADD:
            states.setdefault(step.process, _State.RUNNING)
        elif step.action in PROCESS_ACTIONS and step.process in known:
            state = states.get(step.process, _State.ABSENT)
            yield from _judged(step, state, known[step.process].at_s)
            if state is not _State.ABSENT and step.for_s is None:
                states[step.process] = _AFTER[step.action]


def _judged(step: Step, state: _State, added_s: float) -> Iterator[Problem]:
    who = f"{step.action} of {shown(step.process)} at {step.at_s:g} s"
    place = step.where("process")
    if state is _State.ABSENT:
        when = "on a later line" if added_s == step.at_s else f"at {added_s:g} s"
        yield error(place, f"{who}, but it is added {when}", "let it happen after its ADD")
    elif state is _State.REMOVED:
        yield error(
            place, f"{who}, but it {state.value}", "REMOVE … for 5s brings it back, as does KILL … for 5s"
        )
    elif step.at_s == 0:
        message = f"{who}, but phase 1 ends only when everything added at 0 is up"
        yield error(place, message, "choose a later time")
    elif step.action is Action.RESUME and state is not _State.PAUSED:
        yield warning(place, f"{who}, but it {state.value}", "PAUSE it before")
    elif state is _State.KILLED and step.action not in (Action.RESTART, Action.REMOVE):
        yield warning(place, f"{who}, but it {state.value}", "RESTART starts it again")


def wrong_host(topology: Topology) -> Iterator[Problem]:
    hosts = {each.id: each.host for each in topology.processes}
    for step in topology.steps:
        host = hosts.get(step.process)
        if step.action in PROCESS_ACTIONS and step.host and host is not None and step.host != host:
            message = f"{shown(step.process)} is on {shown(host)}, not on {shown(step.host)}"
            yield error(step.where("host"), message, f"write {shown(host)}")
