"""Reads an Ansible inventory in its INI spelling. Runs no Ansible."""

from __future__ import annotations

import re
import shlex

from panda.hosts.sources.ansible_groups import Inventory, Variables
from panda.hosts.sources.ansible_vars import Value
from panda.hosts.sources.entry import Entry, port_number
from panda.hosts.sources.refusal import Findings, shown

_SECTION = re.compile(r"\[(?P<group>[^\]:]+)(?::(?P<kind>[^\]]*))?\]\s*(?:[#;].*)?")
_WITH_PORT = re.compile(r"(?P<name>(?:[^:\[\]]|\[[^\]]*\])+):(?P<port>[0-9]+)")


def read_ansible_ini(text: str, path: str = "") -> list[Entry]:
    return _Reader(Inventory(Findings(path))).read(text)


class _Reader:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._findings = inventory.findings
        self._group: str | None = "ungrouped"
        self._kind = "hosts"

    def read(self, text: str) -> list[Entry]:
        self._inventory.group("ungrouped", 0, 0)
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if not stripped or stripped[0] in "#;":
                continue
            column = len(line) - len(line.lstrip()) + 1
            if stripped.startswith("["):
                self._section(stripped, number, column)
            elif self._group is not None:
                self._line(self._group, stripped, number, column)
        return self._inventory.entries()

    def _section(self, line: str, number: int, column: int) -> None:
        """After a section that was refused, lines are skipped: they would be refused for its sake."""
        parts = _SECTION.fullmatch(line)
        self._group = None
        if parts is None:
            self._findings.add(
                f"not a section: {shown(line)}", "a section looks like [group]", number, column
            )
            return
        kind = parts["kind"] if parts["kind"] is not None else "hosts"
        if kind not in ("hosts", "vars", "children"):
            hint = "sections are [group], [group:vars] and [group:children]"
            self._findings.add(f"an unknown kind of section: {shown(kind)}", hint, number, column)
        elif self._inventory.group(parts["group"].strip(), number, column):
            self._group, self._kind = parts["group"].strip(), kind

    def _line(self, group: str, line: str, number: int, column: int) -> None:
        if self._kind == "hosts":
            self._host(group, line, number, column)
            return
        if self._kind == "children":
            self._inventory.child(group, line.partition("#")[0].strip(), number, column)
            return
        name, equals, value = line.partition("=")
        if not equals:
            self._findings.add(f"not a variable: {shown(line)}", "write name=value", number, column)
            return
        self._inventory.group_variable(
            group, name.strip(), Value(_unquoted(value.strip()), number, column + len(name) + 1)
        )

    def _host(self, group: str, line: str, number: int, column: int) -> None:
        try:
            pattern, *words = shlex.split(line, comments=True)
        except ValueError:
            self._findings.add("an unbalanced quote", "", number, column)
            return
        variables: Variables = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                hint = "after a host come name=value pairs"
                self._findings.add(f"not a variable: {shown(word)}", hint, number, column)
                return
            variables[name] = Value(value, number, column + max(0, line.find(name + "=")))
        if with_port := _WITH_PORT.fullmatch(pattern):
            pattern = with_port["name"]
            if not port_number(with_port["port"]):
                self._findings.add(f"no port: {shown(with_port['port'])}", "", number, column)
                return
            variables.setdefault("ansible_port", Value(with_port["port"], number, column))
        self._inventory.hosts(group, pattern, variables, number, column)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value
