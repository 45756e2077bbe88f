"""Reads YAML into a tree that knows its places: no tag is obeyed, and depth and size are bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from panda.hosts.sources.refusal import Findings

DEPTH_MAX = 40
NODES_MAX = 500_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    line: int
    column: int
    scalar: str | None = None
    pairs: list[tuple[Node, Node]] | None = None
    items: list[Node] | None = None
    plain: bool = False
    open: list[Node] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Null, as YAML writes it."""
        return self.scalar is not None and self.plain and self.scalar in ("", "~", "null", "Null", "NULL")


def read_tree(text: str, findings: Findings) -> Node | None:
    """The first document, or nothing if there is none; refuses what is not YAML."""
    try:
        return _Builder(findings).build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        findings.add(f"not YAML: {error.problem or error.context}", "", line, column)
    except (yaml.YAMLError, ValueError) as error:  # a character that YAML forbids, a lone surrogate
        findings.add(f"not YAML: {' '.join(str(error).split())[:200]}")
    findings.check()
    return None


class _Builder:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._anchors: dict[str, Node] = {}
        self._stack: list[tuple[Node, str | None]] = []
        self._root: Node | None = None
        self._count = 0

    def build(self, text: str) -> Node | None:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if isinstance(event, yaml.CollectionEndEvent):
                node, anchor = self._stack.pop()
                node.open.clear()
                if anchor:
                    self._anchors[anchor] = node
            elif isinstance(event, yaml.NodeEvent):
                self._node(event)
        return self._root

    def _node(self, event: yaml.NodeEvent) -> None:
        mark = event.start_mark
        node = Node(mark.line + 1, mark.column + 1) if mark else Node(0, 0)
        self._count += 1
        if self._count > NODES_MAX or len(self._stack) > DEPTH_MAX:
            self._refuse("too deep or too large for a list of hosts", node)
        anchor: str | None = event.anchor
        if isinstance(event, yaml.AliasEvent):
            if anchor not in self._anchors:
                self._refuse(f"the alias *{anchor} stands for nothing that is complete", node)
            self._place(self._anchors[str(anchor)])
            return
        self._place(node)
        if isinstance(event, yaml.ScalarEvent):
            node.scalar, node.plain = event.value, not event.style
            if anchor:
                self._anchors[anchor] = node
            return
        if isinstance(event, yaml.MappingStartEvent):
            node.pairs = []
        else:
            node.items = []
        self._stack.append((node, anchor))

    def _place(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1][0]
        if parent.items is not None:
            parent.items.append(node)
            return
        assert parent.pairs is not None
        if parent.open:
            parent.pairs.append((parent.open.pop(), node))
        else:
            parent.open.append(node)

    def _refuse(self, message: str, node: Node) -> None:
        self._findings.add(message, "", node.line, node.column)
        self._findings.check()
