"""Decides what a plan holds: processes, links and steps with every address and argument settled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from panda.hosts.host import Host


class Policy(StrEnum):
    """What an unexpected end of a process, or the loss of a host, does to the run."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class PlannedProcess:
    id: str
    host: str
    kind: str  # runtime or command
    word: str  # of the runtime, or empty
    arguments: tuple[str, ...]
    speaks: str  # the id it has on the network, or empty
    phase: int
    at_s: float
    address: str = ""  # where it listens
    publishes: bool = False
    ends: bool = False  # a client that ends by itself, having done its work

    @property
    def is_broker(self) -> bool:
        return self.word == "broker"


@dataclass(frozen=True, slots=True)
class PlannedLink:
    """An overlay link, between two processes."""

    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.a} – {self.b}"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One thing that one host does at a time; a line of the topology may become several.

    Numbers are unique in a plan; several steps may have come from one line.
    """

    number: int
    at_s: float
    action: str
    host: str
    process: str = ""
    fault: str = ""
    peer: str = ""
    value: float | None = None
    for_s: float | None = None
    text: str = ""
    line: int = 0

    def message(self) -> dict[str, Any]:
        """As the agent reads it."""
        fields = {
            "number": self.number,
            "at_s": self.at_s,
            "action": self.action,
            "process": self.process,
            "fault": self.fault,
            "peer": self.peer,
            "value": self.value,
            "for_s": self.for_s,
            "text": self.text,
        }
        return {key: value for key, value in fields.items() if value not in ("", None)}


def fresh_number(now: float) -> int:
    """A number for a step that is added while the run goes on: higher than any in a plan."""
    return int(now * 1000)


@dataclass(frozen=True, slots=True)
class Plan:
    run: str
    name: str
    hosts: tuple[Host, ...]
    processes: tuple[PlannedProcess, ...]
    links: tuple[PlannedLink, ...]
    steps: tuple[PlannedStep, ...]
    policy: Policy = Policy.CONTINUE
    stop_at_s: float | None = None
    gate_timeout_s: float = 60.0
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets among it

    def process(self, id_: str) -> PlannedProcess:
        return next(each for each in self.processes if each.id == id_)

    @property
    def first_phase(self) -> tuple[PlannedProcess, ...]:
        return tuple(each for each in self.processes if each.phase == 1)

    @property
    def gate_links(self) -> tuple[PlannedLink, ...]:
        """The links that must be up before phase 2: those between brokers of phase 1."""
        early = {each.id for each in self.first_phase}
        return tuple(link for link in self.links if link.a in early and link.b in early)

    @property
    def last_s(self) -> float:
        """When the last thing is due."""
        times = [step.at_s + (step.for_s or 0.0) for step in self.steps]
        return max([*times, self.stop_at_s or 0.0], default=0.0)

    def spec(self, host: str) -> dict[str, Any]:
        """This host's part, as its agent reads it."""
        public: dict[str, Any] = {
            "run": self.run,
            "policy": str(self.policy),
            "stop_at_s": self.stop_at_s,
            "processes": [_process(each) for each in self.processes if each.host == host],
            "steps": [each.message() for each in self.steps if each.host == host],
        }
        text = json.dumps(public, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        for process in public["processes"]:
            process["environment"] = {**self.environment, "PANDA_HOST": host}
        return {**public, "digest": digest}


def _process(planned: PlannedProcess) -> dict[str, Any]:
    return {
        "id": planned.id,
        "kind": planned.kind,
        "word": planned.word,
        "arguments": list(planned.arguments),
        "speaks": planned.speaks,
    }
