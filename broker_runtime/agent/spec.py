"""Decides what a host's part of a run is and whether it can be carried out; it carries out nothing.

Problems never quote a value of an environment: those are secrets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from broker_runtime.agent.protocol import (
    ACTIONS,
    FAULTS,
    KINDS,
    LEASED,
    NAME,
    POLICIES,
    Code,
    RequestRefused,
)

PROCESSES_MAX: Final = 10_000
STEPS_MAX: Final = 20_000
ARGUMENTS_MAX: Final = 4_096
VARIABLES_MAX: Final = 1_024
TEXT_LENGTH_MAX: Final = 64 << 10
PROCESS_LENGTH_MAX: Final = 512 << 10
PEER_LENGTH_MAX: Final = 256
NUMBER_MAX: Final = 1 << 53
TIME_MAX_S: Final = 30 * 86_400.0
GRACE_MAX_S: Final = 600.0
GRACE_S: Final = 5.0
RATE_MAX: Final = 1e12
PROBLEMS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Process:
    id: str
    kind: str
    word: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    speaks: str = ""
    grace_s: float = GRACE_S

    def fields(self) -> dict[str, object]:
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "arguments": list(self.arguments), "environment": dict(self.environment)}


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    at_s: float | None
    action: str
    process: str = ""
    fault: str = ""
    peer: str = ""
    value: float | None = None
    for_s: float | None = None
    text: str = ""

    def fields(self) -> dict[str, object]:
        """As it was asked for, without what was left out."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {
            "at_s": told.pop("at_s"),
            **{name: value for name, value in told.items() if value not in ("", None)},
        }


@dataclass(frozen=True, slots=True)
class Spec:
    run: str
    digest: str
    policy: str
    stop_at_s: float | None
    processes: Mapping[str, Process]
    steps: tuple[Step, ...]

    def with_process(self, process: Process) -> Spec:
        """The spec with one more process; RequestRefused if there is another one of that name."""
        there = self.processes.get(process.id)
        if there == process:
            return self
        if there is not None:
            raise RequestRefused(Code.BAD_REQUEST, f"there is another process {process.id}")
        if len(self.processes) >= PROCESSES_MAX:
            raise RequestRefused(Code.TOO_LARGE, f"there are {PROCESSES_MAX} processes already")
        return replace(self, processes={**self.processes, process.id: process})

    def fields(self) -> dict[str, object]:
        """As it was loaded, secrets and all: for the file that only a takeover reads."""
        return {
            "run": self.run,
            "digest": self.digest,
            "policy": self.policy,
            "stop_at_s": self.stop_at_s,
            "processes": [process.fields() for process in self.processes.values()],
            "steps": [step.fields() for step in self.steps],
        }


class _Fields:
    """Reads one object's fields and collects what is wrong with them, with the place."""

    def __init__(self, raw: object, place: str, problems: list[str]) -> None:
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.place = place
        self.problems = problems
        if not isinstance(raw, dict):
            problems.append(f"{place} is no object")

    def wrong(self, name: str, why: str) -> None:
        self.problems.append(f"{self.place}: {name} {why}")

    def text(self, name: str, *, most: int = TEXT_LENGTH_MAX, needed: bool = False) -> str:
        value = self.raw.get(name, "")
        if value is None:
            value = ""
        if not isinstance(value, str) or (needed and not value):
            self.wrong(name, "is missing" if value == "" else "is no text")
            return ""
        why = _unusable(value, most)
        if why:
            self.wrong(name, why)
            return ""
        return value

    def choice(self, name: str, words: frozenset[str], default: str = "") -> str:
        value = self.raw.get(name, default)
        if not isinstance(value, str) or value not in words:
            self.wrong(name, f"is none of {', '.join(sorted(words))}")
            return ""
        return value

    def name(self, name: str) -> str:
        value = self.raw.get(name)
        if not isinstance(value, str) or NAME.fullmatch(value) is None:
            self.wrong(name, "is no name (letters, digits and _.@:+- but not first, at most 128)")
            return ""
        return value

    def number(self, name: str, most: float, *, default: float | None = None) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            self.wrong(name, f"is no number from 0 to {most:g}")
            return default
        return float(value)

    def items(self, name: str, most: int) -> list[Any]:
        value = self.raw.get(name, [])
        if not isinstance(value, list) or len(value) > most:
            self.wrong(name, f"is no list of at most {most}")
            return []
        return value


def _unusable(text: str, most: int) -> str:
    """Why a text can be no argument, variable or name; empty if it can."""
    if len(text) > most:
        return f"is longer than {most}"
    if "\0" in text:
        return "has a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "has half a surrogate pair"
    return ""


def parse_spec(raw: object) -> Spec:
    """The spec, or RequestRefused with every problem of it."""
    problems: list[str] = []
    fields = _Fields(raw, "spec", problems)
    processes: dict[str, Process] = {}
    for index, item in enumerate(fields.items("processes", PROCESSES_MAX)):
        process = _process(_Fields(item, f"process {index + 1}", problems))
        if process.id in processes:
            problems.append(f"process {index + 1}: {process.id} is there twice")
        processes[process.id] = process
    steps: dict[int, Step] = {}
    for index, item in enumerate(fields.items("steps", STEPS_MAX)):
        step = _step(_Fields(item, f"step {index + 1}", problems), processes)
        if step.number in steps:
            problems.append(f"step {index + 1}: the number {step.number} is there twice")
        if step.at_s is None:
            problems.append(f"step {index + 1}: at_s is missing")
        steps[step.number] = step
    spec = Spec(
        run=fields.name("run"),
        digest=fields.text("digest", most=256, needed=True),
        policy=fields.choice("policy", POLICIES, "continue"),
        stop_at_s=fields.number("stop_at_s", TIME_MAX_S),
        processes=processes,
        steps=tuple(steps.values()),
    )
    _refuse(problems)
    return spec


def parse_process(raw: object) -> Process:
    problems: list[str] = []
    process = _process(_Fields(raw, "process", problems))
    _refuse(problems)
    return process


def parse_step(raw: object, processes: Mapping[str, Process]) -> Step:
    problems: list[str] = []
    step = _step(_Fields(raw, "step", problems), processes)
    _refuse(problems)
    return step


def _refuse(problems: list[str]) -> None:
    if problems:
        more = f" and {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
        raise RequestRefused(Code.BAD_REQUEST, "; ".join(problems[:PROBLEMS_SHOWN])[:4000] + more)


def _process(fields: _Fields) -> Process:
    kind = fields.choice("kind", KINDS)
    arguments = fields.items("arguments", ARGUMENTS_MAX)
    for index, argument in enumerate(arguments):
        why = _unusable(argument, TEXT_LENGTH_MAX) if isinstance(argument, str) else "is no text"
        if why:
            fields.wrong(f"argument {index + 1}", why)
            arguments = []
            break
    if kind == "command" and not (arguments and arguments[0]):
        fields.wrong("arguments", "name no command")
    environment = _environment(fields)
    size = sum(map(len, arguments)) + sum(len(name) + len(value) for name, value in environment.items())
    if size > PROCESS_LENGTH_MAX:
        fields.wrong("arguments and environment", f"are longer than {PROCESS_LENGTH_MAX} together")
    return Process(
        id=fields.name("id"),
        kind=kind,
        word=fields.name("word") if kind == "runtime" else "",
        arguments=tuple(arguments),
        environment=environment,
        speaks=fields.text("speaks", most=PEER_LENGTH_MAX),
        grace_s=fields.number("grace_s", GRACE_MAX_S, default=GRACE_S) or 0.0,
    )


def _environment(fields: _Fields) -> dict[str, str]:
    raw = fields.raw.get("environment", {})
    if not isinstance(raw, dict) or len(raw) > VARIABLES_MAX:
        fields.wrong("environment", f"is no object of at most {VARIABLES_MAX} variables")
        return {}
    for name, value in raw.items():
        why = _unusable(value, TEXT_LENGTH_MAX) if isinstance(value, str) else "is no text"
        if not name or "=" in name or _unusable(name, 256):
            fields.wrong("environment", "has a variable whose name cannot be one")
            return {}
        if why:
            fields.wrong(f"variable {name}", why)
            return {}
    return dict(raw)


def _step(fields: _Fields, processes: Mapping[str, Process]) -> Step:
    action = fields.choice("action", ACTIONS)
    number = fields.raw.get("number")
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= NUMBER_MAX:
        fields.wrong("number", "is no whole number from 1 on")
        number = 0
    process = fields.text("process", most=PEER_LENGTH_MAX)
    if action != "mark" and process not in processes:
        fields.wrong("process", f"{process[:100]!r} is not in the spec" if process else "is missing")
    for_s = fields.number("for_s", TIME_MAX_S)
    if for_s is not None and action and action not in LEASED:
        fields.wrong("for_s", f"means nothing for {action}")
    step = Step(
        number=number,
        at_s=fields.number("at_s", TIME_MAX_S),
        action=action,
        process=process,
        fault=fields.choice("fault", FAULTS) if action == "fault" else "",
        peer=fields.text("peer", most=PEER_LENGTH_MAX, needed=action == "fault"),
        value=fields.number("value", RATE_MAX),
        for_s=for_s,
        text=fields.text("text", most=4096, needed=action == "mark"),
    )
    _check_value(step, fields)
    return step


def _check_value(step: Step, fields: _Fields) -> None:
    most = {"delay": 3600.0, "loss": 1.0, "rate": RATE_MAX}.get(step.fault, math.inf)
    if step.fault in ("delay", "loss", "rate") and (step.value is None or step.value > most):
        fields.wrong("value", f"of a {step.fault} is no number from 0 to {most:g}")
    if step.fault == "rate" and step.value == 0:
        fields.wrong("value", "of a rate is 0: that would be a cut")
