"""Decides which command an entry of a YAML topology stands for; never whether it makes sense.

A broker's options come first and its name, address and neighbours last, as the papers write them; in the
dialect of URIs it is the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from broker_runtime.addresses import Address
from broker_runtime.dialect import readers, scripts
from broker_runtime.dialect.options import Option, nearest
from panda.topology.lines import ARGUMENTS_MAX, Lines
from panda.topology.model import Place
from panda.topology.nodes import Entries, Items, Node, Scalar
from panda.topology.problems import error, shown
from panda.topology.quantities import TIME_EXAMPLES, read_time
from panda.topology.scanning import LineScanner, ScanningError, character_name, refused_character

ENTRY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "brokers": (
        "id", "host", "at", "speaks", "port", "dialect", "script", "neighbours", "options", "command",
    ),
    "clients": ("id", "host", "at", "speaks", "broker", "script", "options", "arguments", "command"),
    "workloads": ("id", "host", "at", "speaks", "broker", "kind", "script", "options", "command"),
    "commands": ("id", "host", "at", "command"),
}  # fmt: skip
WORDS: Final = "words"
URI: Final = "uri"
SCRIPTS: Final = {WORDS: "startbroker.sh", URI: "bin/startbroker"}
WORKLOAD_SCRIPT: Final = "startworkload.sh"
_TRUE: Final = frozenset(("true", "yes", "on"))
_FALSE: Final = frozenset(("false", "no", "off"))


@dataclass(slots=True)
class Argv:
    """A command, and where each of its words stands."""

    words: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def add(self, place: Place, *words: str) -> None:
        self.words += words
        self.places += [place] * len(words)


class Entry:
    """One process, being read."""

    def __init__(self, node: Entries, lines: Lines, hosts: Mapping[str, str]) -> None:
        self.place = node.place
        self._node = node
        self._lines = lines
        self._complete = True
        self.id = self.text("id") or ""
        named = self.text("host") or ""
        self.host = hosts.get(named, named)
        self.speaks = self.text("speaks") or self.id
        self.at_s = self._time()

    def where(self, key: str) -> Place:
        node = self._node.entries.get(key)
        return node.place if node is not None else self.place

    def complete(self) -> bool:
        for key in ("id", "host"):
            if key not in self._node.entries:
                self.missing(key)
        return self._complete

    def missing(self, key: str) -> None:
        self.refuse(self.place, f"{key} is missing", f"add {key}: …")

    def refuse(self, place: Place, message: str, hint: str) -> None:
        self._complete = False
        self._lines.problems.append(error(place, message, hint))

    def has(self, key: str) -> bool:
        return key in self._node.entries

    def text(self, key: str) -> str | None:
        node = self._node.entries.get(key)
        if node is None or (isinstance(node, Scalar) and node.empty):
            return None
        if isinstance(node, Scalar):
            self._check_characters(node)
            return node.text
        self.refuse(node.place, f"{key} is one word", f"write {key}: …")
        return None

    def texts(self, key: str) -> list[Scalar]:
        node = self._node.entries.get(key)
        if node is None or (isinstance(node, Scalar) and node.empty):
            return []
        found = [node] if isinstance(node, Scalar) else node.items if isinstance(node, Items) else []
        scalars = [each for each in found if isinstance(each, Scalar)]
        if not found or len(scalars) != len(found):
            self.refuse(node.place, f"{key} is a list of words", f"write {key}: [A, B]")
        for scalar in scalars:
            self._check_characters(scalar)
        return scalars

    def command(self) -> Argv | None:
        """The command as given: one text, or a list of words. None when there is none."""
        node = self._node.entries.get("command")
        if node is None:
            return None
        argv = Argv()
        if isinstance(node, Items):
            for word in self.texts("command"):
                argv.add(word.place, word.text)
        elif isinstance(node, Scalar):
            self._scan(node, argv)
        self._check_alone()
        if not argv.words and self._complete:
            self.refuse(node.place, "the command is empty", "write command: startbroker.sh -p 10000 …")
        if len(argv.words) > ARGUMENTS_MAX:
            self.refuse(node.place, f"a command has at most {ARGUMENTS_MAX} words", "put them into a file")
        return argv

    def _scan(self, node: Scalar, argv: Argv) -> None:
        def at(column: int) -> Place:
            start = node.place
            return start if node.quoted else Place(start.path, start.line, start.column + column - 1)

        try:
            for token in LineScanner(node.text).words():
                argv.add(at(token.column), token.text)
        except ScanningError as problem:
            self.refuse(at(problem.column), problem.message, problem.hint)

    def _check_alone(self) -> None:
        both = [key for key in self._node.entries if key not in ("id", "host", "at", "command")]
        for key in both:
            self.refuse(self._node.keys[key], f"{key} and command say the same", f"remove {key} or command")

    def listen(self) -> Address | None:
        """Where a broker that is described by keys listens."""
        port = self.text("port")
        if port is None or not port.isascii() or not port.isdigit() or len(port) > 5:
            return None
        return Address(self.host, int(port), self.speaks)

    def broker_argv(self, addresses: Mapping[str, Address]) -> Argv | None:
        if self.has("command"):
            return self.command()
        dialect = self.text("dialect") or WORDS
        if dialect not in SCRIPTS:
            self.refuse(self.where("dialect"), f"unknown dialect {shown(dialect)}", "it is words or uri")
            return None
        if self.listen() is None:
            at = self.where("port")
            self.refuse(at, "a broker has a port, a number", "such as port: 10000, or give its command")
            return None
        argv, who = Argv(), Argv()
        argv.add(self.where("script"), self.text("script") or SCRIPTS[dialect])
        self._identify(who, dialect)
        places = [self._address(name, addresses) for name in self.texts("neighbours")]
        neighbours = [each.uri if dialect == URI else str(each) for each in places if each is not None]
        if neighbours:
            who.add(self.where("neighbours"), "-n", ",".join(neighbours))
        options = Argv()
        self.add_options(options, scripts.BROKER)
        for part in (options, who) if dialect == WORDS else (who, options):
            argv.words += part.words
            argv.places += part.places
        return argv

    def _identify(self, who: Argv, dialect: str) -> None:
        listen = self.listen()
        assert listen is not None
        if dialect == URI:
            who.add(self.where("port"), "-uri", listen.uri)
            return
        who.add(self.where("host"), "-hostname", listen.host)
        who.add(self.where("port"), "-p", str(listen.port))
        who.add(self.where("speaks" if self.has("speaks") else "id"), "-i", self.speaks)

    def _address(self, name: Scalar, addresses: Mapping[str, Address]) -> Address | None:
        """Of a broker, by its name or as it is written."""
        found = addresses.get(name.text)
        if found is None and ":" in name.text:
            try:
                return readers.target(name.text)
            except ValueError as problem:
                self.refuse(name.place, f"{shown(name.text)}: {problem}", "")
                return None
        if found is None:
            hint = nearest(name.text, addresses).strip(" ()") or "add it to brokers, or write host:port"
            self.refuse(name.place, f"there is no broker {shown(name.text)}", hint)
        return found

    def add_broker(self, argv: Argv, addresses: Mapping[str, Address]) -> None:
        for name in self.texts("broker")[:1]:
            address = self._address(name, addresses)
            if address is not None:
                argv.add(name.place, "-b", str(address))
        if not self.has("broker"):
            self.missing("broker")

    def add_options(self, argv: Argv, table: Iterable[Option]) -> None:
        """`options: {Xms: 64, quiet: true}`, with the dashes that the command wants."""
        node = self._node.entries.get("options")
        if node is None or (isinstance(node, Scalar) and node.empty):
            return
        if not isinstance(node, Entries):
            self.refuse(node.place, "options are a mapping", "such as options: {heartbeat: off}")
            return
        by_name = {name: option for option in table for name in option.names}
        for key, value in node.entries.items():
            name = f"-{key}" if f"-{key}" in by_name else f"--{key}"
            option = by_name.get(name)
            if option is None:
                known = sorted({each.lstrip("-") for each in by_name})
                hint = nearest(key, known).strip(" ()") or f"known are {', '.join(known)}"
                self.refuse(node.keys[key], f"unknown option {shown(key)}", hint)
            else:
                self._add_option(argv, option, name, value, node.keys[key])

    def _add_option(self, argv: Argv, option: Option, name: str, value: Node, key: Place) -> None:
        if not isinstance(value, Scalar):
            self.refuse(value.place, f"{name} takes one value", "quote it if it has commas or brackets")
            return
        self._check_characters(value)
        if option.value:
            argv.add(value.place, name, value.text)
        elif value.text.lower() in _TRUE:
            argv.add(key, name)
        elif value.text.lower() not in _FALSE:
            self.refuse(value.place, f"{name} takes no value", "say true or false")

    def _time(self) -> float:
        text = self.text("at")
        if text is None:
            return 0.0
        try:
            return read_time(text)
        except ValueError as problem:
            self.refuse(self.where("at"), f"{shown(text)}: {problem}", TIME_EXAMPLES)
            return 0.0

    def _check_characters(self, scalar: Scalar) -> None:
        at = refused_character(scalar.text)
        if at is not None:
            what = character_name(scalar.text[at])
            self.refuse(scalar.place, f"a word holds no {what}", "remove it; a word is part of one line")


def client_argv(entry: Entry, addresses: Mapping[str, Address]) -> Argv | None:
    """Any client of the runtime: its script decides which."""
    if entry.has("command"):
        return entry.command()
    script = entry.text("script")
    word = scripts.word_of(script) if script else None
    if script is None or word is None or word == "broker":
        known = "startSQpublisher.sh, startSQsubscriber.sh, startpublisher.sh, startsubscriber.sh"
        entry.refuse(entry.where("script"), "a client has a script", f"one of {known}; or give its command")
        return None
    argv = Argv()
    argv.add(entry.where("script"), script)
    _identify_client(argv, entry, addresses)
    entry.add_options(argv, scripts.TABLES[word])
    for argument in entry.texts("arguments"):
        argv.add(argument.place, argument.text)
    return argv


def workload_argv(entry: Entry, addresses: Mapping[str, Address]) -> Argv | None:
    if entry.has("command"):
        return entry.command()
    argv = Argv()
    argv.add(entry.where("script"), entry.text("script") or WORKLOAD_SCRIPT)
    argv.add(entry.where("kind"), entry.text("kind") or "publish")
    _identify_client(argv, entry, addresses)
    entry.add_options(argv, scripts.TABLES["workload"])
    return argv


def _identify_client(argv: Argv, entry: Entry, addresses: Mapping[str, Address]) -> None:
    argv.add(entry.where("speaks" if entry.has("speaks") else "id"), "-i", entry.speaks)
    entry.add_broker(argv, addresses)
