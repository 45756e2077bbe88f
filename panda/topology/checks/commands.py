"""Decides whether the commands of ADD lines would be taken by what they start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from broker_runtime.dialect.options import nearest
from broker_runtime.dialect.scripts import START_SCRIPTS
from panda.topology.commands import WILDCARDS, Said, said_by
from panda.topology.model import BROKER, COMMAND, Action, Step, Topology
from panda.topology.problems import Problem, error, shown, visible, warning

_NEAREST = re.compile(r" \((did you mean .*\?)\)$")
_SCRIPT = re.compile(r"(?:.*/)?(start[A-Za-z]*)(?:\.sh)?")


def refused_options(topology: Topology) -> Iterator[Problem]:
    for step, said in _added(topology):
        for index, told in said.problems:
            message = told.partition("\n")[0]
            close = _NEAREST.search(message)
            message = message[: close.start()] if close else message
            hint = close[1] if close else f"{step.command[0].rpartition('/')[2]} --help shows what it takes"
            yield error(step.where(f"argument {index}"), _printable(message), hint)


def other_hostname(topology: Topology) -> Iterator[Problem]:
    """Legal on a host with several addresses; else the broker cannot listen there."""
    for step, said in _added(topology):
        if said.hostname and said.hostname not in WILDCARDS and said.hostname != step.host:
            index = next((i for i, word in enumerate(step.command) if said.hostname in word), 0)
            message = f"the broker listens at {shown(said.hostname)}, the line says {shown(step.host)}"
            hint = f"write {shown(step.host)}, unless the host has both addresses"
            yield warning(step.where(f"argument {index}"), message, hint)


def nothing_to_read(topology: Topology) -> Iterator[Problem]:
    """What looks like a start script and is none, or keeps from us what it says."""
    for step, said in _added(topology):
        looks = _SCRIPT.fullmatch(step.command[0]) if step.command else None
        if said.kind == COMMAND and looks:
            hint = nearest(looks[1].lower(), START_SCRIPTS).strip(" ()")
            message = f"{shown(step.command[0])} is no start script: it is run as any command"
            yield warning(step.where("argument 0"), message, hint)
        if said.kind == BROKER and said.configured and said.listen is None:
            message = "its configuration file is not read here, so links with it are not checked"
            yield warning(step.where("argument 0"), message, "say -p and -i in the line")


def _added(topology: Topology) -> Iterator[tuple[Step, Said]]:
    for step in topology.steps:
        if step.action is Action.ADD:
            yield step, said_by(step.command, step.host)


def _printable(message: str) -> str:
    return visible(message)[:500]
