"""Decides what may come next in a line: words, attributes, operators, values that were seen before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker_runtime.language import (
    CLASS,
    Conjunction,
    Op,
    Value,
    print_attribute,
    print_value,
)
from panda_tui.messages.words import KINDS, WORDS, Takes, word_named

ATTRIBUTES_MAX: Final = 500
VALUES_MAX: Final = 30
VALUE_LENGTH_MAX: Final = 60
OFFERED_MAX: Final = 12
OPERATORS: Final = (
    "eq", "neq", "<", "<=", ">", ">=", "isPresent", "in", "between",
    "str-prefix", "str-postfix", "str-contains", "before", "after",
)  # fmt: skip
TYPES: Final = ("*", "@STRING", "@INTEGER", "@FLOAT", "@DATE", "@BOOLEAN")
_PREDICATES: Final = (Takes.ADVERTISEMENT, Takes.SUBSCRIPTION)


@dataclass(frozen=True, slots=True)
class Offer:
    """A text for the part of the line from `start` up to the cursor."""

    start: int
    text: str


@dataclass
class Vocabulary:
    """Attributes and values that were met, the latest last, and no more than are useful."""

    values: dict[str, dict[str, None]] = field(default_factory=dict)

    def learn(self, content: Mapping[str, Value]) -> None:
        for attribute, value in content.items():
            self._met(attribute, value)

    def learn_predicates(self, wanted: Conjunction) -> None:
        for each in wanted.predicates:
            known: Iterable[object] = (each.operand,) if each.op is Op.EQ else ()
            if each.op is Op.IN and isinstance(each.operand, tuple):
                known = each.operand
            self._met(each.attribute)
            if each.bound:
                for value in known:
                    self._met(each.attribute, value)  # type: ignore[arg-type]

    def _met(self, attribute: str, value: Value | None = None) -> None:
        known = self.values.get(attribute)
        if known is None:
            if len(self.values) >= ATTRIBUTES_MAX:
                return
            known = self.values[attribute] = {}
        if value is None:
            return
        text = print_value(value)
        if len(text) <= VALUE_LENGTH_MAX:
            known.pop(text, None)
            known[text] = None
            while len(known) > VALUES_MAX:
                del known[next(iter(known))]


@dataclass(frozen=True, slots=True)
class Names:
    """What there is to name right now."""

    brokers: Sequence[str] = ()
    advertised: Sequence[str] = ()
    subscribed: Sequence[str] = ()
    files: Sequence[str] = ()


def offers(line: str, cursor: int, vocabulary: Vocabulary, names: Names) -> list[Offer]:
    """What fits at the cursor, the likeliest first."""
    before = line[:cursor]
    name, space, rest = before.lstrip().partition(" ")
    if not space:
        start = len(before) - len(name)
        known = [word.names[0] if len(word.names[0]) > 1 else word.name for word in WORDS]
        return _fitting(start, name, [f"{each} " for each in dict.fromkeys(known)])
    word = word_named(name)
    if word is None:
        return []
    takes = word.takes
    if takes is Takes.INJECTION:
        pieces = rest.split(" ", 2)
        if len(pieces) == 3:
            takes = {"publish": Takes.PUBLICATION}.get(pieces[1], Takes.SUBSCRIPTION)
        else:
            return _of_list(before, [list(names.brokers), list(KINDS)][len(pieces) - 1])
    if takes in (Takes.PUBLICATION, *_PREDICATES):
        return _in_brackets(before, takes, vocabulary)
    lists: dict[Takes, Sequence[str]] = {
        Takes.BROKER: names.brokers,
        Takes.PERHAPS_BROKER: names.brokers,
        Takes.CUT: names.brokers,
        Takes.ADVERTISED: (*names.advertised, "all"),
        Takes.SUBSCRIBED: (*names.subscribed, "all"),
        Takes.FILE: names.files,
    }
    return _of_list(before, lists.get(takes, ()))


def _of_list(before: str, known: Sequence[str]) -> list[Offer]:
    piece = before[before.rindex(" ") + 1 :]
    return _fitting(len(before) - len(piece), piece, known)


def _in_brackets(before: str, takes: Takes, vocabulary: Vocabulary) -> list[Offer]:
    place = _place(before)
    predicates = takes in _PREDICATES
    if place is None:
        opening = "[class,eq," if predicates else "[class,"
        if CLASS in before:
            opening = "["
        comma = "," if before.rstrip().endswith("]") else ""
        return [Offer(len(before), comma + opening)]
    start, number, parts = place
    piece = before[start:]
    attribute = parts[0].strip().strip("'\"")
    if number == 0:
        used = before[: before.rindex("[")]
        known = [name for name in (CLASS, *sorted(vocabulary.values)) if f"[{name}," not in used]
        return _fitting(start, piece, [f"{print_attribute(name)}," for name in dict.fromkeys(known)])
    if number == 1 and predicates:
        return _fitting(start, piece, [f"{each}," for each in OPERATORS])
    if predicates and parts[1].strip().casefold() == "ispresent":
        return _fitting(start, piece, [f"{each}]" for each in TYPES])
    seen = reversed(vocabulary.values.get(attribute, {}))
    return _fitting(start, piece, [f"{each}]" for each in seen])


def _place(before: str) -> tuple[int, int, list[str]] | None:
    """In which part of which bracket the text ends: where the part begins, its number, all parts so far."""
    opened, quote, commas = -1, "", [0]
    for at, letter in enumerate(before):
        if quote:
            if letter == quote:
                quote = ""
        elif opened >= 0 and letter in "'\"":
            quote = letter
        elif letter == "[":
            opened, commas = at, [at + 1]
        elif letter == "]":
            opened = -1
        elif letter == "," and opened >= 0:
            commas.append(at + 1)
    if opened < 0:
        return None
    ends = [*(comma - 1 for comma in commas[1:]), len(before)]
    parts = [before[start:end] for start, end in zip(commas, ends, strict=True)]
    start = commas[-1]
    start += len(before[start:]) - len(before[start:].lstrip())
    return start, len(commas) - 1, parts


def _fitting(start: int, piece: str, known: Iterable[str]) -> list[Offer]:
    folded = piece.casefold().lstrip("'\"")
    found = [each for each in known if each.casefold().lstrip("'\"").startswith(folded) and each != piece]
    return [Offer(start, each) for each in found[:OFFERED_MAX]]
