"""Decides what a topology in YAML says: hosts, brokers, clients, workloads, commands and a schedule.

Each entry becomes the same step that a line of text would be, so nothing after this file knows the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker_runtime.addresses import Address
from broker_runtime.dialect.options import nearest
from panda.topology.commands import said_by
from panda.topology.entries import ENTRY_KEYS, Argv, Entry, client_argv, workload_argv
from panda.topology.lines import Lines, read_line
from panda.topology.model import (
    LEASED_ACTIONS,
    LINK_ACTIONS,
    PROCESS_ACTIONS,
    VALUED_ACTIONS,
    Action,
    Place,
    Step,
)
from panda.topology.nodes import Entries, Items, Node, Scalar, read_nodes
from panda.topology.problems import error, shown
from panda.topology.scanning import quote, quote_remark, refused_character

SECTIONS: Final = ("name", "hosts", "brokers", "clients", "workloads", "commands", "schedule")
_VERBS: Final = tuple(action.lower() for action in Action if action is not Action.ADD)
_STEP_KEYS: Final = ("at", *_VERBS, "host", "value", "for")
_STEP_EXAMPLE: Final = "such as {at: 10, cut: [A, B], for: 1s}, or the line 10 CUT A B for 1s"


def read_document(text: str, path: str) -> tuple[str, Lines]:
    """The name that it gives itself, and its steps."""
    lines = Lines()
    node, problems = read_nodes(text, path)
    lines.problems += problems
    if node is None:
        if not problems:
            lines.problems.append(error(Place(path), "there is nothing in it", "begin with brokers:"))
        return "", lines
    if not isinstance(node, Entries):
        lines.problems.append(error(node.place, "a topology is a mapping", f"of {', '.join(SECTIONS)}"))
        return "", lines
    return _Document(node, lines).read(), lines


class _Document:
    def __init__(self, root: Entries, lines: Lines) -> None:
        self._root = root
        self._lines = lines
        self._hosts: dict[str, str] = {}
        self._addresses: dict[str, Address] = {}

    def read(self) -> str:
        _refuse_unknown(self._root, SECTIONS, self._lines)
        self._read_hosts()
        brokers = list(self._entries("brokers"))
        for broker in brokers:
            self._note_address(broker)
        for broker in brokers:
            self._add(broker, broker.broker_argv(self._addresses))
        for client in self._entries("clients"):
            self._add(client, client_argv(client, self._addresses))
        for workload in self._entries("workloads"):
            self._add(workload, workload_argv(workload, self._addresses))
        for command in self._entries("commands"):
            if not command.has("command"):
                command.missing("command")
            self._add(command, command.command())
        for step in self._items("schedule"):
            self._step(step)
        name = self._root.entries.get("name")
        return name.text if isinstance(name, Scalar) else ""

    def _read_hosts(self) -> None:
        hosts = self._root.entries.get("hosts")
        if hosts is None or (isinstance(hosts, Scalar) and hosts.empty):
            return
        if not isinstance(hosts, Entries):
            self._refuse(hosts.place, "hosts are a mapping of names to addresses", "such as a: 10.0.1.1")
            return
        for name, node in hosts.entries.items():
            address: Node | None = node
            if isinstance(node, Entries):
                _refuse_unknown(node, ("address",), self._lines)
                address = node.entries.get("address")
            if not isinstance(address, Scalar):
                self._refuse(hosts.keys[name], f"{shown(name)} has no address", "such as a: 10.0.1.1")
            else:
                self._hosts[name] = name if address.empty else address.text

    def _items(self, section: str) -> Iterator[Node]:
        node = self._root.entries.get(section)
        if isinstance(node, Items):
            yield from node.items
        elif node is not None and not (isinstance(node, Scalar) and node.empty):
            self._refuse(self._root.keys[section], f"{section} is a list", "begin each entry with a dash")

    def _entries(self, section: str) -> Iterator[Entry]:
        for node in self._items(section):
            if isinstance(node, Entries):
                _refuse_unknown(node, ENTRY_KEYS[section], self._lines)
                yield Entry(node, self._lines, self._hosts)
            else:
                self._refuse(node.place, "this is no mapping", f"of {', '.join(ENTRY_KEYS[section])}")

    def _note_address(self, broker: Entry) -> None:
        command = broker.command()
        if command is not None:
            address = said_by(command.words, broker.host).listen
        else:
            address = broker.listen()
        for name in {broker.id, address.id} if address is not None else ():
            assert address is not None
            self._addresses.setdefault(name, address)

    def _add(self, entry: Entry, argv: Argv | None) -> None:
        if argv is None or not entry.complete():
            self._lines.unread.add(entry.id)
            return
        spots = {"process": entry.where("id"), "host": entry.where("host"), "time": entry.where("at")}
        spots |= {f"argument {index}": place for index, place in enumerate(argv.places)}
        self._lines.steps.append(
            Step(
                number=0,
                at_s=entry.at_s,
                action=Action.ADD,
                place=entry.place,
                process=entry.id,
                host=entry.host,
                command=tuple(argv.words),
                spots=spots,
            )
        )

    def _step(self, node: Node) -> None:
        if isinstance(node, Scalar):
            read_line(node.place, node.text, self._lines, exact=not node.quoted)
        elif isinstance(node, Entries):
            line = self._line(node)
            if line:
                read_line(node.place, line, self._lines, exact=False)
        else:
            self._refuse(node.place, "a step is a line or a mapping", _STEP_EXAMPLE)

    def _line(self, step: Entries) -> str:
        """The line of text that says the same; empty when it was refused."""
        if _refuse_unknown(step, _STEP_KEYS, self._lines):
            return ""
        verbs = [key for key in step.entries if key in _VERBS]
        at = step.entries.get("at")
        if len(verbs) != 1 or not isinstance(at, Scalar):
            self._refuse(step.place, "a step has a time and one verb", _STEP_EXAMPLE)
            return ""
        action = Action(verbs[0].upper())
        words = self._operands(action, step.entries[verbs[0]])
        for key, allowed in (
            ("host", action in PROCESS_ACTIONS),
            ("value", action in VALUED_ACTIONS),
            ("for", action in LEASED_ACTIONS),
        ):
            extra = step.entries.get(key)
            if extra is not None and (not allowed or not isinstance(extra, Scalar)):
                self._refuse(step.keys[key], f"{key} does not belong to {verbs[0]}", _STEP_EXAMPLE)
                return ""
            if isinstance(extra, Scalar) and words is not None:
                text = self._hosts.get(extra.text, extra.text) if key == "host" else extra.text
                words += f" for {quote(text)}" if key == "for" else f" {quote(text)}"
        if words is None:
            self._refuse(step.keys[verbs[0]], f"this is not what {verbs[0]} takes", _STEP_EXAMPLE)
            return ""
        return f"{quote(at.text)} {action} {words}"

    def _operands(self, action: Action, node: Node) -> str | None:
        if isinstance(node, Scalar):
            if refused_character(node.text) is not None:
                return None
            if action is Action.MARK:
                return quote_remark(node.text)
            if action is Action.HEAL and (node.empty or node.text == "all"):
                return ""
            return quote(node.text) if action is Action.HEAL or action in PROCESS_ACTIONS else None
        if not isinstance(node, Items) or action not in LINK_ACTIONS | {Action.HEAL}:
            return None
        groups = [_names(each) for each in node.items]
        if action is Action.PARTITION:
            return " | ".join(",".join(map(quote, group)) for group in groups)
        return " ".join(quote(name) for group in groups for name in group)

    def _refuse(self, place: Place, message: str, hint: str) -> None:
        self._lines.problems.append(error(place, message, hint))


def _names(node: Node) -> list[str]:
    if isinstance(node, Scalar):
        return [node.text]
    return [each.text for each in node.items if isinstance(each, Scalar)] if isinstance(node, Items) else []


def _refuse_unknown(node: Entries, known: tuple[str, ...], lines: Lines) -> bool:
    """Tell of every key that does not belong here."""
    unknown = [key for key in node.entries if key not in known]
    for key in unknown:
        hint = nearest(key, known).strip(" ()") or f"known here are {', '.join(known)}"
        lines.problems.append(error(node.keys[key], f"unknown key {shown(key)}", hint))
    return bool(unknown)
