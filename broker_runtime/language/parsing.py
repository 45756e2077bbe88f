"""Decides which texts are publications, advertisements and atomic subscriptions.

A message is a list of brackets. A bracket that is refused does not hide the others: reading goes on at the
next one, and the error tells every problem found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, NoReturn

from broker_runtime.language.brackets import BracketReader, article
from broker_runtime.language.limits import MESSAGE_TEXT_MAX_CHARACTERS, PROBLEMS_MAX_PER_TEXT
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.operands import Operands
from broker_runtime.language.predicates import Predicate
from broker_runtime.language.problems import LanguageError
from broker_runtime.language.scanning import PlacedError, found, place, problem_at, shown, skip_space
from broker_runtime.language.values import Value

NO_NAMES: Final[Mapping[str, Value]] = MappingProxyType({})

_VARIABLES_REFUSED: Final = {
    "publication": "a publication holds values; variables stand in subscriptions",
    "advertisement": "an advertisement names no variables; they stand in subscriptions",
    "subscription": "",
}
_OPENING = re.compile(r"\s*((?:\(\s*+)*+)")
_NEXT = re.compile(r"\s*(,?)\s*(\[?)")
_CONNECTIVE = re.compile(r"&&?|\|\|?|∧|∨|;|\(|(?:and|or|not)\b", re.IGNORECASE)


def parse_publication(
    text: str, *, environment: Mapping[str, Value] = NO_NAMES, now: datetime | None = None
) -> dict[str, Value]:
    """Read `[class,'STOCK'],[open,25.2]`; LanguageError tells every problem found."""
    parser = MessageParser(text, "publication", environment, now)
    content: dict[str, Value] = {}
    pair = parser.reader.pair
    parser.message(lambda offset: pair(offset, content))
    if CLASS not in content:
        parser.class_missing("[class,'STOCK']")
    return content


def parse_subscription(
    text: str, *, environment: Mapping[str, Value] = NO_NAMES, now: datetime | None = None
) -> Subscription:
    """Read an atomic subscription such as `[class,eq,'STOCK'],[open,>,25.0]`."""
    return Subscription(_predicates(text, "subscription", environment, now))


def parse_advertisement(
    text: str, *, environment: Mapping[str, Value] = NO_NAMES, now: datetime | None = None
) -> Advertisement:
    """Read an advertisement such as `[class,eq,'STOCK'],[open,isPresent,@FLOAT]`."""
    return Advertisement(_predicates(text, "advertisement", environment, now))


def _predicates(
    text: str, what: str, environment: Mapping[str, Value], now: datetime | None
) -> list[Predicate]:
    parser = MessageParser(text, what, environment, now)
    predicates: list[Predicate] = []
    predicate = parser.reader.predicate
    parser.message(lambda offset: predicate(offset, predicates))
    for each in predicates:
        if each.attribute == CLASS:
            break
    else:
        parser.class_missing("[class,eq,'STOCK']")
    return predicates


class MessageParser:
    """Reads one text as one message and gathers its problems."""

    __slots__ = ("problems", "reader", "text", "what")

    def __init__(self, text: str, what: str, environment: Mapping[str, Value], now: datetime | None) -> None:
        self.text = text
        self.what = what
        self.problems: list[PlacedError] = []
        self.reader = BracketReader(text, what, Operands(text, environment, now, _VARIABLES_REFUSED[what]))

    def message(self, read: Callable[[int], int]) -> None:
        """Read brackets, perhaps in parentheses and with a last semicolon, up to the end of the text."""
        text = self.text
        if len(text) > MESSAGE_TEXT_MAX_CHARACTERS:
            self.refuse(
                PlacedError(
                    0,
                    f"a text of {len(text)} characters is longer than MESSAGE_TEXT_MAX_CHARACTERS, "
                    f"which is {MESSAGE_TEXT_MAX_CHARACTERS}",
                )
            )
        opening = _OPENING.match(text)
        assert opening is not None
        try:
            end = self.brackets(opening.end(), read)
            if end < len(text) or opening[1]:
                self._ending(end, opening.start(1), opening[1].count("("))
        except PlacedError as error:
            self.problems.append(error)
        if self.problems:
            self.give_up()

    def brackets(self, offset: int, read: Callable[[int], int]) -> int:
        """Read brackets from the offset on; the offset of the first thing that continues no list."""
        text = self.text
        if text[offset : offset + 1] != "[":
            raise PlacedError(offset, f"expected '[', found {found(text, offset)}", self.reader.shape())
        while True:
            try:
                end = read(offset)
                following = _NEXT.match(text, end)
                assert following is not None
                if following[2]:
                    offset = following.end() - 1
                    continue
                if not following[1]:
                    return end
                at = following.end()
                raise PlacedError(at, f"expected '[' after the comma, found {found(text, at)}")
            except PlacedError as error:
                self.problems.append(error)
                offset = text.find("[", max(offset + 1, error.resume))
                if offset < 0 or len(self.problems) >= PROBLEMS_MAX_PER_TEXT:
                    self.give_up()

    def _ending(self, offset: int, opened_at: int, opened: int) -> None:
        """Check that nothing but closing parentheses and one semicolon follows."""
        text = self.text
        at = skip_space(text, offset)
        while opened and text[at : at + 1] == ")":
            opened -= 1
            at = skip_space(text, at + 1)
        if not opened:
            rest = skip_space(text, at + 1) if text[at : at + 1] == ";" else at
            if rest >= len(text):
                return
        connective = _CONNECTIVE.match(text, at)
        if connective is not None:
            this = "an atomic one" if self.what == "subscription" else article(self.what)
            raise PlacedError(
                at,
                f"{shown(connective[0])} belongs to a composite subscription, and this is {this}",
                "inside one message, brackets are separated by commas",
            )
        if opened:
            raise PlacedError(
                at,
                f"expected ')', found {found(text, at)}",
                f"the parenthesis at {place(text, opened_at)} is not closed",
            )
        raise PlacedError(at, f"expected '[' or the end of the text, found {found(text, at)}")

    def class_missing(self, example: str) -> NoReturn:
        at = skip_space(self.text, 0)
        self.refuse(PlacedError(at, f"the {self.what} has no class", f"add {example}"))

    def refuse(self, error: PlacedError) -> NoReturn:
        self.problems.append(error)
        self.give_up()

    def give_up(self) -> NoReturn:
        raise LanguageError([problem_at(self.text, each) for each in self.problems]) from None
