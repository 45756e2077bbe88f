"""Decides which variables hold for a host of an Ansible inventory: group under group, then the host's own."""

from __future__ import annotations

from dataclasses import dataclass, field

from panda.hosts.sources.ansible_vars import READ, Value, entry_of
from panda.hosts.sources.entry import HOSTS_MAX, Entry, name_problem
from panda.hosts.sources.ranges import BadRange, expand_ansible
from panda.hosts.sources.refusal import Findings, shown

GROUPS_MAX = 10_000
CHILDREN_MAX = 100_000

Variables = dict[str, Value]


@dataclass(slots=True)
class _Group:
    variables: Variables = field(default_factory=dict)
    parents: dict[str, tuple[int, int]] = field(default_factory=dict)


class Inventory:
    """What the readers of both spellings fill; the hosts come out with their variables applied."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._groups: dict[str, _Group] = {}
        self._hosts: dict[str, Variables] = {}
        self._memberships: dict[str, dict[str, None]] = {}
        self._children = 0

    def group(self, name: str, line: int, column: int) -> bool:
        """Whether this is a group now; if not, it has been refused."""
        if name not in self._groups:
            if not name or not name.isprintable() or set(name) & set(" []:,/"):
                self.findings.add(f"not a group name: {shown(name)}", "", line, column)
                return False
            if len(self._groups) >= GROUPS_MAX:
                self.findings.add(f"more than {GROUPS_MAX} groups", "", line, column)
                self.findings.check()
            self._groups[name] = _Group()
        return True

    def child(self, parent: str, child: str, line: int, column: int) -> None:
        self._children += 1
        if self._children > CHILDREN_MAX:
            self.findings.add(f"groups have more than {CHILDREN_MAX} children", "", line, column)
            self.findings.check()
        if self.group(child, line, column):
            self._groups[child].parents.setdefault(parent, (line, column))

    def group_variable(self, group: str, name: str, value: Value) -> None:
        if name in READ:
            self._groups[group].variables[name] = value

    def hosts(self, group: str, pattern: str, variables: Variables, line: int, column: int) -> None:
        """A host, or a range of them, in a group; `all` and `ungrouped` are groups like any other here."""
        try:
            names = expand_ansible(pattern)
        except BadRange as error:
            hint = "a range looks like node[01:20]"
            self.findings.add(str(error), hint, line, column + error.column)
            return
        for name in names:
            if problem := name_problem(name):
                self.findings.add(problem, "", line, column)
                return
            self._hosts.setdefault(name, {}).update(
                {word: value for word, value in variables.items() if word in READ}
            )
            self._memberships.setdefault(name, {})[group] = None
        if len(self._hosts) > HOSTS_MAX:
            self.findings.add(f"more than {HOSTS_MAX} hosts", "", line, column)
            self.findings.check()

    def entries(self) -> list[Entry]:
        depths = self._depths()
        self.findings.check()
        shared: dict[frozenset[str], tuple[tuple[str, ...], Variables]] = {}
        entries = []
        for name, own in self._hosts.items():
            direct = frozenset(self._memberships[name])
            if direct not in shared:
                shared[direct] = self._inherited(direct, depths)
            groups, inherited = shared[direct]
            entries.append(entry_of(name, {**inherited, **own}, groups, self.findings))
        self.findings.check()
        return entries

    def _depths(self) -> dict[str, int]:
        """How far a group is below those without parents, by the longest way; refuses a circle."""
        waiting = {name: len(group.parents) for name, group in self._groups.items()}
        children: dict[str, list[str]] = {name: [] for name in self._groups}
        for name, group in self._groups.items():
            for parent in group.parents:
                children[parent].append(name)
        ready = [name for name, count in waiting.items() if count == 0]
        depths = dict.fromkeys(ready, 0)
        while ready:
            name = ready.pop()
            for child in children[name]:
                depths[child] = max(depths.get(child, 0), depths[name] + 1)
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        circle = next((name for name, count in waiting.items() if count > 0), None)
        if circle is not None:
            line, column = next(iter(self._groups[circle].parents.values()))
            self.findings.add(f"the group {circle} is among its own children", "", line, column)
        return depths

    def _inherited(self, direct: frozenset[str], depths: dict[str, int]) -> tuple[tuple[str, ...], Variables]:
        above, stack = set(direct), list(direct)
        while stack:
            for parent in self._groups[stack.pop()].parents:
                if parent not in above:
                    above.add(parent)
                    stack.append(parent)
        # `all` is above everybody, whether or not the file says so.
        above |= {"all"} & set(self._groups)
        order = sorted(above, key=lambda name: (name != "all", depths[name], name))
        merged: Variables = {}
        for name in order:
            merged.update(self._groups[name].variables)
        return tuple(order), merged
