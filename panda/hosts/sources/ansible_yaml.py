"""Reads an Ansible inventory in its YAML spelling. Runs no Ansible."""

from __future__ import annotations

from panda.hosts.sources.ansible_groups import Inventory, Variables
from panda.hosts.sources.ansible_vars import Value
from panda.hosts.sources.entry import Entry
from panda.hosts.sources.refusal import Findings, shown
from panda.hosts.sources.yaml_tree import Node, read_tree

VISITS_MAX = 500_000
"""Aliases let a small file describe a large tree: this is how much of one is walked."""


def read_ansible_yaml(text: str, path: str = "") -> list[Entry]:
    findings = Findings(path)
    root = read_tree(text, findings)
    return _Reader(Inventory(findings)).read(root) if root is not None else []


class _Reader:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._findings = inventory.findings
        self._visits = 0

    def read(self, root: Node) -> list[Entry]:
        stack: list[tuple[str | None, Node, Node]] = []
        for key, node in self._pairs(root, "an inventory is a mapping of groups"):
            stack.append((None, key, node))
        while stack:
            parent, key, node = stack.pop()
            name = key.scalar or ""
            if not self._inventory.group(name, key.line, key.column):
                continue
            if parent is not None:
                self._inventory.child(parent, name, key.line, key.column)
            stack += self._group(name, node)
        return self._inventory.entries()

    def _group(self, group: str, node: Node) -> list[tuple[str | None, Node, Node]]:
        """Reads a group and gives back its children."""
        children: list[tuple[str | None, Node, Node]] = []
        for key, part in self._pairs(node, "a group is a mapping of hosts, vars and children"):
            if key.scalar == "hosts":
                for name, variables in self._pairs(part, "hosts is a mapping of names"):
                    said = self._variables(variables)
                    self._inventory.hosts(group, name.scalar or "", said, name.line, name.column)
            elif key.scalar == "vars":
                for word, value in self._variables(part).items():
                    self._inventory.group_variable(group, word, value)
            elif key.scalar == "children":
                found = self._pairs(part, "children is a mapping of groups")
                children += [(group, name, child) for name, child in found]
            else:
                hint = "a group has hosts, vars and children"
                message = f"not a part of a group: {shown(key.scalar or '')}"
                self._findings.add(message, hint, key.line, key.column)
        return children

    def _variables(self, node: Node) -> Variables:
        found: Variables = {}
        for key, value in self._pairs(node, "variables are a mapping"):
            if key.scalar is not None and value.scalar is not None and not value.empty:
                found[key.scalar] = Value(value.scalar, value.line, value.column)
            elif key.scalar == "panda_aliases" and value.items is not None:
                names = " ".join(item.scalar or "" for item in value.items)
                found[key.scalar] = Value(names, value.line, value.column)
        return found

    def _pairs(self, node: Node, expected: str) -> list[tuple[Node, Node]]:
        if node.empty:
            return []
        pairs = node.pairs
        if pairs is None:
            self._findings.add("not a mapping", expected, node.line, node.column)
            return []
        self._visits += 1 + len(pairs)
        if self._visits > VISITS_MAX:
            self._findings.add("too large for an inventory", "", node.line, node.column)
            self._findings.check()
        return pairs
