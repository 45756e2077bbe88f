"""Decides how a topology is written, as text or as YAML; what it writes reads back as the same steps.

Comments, names of hosts and the template that it came from are not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from broker_runtime.dialect.options import Option
from broker_runtime.dialect.scripts import BROKER as BROKER_TABLE
from broker_runtime.dialect.scripts import TABLES
from panda.topology.assembly import assemble, broker_finder
from panda.topology.documents import read_document
from panda.topology.entries import SCRIPTS, URI, WORDS
from panda.topology.model import (
    BROKER,
    CLIENT,
    COMMAND,
    Action,
    Process,
    Step,
    Topology,
)
from panda.topology.quantities import write_duration, write_rate, write_share, write_time
from panda.topology.scanning import quote, quote_remark

_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./-]*(?::[0-9]+)?")
_PLAIN_LINE = re.compile(r"[A-Za-z0-9/][ -~]*[!-9;-~]")
_YAML_MARK = re.compile(r":[ \t]|[ \t]#")
_SPECIAL: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off"))
_TEMPLATE_MARK = re.compile(r"\{(?=[{%#])")
_WRITERS: Final = {Action.DELAY: write_duration, Action.LOSS: write_share, Action.RATE: write_rate}


def write_text(topology: Topology, heading: Iterable[str] = ()) -> str:
    """One line for each step, in order of time."""
    lines = [f"# {line}".rstrip() for line in heading]
    return "\n".join([*lines, *map(write_step, topology.steps)]) + "\n"


def write_step(step: Step) -> str:
    words = [write_time(step.at_s), str(step.action)]
    if step.action is Action.MARK:
        return " ".join([*words, quote_remark(step.text)])
    if step.process:
        words += [quote(each) for each in (step.process, step.host) if each]
    words += map(quote, step.command)
    if step.action is Action.PARTITION:
        words.append(" | ".join(",".join(map(quote, group)) for group in step.groups))
    else:
        words += [quote(name) for group in step.groups for name in group]
    if step.value is not None:
        words.append(_WRITERS[step.action](step.value))
    if step.for_s is not None:
        words += ["for", write_duration(step.for_s)]
    return " ".join(words)


def write_yaml(topology: Topology, heading: Iterable[str] = ()) -> str:
    """By sections; where that would change what happens at one moment, as a schedule of lines."""
    comments = [f"# {line}".rstrip() for line in heading]
    name = [f"name: {_scalar(topology.name)}"] if topology.name else []
    for body in (_sections(topology), _schedule(topology.steps)):
        text = "\n".join([*comments, *name, *body]) + "\n"
        if _reads_back(text, topology):
            return text
    raise AssertionError("a schedule of lines does not read back")


def _reads_back(text: str, topology: Topology) -> bool:
    name, lines = read_document(text, "")
    read = assemble(name, text, lines.steps, lines.unread)
    return not lines.problems and (read.steps, read.processes) == (topology.steps, topology.processes)


def _schedule(steps: Iterable[Step]) -> list[str]:
    return ["schedule:", *(f"  - {_line(write_step(step))}" for step in steps)]


def _sections(topology: Topology) -> list[str]:
    sections = {BROKER: ["brokers:"], CLIENT: ["clients:"], COMMAND: ["commands:"]}
    names = {key: each.id for key, each in broker_finder(topology.brokers).items()}
    for process in topology.processes:
        sections[process.kind] += _entry(process, names)
    rest = [step for step in topology.steps if step.action is not Action.ADD]
    written = [line for section in sections.values() if len(section) > 1 for line in section]
    return written + (_schedule(rest) if rest else [])


def _entry(process: Process, names: Mapping[tuple[str, int], str]) -> Iterator[str]:
    keys = {"id": _scalar(process.id), "host": _scalar(process.host)}
    if process.at_s:
        keys["at"] = write_time(process.at_s)
    described: dict[str, str] | None = None
    if process.kind == BROKER:
        described = _broker(process, names)
    elif process.kind == CLIENT:
        described = _client(process, names)
    keys |= described or {"command": _line(" ".join(map(quote, process.command)))}
    for number, (key, value) in enumerate(keys.items()):
        yield f"  {' ' if number else '-'} {key}: {value}"


def _broker(process: Process, names: Mapping[tuple[str, int], str]) -> dict[str, str] | None:
    """The keys of a broker, if its command is as they would write it."""
    listen = process.listen
    neighbours = [names.get((each.host, each.port), "") for each in process.neighbours]
    if listen is None or not all(neighbours):
        return None
    uri = "-uri" in process.arguments
    who = ["-uri", listen.uri] if uri else ["-hostname", process.host]
    who += [] if uri else ["-p", str(listen.port), "-i", process.speaks]
    if neighbours:
        who += ["-n", ",".join(each.uri if uri else str(each) for each in process.neighbours)]
    options = _options(process.arguments, BROKER_TABLE, who[::2])
    if options is None or list(process.arguments) != (who + options.words if uri else options.words + who):
        return None
    script = SCRIPTS[URI if uri else WORDS]
    keys = {
        "speaks": _scalar(process.speaks) if process.speaks != process.id else "",
        "port": str(listen.port),
        "dialect": URI if uri else "",
        "script": _scalar(process.command[0]) if process.command[0] != script else "",
        "neighbours": f"[{', '.join(map(_scalar, neighbours))}]" if neighbours else "",
        "options": options.mapping,
    }
    return {key: value for key, value in keys.items() if value}


def _client(process: Process, names: Mapping[tuple[str, int], str]) -> dict[str, str] | None:
    """The keys of a client, if its command is `script -i ID -b BROKER option …`."""
    broker = names.get((process.broker.host, process.broker.port)) if process.broker else None
    options = _options(process.arguments[4:], TABLES[process.word], ())
    if broker is None or options is None:
        return None
    if list(process.arguments) != ["-i", process.speaks, "-b", str(process.broker), *options.words]:
        return None
    keys = {
        "speaks": _scalar(process.speaks) if process.speaks != process.id else "",
        "script": _scalar(process.command[0]),
        "broker": _scalar(broker),
        "options": options.mapping,
    }
    return {key: value for key, value in keys.items() if value}


class _Options(NamedTuple):
    words: list[str]
    mapping: str


def _options(arguments: Iterable[str], table: Iterable[Option], own: Sequence[str]) -> _Options | None:
    """The options without those that have keys of their own; None if they make no mapping."""
    by_name = {name: option for option in table for name in option.names}
    pairs: dict[str, str] = {}
    words: list[str] = []
    left = list(arguments)
    while left:
        name = left.pop(0)
        option = by_name.get(name)
        key = name.lstrip("-")
        if option is None or key in pairs or (option.value and not left):
            return None
        taken = [left.pop(0)] if option.value else []
        if name not in own:
            words += [name, *taken]
            pairs[key] = _scalar(taken[0]) if taken else "true"
    mapping = "{" + ", ".join(f"{_scalar(key)}: {value}" for key, value in pairs.items()) + "}"
    return _Options(words, mapping if pairs else "")


def _scalar(text: str) -> str:
    """Plain where it is safe anywhere; else in quotes, and never so that it would be taken for a template."""
    if _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL:
        return text
    return _TEMPLATE_MARK.sub(r"\\x7b", json.dumps(text, ensure_ascii=False))


def _line(text: str) -> str:
    """The same for a text that ends its own line."""
    if _PLAIN_LINE.fullmatch(text) and not _TEMPLATE_MARK.search(text) and not _YAML_MARK.search(text):
        return text
    return _scalar(text)
