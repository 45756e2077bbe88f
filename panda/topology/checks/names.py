"""Decides whether ids and hosts are such, and mean one thing each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final

from broker_runtime.language.identifiers import check_id
from broker_runtime.language.problems import LanguageError
from panda.topology.lifetimes import overlap, removals
from panda.topology.model import BROKER, Action, Process, Topology
from panda.topology.problems import Problem, error, shown, warning

HOST_MAX_CHARACTERS: Final = 253
_HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9_.:%-]*")
_NUMBERS = re.compile(r"[0-9.]*\.[0-9.]*")
_RESERVED: Final = frozenset(("for",))


def illegal_ids(topology: Topology) -> Iterator[Problem]:
    for step in topology.steps:
        if step.action is Action.ADD:
            try:
                check_id(step.process)
            except LanguageError as refused:
                problem = refused.problems[0]
                yield error(step.where("process"), f"{shown(step.process)}: {problem.message}", problem.hint)
            if step.process.lower() in _RESERVED:
                yield error(step.where("process"), f"{step.process} is a word of the language", "rename it")


def illegal_hosts(topology: Topology) -> Iterator[Problem]:
    for step in topology.steps:
        good = _HOST.fullmatch(step.host) and len(step.host) <= HOST_MAX_CHARACTERS
        if step.action is Action.ADD and not good:
            hint = "a host is an address or a name; users and ports come from the inventory or ssh_config"
            yield error(step.where("host"), f"{shown(step.host)} is no host", hint)
        elif step.action is Action.ADD and _NUMBERS.fullmatch(step.host) and not _is_address(step.host):
            hint = "an address has four numbers from 0 to 255, and a name has a letter"
            yield error(step.where("host"), f"{step.host} is no address", hint)


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def duplicate_processes(topology: Topology) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for step in sorted(topology.steps, key=lambda step: step.place.line):
        if step.action is Action.ADD:
            if step.process in first:
                message = f"{shown(step.process)} is added on line {first[step.process]} already"
                yield error(step.where("process"), message, "choose another id; RESTART starts one again")
            first.setdefault(step.process, step.place.line)


def duplicate_speakers(topology: Topology) -> Iterator[Problem]:
    """Two processes that are known by one id in the overlay, at one time."""
    removed = removals(topology)
    speaking: dict[str, list[Process]] = {}
    for process in topology.processes:
        if not process.speaks:
            continue
        others = speaking.setdefault(process.speaks, [])
        for other in others:
            if overlap(process, other, removed):
                message = f"{process.id} uses the id {process.speaks}, and so does {other.id}"
                yield error(process.place, message, "give each its own with -i or -uri")
                break
        others.append(process)


def other_broker_id(topology: Topology) -> Iterator[Problem]:
    """Legal, as in the papers' own example; but what logs say is the broker's id."""
    for process in topology.processes:
        if process.kind == BROKER and process.speaks and process.speaks != process.id:
            message = f"process {process.id} is known to the overlay as {process.speaks}"
            yield warning(process.place, message, "one name for both is easier to follow")
