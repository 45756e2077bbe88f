"""Reads an ssh_config: its hosts, and what it says about a name that its patterns match.

Runs nothing: `Match exec` never matches, and a ProxyCommand is understood only where it says `ssh -W`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from panda.hosts.sources.entry import (
    Entry,
    jump_problem,
    name_problem,
    path_problem,
    port_number,
    user_problem,
)
from panda.hosts.sources.refusal import Findings, shown

INCLUDE_DEPTH_MAX = 16
LINES_MAX = 200_000
KEYS_MAX = 64
PATTERNS_MAX = 4096
"""Of all Host and Match lines: each name is held against each of them."""
PATTERN_LENGTH_MAX = 1024

_LINE = re.compile(r"(?P<word>[^\s=#]+)(?:\s*=\s*|\s+)(?P<rest>.*)")
_READ = {"hostname", "user", "port", "identityfile", "proxyjump", "proxycommand"}
_MATCH_WORDS = {"host", "originalhost"}

Include = Callable[[str], list[tuple[str, str]]]
"""The files (path, text) that an Include line names."""


@dataclass(frozen=True, slots=True)
class _Said:
    word: str
    value: str
    line: int
    path: str


@dataclass(slots=True)
class _Block:
    patterns: tuple[str, ...]
    on_address: bool = False
    """A `Match host` looks at the HostName found so far, not at the name asked for."""
    never: bool = False
    said: list[_Said] = field(default_factory=list)


class SshConfig:
    """What a file says, to be asked by name."""

    def __init__(self, blocks: list[_Block]) -> None:
        self._blocks = blocks

    def names(self) -> Iterator[str]:
        """Those that a Host line spells out."""
        seen: set[str] = set()
        for block in self._blocks:
            for pattern in block.patterns:
                if not block.on_address and not re.search(r"[*?!]", pattern) and pattern not in seen:
                    seen.add(pattern)
                    yield pattern

    def knows(self, name: str) -> bool:
        """A Host line means this name, and not just every name."""
        return any(
            not block.never
            and not block.on_address
            and any(pattern.strip("*") for pattern in block.patterns if not pattern.startswith("!"))
            and _matches(block.patterns, name)
            for block in self._blocks
        )

    def entry(self, name: str, path: str = "") -> Entry:
        """For each word the first value counts, as in ssh; of IdentityFile all do."""
        findings = Findings(path)
        found: dict[str, _Said] = {}
        keys: list[str] = []
        for block in self._blocks:
            asked = found["hostname"].value if block.on_address and "hostname" in found else name
            if block.never or not _matches(block.patterns, asked):
                continue
            for said in block.said:
                if said.word == "identityfile":
                    keys.append(said.value)
                else:
                    found.setdefault(said.word, said)
        address = _address(found, name, findings)
        jump = _jump(found, findings)
        user = _checked(found, "user", user_problem, findings)
        port = _checked(
            found, "port", lambda text: "" if port_number(text) else f"no port: {shown(text)}", findings
        )
        for key in keys[:KEYS_MAX]:
            if key != "none" and (problem := path_problem(key)):
                findings.add(problem, f"IdentityFile of {name}")
        findings.check()
        files = tuple(
            key.replace("%d", "~").replace("%h", address).replace("%n", name).replace("%r", user)
            for key in keys
            if key != "none"
        )
        return Entry(name, address, port_number(port), user, files[:KEYS_MAX], jump)


def read_ssh_config(text: str, path: str = "", include: Include = lambda _pattern: []) -> SshConfig:
    findings = Findings(path)
    blocks = [_Block(("*",))]
    _Reader(findings, include, blocks).read(text, path, 0)
    config = SshConfig(blocks)
    for name in config.names():
        if problem := name_problem(name):
            findings.add(problem, "a name after Host")
    findings.check()
    return config


class _Reader:
    def __init__(self, findings: Findings, include: Include, blocks: list[_Block]) -> None:
        self._findings = findings
        self._include = include
        self._blocks = blocks
        self._lines = 0
        self._patterns = 0

    def read(self, text: str, path: str, depth: int) -> None:
        self._findings.path = path
        for number, line in enumerate(text.splitlines(), 1):
            self._lines += 1
            if self._lines > LINES_MAX:
                self._findings.add(f"more than {LINES_MAX} lines", "", number)
                self._findings.check()
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                self._line(stripped, path, number, depth, len(line) - len(line.lstrip()) + 1)
                self._findings.path = path

    def _line(self, line: str, path: str, number: int, depth: int, column: int) -> None:
        parts = _LINE.fullmatch(line)
        words = _words(parts["rest"]) if parts else None
        if parts is None or not words:
            hint = "a line is a keyword and its value; quotes come in pairs"
            self._findings.add(f"not a line of ssh_config: {shown(line)}", hint, number, column)
            return
        keyword = parts["word"].lower()
        if keyword == "host":
            self._begin(_Block(tuple(words)), number, column)
        elif keyword == "match":
            self._begin(_match_block(words), number, column)
        elif keyword == "include":
            self._read_included(words, number, column, depth)
        elif keyword in _READ:
            # A command or several words are one value; everything else is a single word.
            value = " ".join(words) if keyword == "proxycommand" else words[0]
            self._blocks[-1].said.append(_Said(keyword, value, number, path))

    def _begin(self, block: _Block, number: int, column: int) -> None:
        if any(len(pattern) > PATTERN_LENGTH_MAX for pattern in block.patterns):
            self._findings.add(f"a pattern longer than {PATTERN_LENGTH_MAX} characters", "", number, column)
        self._patterns += len(block.patterns)
        if self._patterns > PATTERNS_MAX:
            self._findings.add(f"more than {PATTERNS_MAX} host patterns", "", number, column)
            self._findings.check()
        self._blocks.append(block)

    def _read_included(self, patterns: list[str], number: int, column: int, depth: int) -> None:
        if depth >= INCLUDE_DEPTH_MAX:
            hint = "does a file include itself?"
            self._findings.add(f"files included more than {INCLUDE_DEPTH_MAX} deep", hint, number, column)
            self._findings.check()
        outer = self._blocks[-1]
        for pattern in patterns:
            for path, text in self._include(pattern):
                # What an included file says before its own first Host line belongs to our block.
                self._blocks.append(_Block(outer.patterns, outer.on_address, outer.never))
                self.read(text, path, depth + 1)
        self._blocks.append(_Block(outer.patterns, outer.on_address, outer.never))


def _words(text: str) -> list[str] | None:
    splitter = shlex.shlex(text, posix=True, punctuation_chars="")
    splitter.whitespace_split = True
    splitter.commenters = ""
    splitter.escape = ""
    try:
        words = list(splitter)
    except ValueError:
        return None
    for at, word in enumerate(words):
        if word.startswith("#"):
            return words[:at]
    return words


def _match_block(words: list[str]) -> _Block:
    """`all`, `host` and `originalhost` are understood; a block with any other condition never matches."""
    lowered = [word.lower() for word in words]
    if lowered == ["all"]:
        return _Block(("*",))
    if len(words) == 2 and lowered[0] in _MATCH_WORDS:
        patterns = tuple(words[1].split(","))
        # `originalhost` is the name asked for, as on a Host line, but makes no host known: see names().
        return _Block(patterns, on_address=lowered[0] == "host")
    return _Block(("*",), never=True)


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    found = False
    for pattern in patterns:
        if pattern.startswith("!"):
            if _fits(pattern[1:], name):
                return False
        elif _fits(pattern, name):
            found = True
    return found


def _fits(pattern: str, name: str) -> bool:
    """`*` and `?` as in ssh; greedy with one step back, so that no pattern takes more than |p|·|n| steps."""
    pattern, name = pattern.lower(), name.lower()
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    at, star, mark, here = 0, -1, 0, 0
    while here < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, mark, at = at, here, at + 1
        elif at < len(pattern) and pattern[at] in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            at, mark = star + 1, mark + 1
            here = mark
        else:
            return False
    return all(letter == "*" for letter in pattern[at:])


def _address(found: dict[str, _Said], name: str, findings: Findings) -> str:
    said = found.get("hostname")
    if said is None:
        return name
    address = said.value.replace("%h", name).replace("%n", name).replace("%%", "%")
    if problem := name_problem(address):
        findings.path = said.path
        findings.add(problem, f"HostName of {name}", said.line)
    return address


def _checked(found: dict[str, _Said], word: str, problem_of: Callable[[str], str], findings: Findings) -> str:
    said = found.get(word)
    if said is None:
        return ""
    if problem := problem_of(said.value):
        findings.path = said.path
        findings.add(problem, "", said.line)
    return said.value


def _jump(found: dict[str, _Said], findings: Findings) -> str:
    """ssh lets whichever of ProxyJump and ProxyCommand comes first win; so do we."""
    said = next((said for word, said in found.items() if word in ("proxyjump", "proxycommand")), None)
    if said is None or said.value.lower() == "none":
        return ""
    value = said.value if said.word == "proxyjump" else jump_of_command(said.value)
    findings.path = said.path
    if not value:
        hint = "say ProxyJump, or ProxyCommand ssh -W %h:%p JUMPHOST"
        findings.add(f"a ProxyCommand, which panda does not run: {shown(said.value)}", hint, said.line)
    elif problem := jump_problem(value):
        findings.add(problem, "", said.line)
    return value


def jump_of_command(command: str) -> str:
    """The jump host of `ssh … -W %h:%p … [user@]host`; empty for any other command."""
    words = _words(command) or []
    if not words or words[0].rpartition("/")[2] != "ssh":
        return ""
    user, port, host, forwards = "", "", "", False
    rest = iter(words[1:])
    for word in rest:
        if word == "-W":
            forwards = next(rest, "") == "%h:%p"
        elif word == "-q":
            continue
        elif word in ("-l", "-p"):
            value = next(rest, "")
            user, port = (value, port) if word == "-l" else (user, value)
        elif word.startswith("-") or host:
            return ""
        else:
            host = word
    if not forwards or not host:
        return ""
    name = host if "@" in host or not user else f"{user}@{host}"
    return f"{name}:{port}" if port else name
