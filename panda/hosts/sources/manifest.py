"""Reads a GENI or CloudLab manifest RSpec: how to log in to each node, and its addresses in the experiment.

Takes no document type and no entity, so that a manifest cannot make the reader open or expand anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from panda.hosts.sources.entry import HOSTS_MAX, Entry, name_problem, port_number, user_problem
from panda.hosts.sources.refusal import Findings

DEPTH_MAX = 64
ADDRESSES_MAX = 1024
"""Per node."""


@dataclass(slots=True)
class _Node:
    name: str
    line: int
    depth: int
    logins: list[tuple[str, int, str]] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)


def read_manifest(text: str, path: str = "", user: str = "") -> list[Entry]:
    """The nodes; of several logins on one, that of the user, else the first."""
    reader = _Reader(Findings(path), user)
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    reader.parse(parser, text)
    return reader.entries


class _Reader:
    def __init__(self, findings: Findings, user: str) -> None:
        self.entries: list[Entry] = []
        self._findings = findings
        self._user = user
        self._depth = 0
        self._node: _Node | None = None
        self._names: set[str] = set()

    def parse(self, parser: expat.XMLParserType, text: str) -> None:
        self._parser = parser
        parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        try:
            parser.Parse(text.encode("utf-8", "surrogatepass"), True)
        except expat.ExpatError as error:
            self._findings.add(
                f"not well-formed XML: {expat.ErrorString(error.code)}",
                "is the manifest complete?",
                error.lineno,
                error.offset + 1,
            )
        self._findings.check()

    def _refuse_declaration(self, *_: object) -> None:
        self._refuse("a document type or entity declaration", "a manifest needs none: remove it")

    def _refuse(self, message: str, hint: str = "") -> None:
        """Stops at once: there is nothing to be learnt from the rest."""
        place = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        self._findings.add(message, hint, *place)
        self._findings.check()

    def _add(self, message: str, hint: str = "") -> None:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        self._findings.add(message, hint, line, column)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._refuse(f"elements nested more than {DEPTH_MAX} deep")
        element = tag.rpartition(" ")[2]
        if self._depth == 1:
            self._root(element, attributes)
        elif element == "node" and self._node is None:
            name = attributes.get("client_id", "") or attributes.get("virtual_id", "")
            self._node = _Node(name, self._parser.CurrentLineNumber, self._depth)
        elif self._node is not None:
            self._within(self._node, element, attributes)

    def _root(self, element: str, attributes: dict[str, str]) -> None:
        if element != "rspec":
            self._refuse(f"the document is a <{element[:40]}>, not an <rspec>", "give the manifest RSpec")
        if attributes.get("type", "manifest") != "manifest":
            self._refuse("an RSpec that is not a manifest", "give the manifest, not the request")

    def _within(self, node: _Node, element: str, attributes: dict[str, str]) -> None:
        if element == "login":
            self._login(node, attributes)
        elif element == "ip":
            self._alias(node, attributes.get("address", ""))
        elif element == "host":
            self._alias(node, attributes.get("name", ""))
            self._alias(node, attributes.get("ipv4", ""))

    def _login(self, node: _Node, attributes: dict[str, str]) -> None:
        address, user = attributes.get("hostname", ""), attributes.get("username", "")
        port = port_number(attributes.get("port", "22"))
        problem = name_problem(address) or (user and user_problem(user))
        if problem:
            self._add(problem, "from <login>")
        elif not port:
            self._add("a login port that is not between 1 and 65535")
        elif attributes.get("authentication", "ssh-keys") == "ssh-keys":
            node.logins.append((address, port, user))

    def _alias(self, node: _Node, alias: str) -> None:
        if not alias:
            return
        if problem := name_problem(alias):
            self._add(problem)
        elif len(node.aliases) >= ADDRESSES_MAX:
            self._refuse(f"a node with more than {ADDRESSES_MAX} addresses")
        else:
            node.aliases.append(alias)

    def _end(self, _tag: str) -> None:
        if self._node is not None and self._depth == self._node.depth:
            self._close(self._node)
            self._node = None
        self._depth -= 1

    def _close(self, node: _Node) -> None:
        if problem := name_problem(node.name):
            self._findings.add(problem, "the client_id of <node> is its name", node.line)
        elif node.name in self._names:
            self._findings.add(f"the node {node.name} appears twice", "", node.line)
        elif node.logins:  # a node without a login, such as a switch, is nobody's host
            mine = [login for login in node.logins if login[2] == self._user]
            address, port, user = (mine or node.logins)[0]
            aliases = tuple(dict.fromkeys(node.aliases))
            self.entries.append(Entry(node.name, address, port, user, aliases=aliases))
        self._names.add(node.name)
        if len(self._names) > HOSTS_MAX:
            self._refuse(f"more than {HOSTS_MAX} nodes")
