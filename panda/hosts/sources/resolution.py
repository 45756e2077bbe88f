"""Decides which host a topology's name means: by a source of hosts, by itself, or on this machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from panda.hosts.host import Host
from panda.hosts.loopback import FIRST
from panda.hosts.sources.entry import HOSTS_MAX, Entry, name_problem
from panda.hosts.sources.refusal import Problem, SourceRefused, shown
from panda.hosts.sources.ssh_config import SshConfig

LOCAL_HOSTS_MAX = 65_000
_HOSTS_PER_OCTET = 254
NEAREST_AMONG_MAX = 5_000

_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Hosts:
    """The hosts of one source, found by name, by login address, and by any other address they have."""

    def __init__(self, entries: Sequence[Entry], path: str = "", patterns: SshConfig | None = None) -> None:
        self.path = path
        self.entries = tuple(entries)
        self._patterns = patterns
        self._by_name = {entry.name: entry for entry in entries}
        self._by_address: dict[str, list[Entry]] = {}
        for entry in entries:
            for other in dict.fromkeys((entry.address, *entry.aliases)):
                if other and other != entry.name:
                    self._by_address.setdefault(other, []).append(entry)

    def __len__(self) -> int:
        return len(self.entries)

    def names(self) -> list[str]:
        return list(self._by_name)

    def find(self, name: str) -> Host | Problem:
        """Names come before addresses; an address that several hosts have means none of them."""
        if entry := self._by_name.get(name):
            return entry.host(name)
        entries = self._by_address.get(name, [])
        if len(entries) == 1:
            return entries[0].host(name)
        if entries:
            which = ", ".join(entry.name for entry in entries[:3])
            return Problem(f"the host {name} is ambiguous", f"{which} have this address", self.path)
        if self._patterns is not None and self._patterns.knows(name):
            return self._patterns.entry(name, self.path).host(name)
        return Problem(f"no host {shown(name)}", self._nearest(name), self.path)

    def _nearest(self, name: str) -> str:
        known = [*self._by_name, *self._by_address][:NEAREST_AMONG_MAX]
        near = difflib.get_close_matches(name[:253], known, n=1, cutoff=0.6)
        if near:
            return f"did you mean {near[0]}?"
        count = len(self._by_name)
        return (
            f"it knows {', '.join(list(self._by_name)[:3])}{' …' if count > 3 else ''}"
            if count
            else "it is empty"
        )


def resolve(names: Iterable[str], source: Hosts | None = None) -> list[Host]:
    """A host for each name, in the order given, each once; refuses with all problems if there are any.

    Without a source a host is reached by its own name; ssh_config has its word when the connection is made.
    """
    hosts: list[Host] = []
    problems: list[Problem] = []
    wanted = list(dict.fromkeys(names))
    if len(wanted) > HOSTS_MAX:
        raise SourceRefused([Problem(f"more than {HOSTS_MAX} hosts")])
    for name in wanted:
        if why := name_problem(name):
            problems.append(Problem(why))
            continue
        try:
            found = source.find(name) if source is not None else Host(name)
        except SourceRefused as error:
            problems += error.problems
            continue
        if isinstance(found, Problem):
            problems.append(found)
        else:
            hosts.append(found)
    if problems:
        raise SourceRefused(problems)
    return hosts


def local_part(number: int) -> str:
    """The last two numbers of the address of the n-th local host, from 0."""
    high, low = divmod(number, _HOSTS_PER_OCTET)
    return f"{high}.{low + 1}"


def local_hosts(names: Iterable[str], folder: Path, network: int = FIRST) -> dict[str, Host]:
    """Every host of a topology on this machine: a loopback address and a folder of its own, by order."""
    hosts: dict[str, Host] = {}
    for number, name in enumerate(dict.fromkeys(names)):
        if number >= LOCAL_HOSTS_MAX:
            raise SourceRefused([Problem(f"more than {LOCAL_HOSTS_MAX} hosts on one machine")])
        if why := name_problem(name):
            raise SourceRefused([Problem(why)])
        # A name with characters that a path should not have gets a folder by number: `@` is in no name.
        place = name if _FOLDER.fullmatch(name) else f"@{number + 1}"
        hosts[name] = Host(
            name, address=f"127.{network}.{local_part(number)}", root=str(folder / place), local=True
        )
    return hosts
