"""Decides what a YAML text is made of: texts, lists and mappings, each with its place; knows no keys.

Scalars stay texts, so that `off` and `1e3` are what was written. Aliases are refused: a few of them can stand
for billions of nodes, and a template says the same in plain sight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from panda.topology.model import Place
from panda.topology.problems import Problem, error, shown

DEPTH_MAX: Final = 12
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    place: Place
    quoted: bool = False

    @property
    def empty(self) -> bool:
        return not self.quoted and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Items:
    place: Place
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys in order, each with where it stands."""

    place: Place
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)


Node = Scalar | Items | Entries


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_nodes(text: str, path: str) -> tuple[Node | None, list[Problem]]:
    """The one document of a text; None when it is empty or broken."""
    problems: list[Problem] = []
    try:
        return _Composer(path, problems).compose(yaml.parse(text, Loader=_LOADER)), problems
    except _Refused as refused:
        problems.append(refused.problem)
    except yaml.MarkedYAMLError as refused:
        mark = refused.problem_mark or refused.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        message = f"this is no YAML: {refused.problem or refused.context or 'refused'}"
        problems.append(
            error(place, shown_sentence(message), "indent with blanks, and quote what is special")
        )
    except (yaml.YAMLError, ValueError) as refused:
        problems.append(error(Place(path), f"this is no YAML: {shown_sentence(str(refused))}"))
    return None, problems


def shown_sentence(text: str) -> str:
    return " ".join(shown(word) for word in text.split())


class _Composer:
    def __init__(self, path: str, problems: list[Problem]) -> None:
        self._path = path
        self._problems = problems
        self._depth = 0

    def compose(self, events: Iterator[Any]) -> Node | None:
        found: Node | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refuse(event, "a second document begins", "a topology is one document")
            elif isinstance(event, yaml.NodeEvent):
                found = self._node(event, events)
        return found

    def _node(self, event: Any, events: Iterator[Any]) -> Node:
        place = self._place(event)
        if isinstance(event, yaml.AliasEvent):
            raise self._refuse(
                event, f"*{shown(str(event.anchor))}: aliases are not taken", "use a Jinja2 variable"
            )
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, place, quoted=bool(event.style))
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refuse(event, f"lists and mappings nest at most {DEPTH_MAX} deep", "")
        sequence = isinstance(event, yaml.SequenceStartEvent)
        node: Node = self._items(place, events) if sequence else self._entries(place, events)
        self._depth -= 1
        return node

    def _items(self, place: Place, events: Iterator[Any]) -> Items:
        found = Items(place)
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            found.items.append(self._node(event, events))
        return found

    def _entries(self, place: Place, events: Iterator[Any]) -> Entries:
        found = Entries(place)
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, events)
            value = self._node(next(events), events)
            if not isinstance(key, Scalar):
                self._problems.append(error(key.place, "a key is a word", "write key: value"))
            elif key.text in found.entries:
                self._problems.append(error(key.place, f"{shown(key.text)} stands here twice", "remove one"))
            else:
                found.entries[key.text] = value
                found.keys[key.text] = key.place
        return found

    def _place(self, event: Any) -> Place:
        mark = event.start_mark
        return Place(self._path, mark.line + 1, mark.column + 1)

    def _refuse(self, event: Any, message: str, hint: str) -> _Refused:
        return _Refused(error(self._place(event), message, hint))
