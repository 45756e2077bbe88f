"""Decides what a typed line says: which word, about what, and where it is wrong; does nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from enum import Enum
from typing import Final

from broker_runtime.language import (
    LanguageError,
    Problem,
    parse_advertisement,
    parse_publication,
    parse_subscription,
)


class Takes(Enum):
    """What stands after a word."""

    ADVERTISEMENT = "advertisement"
    SUBSCRIPTION = "subscription"
    PUBLICATION = "publication"
    ADVERTISED = "names of advertisements"
    SUBSCRIBED = "names of subscriptions"
    BROKER = "broker"
    PERHAPS_BROKER = "broker, or nothing"
    INJECTION = "broker, kind, text"
    CUT = "broker, peer"
    FILE = "file"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Word:
    names: tuple[str, ...]
    takes: Takes
    usage: str
    does: str

    @property
    def name(self) -> str:
        return self.names[-1]


WORDS: Final = (
    Word(("a", "advertise"), Takes.ADVERTISEMENT, "a [class,eq,'STOCK'],[price,isPresent,*]", "advertise"),
    Word(("s", "subscribe"), Takes.SUBSCRIPTION, "s [class,eq,'STOCK'],[price,>,10]", "subscribe"),
    Word(("p", "publish"), Takes.PUBLICATION, "p [class,'STOCK'],[price,20]", "publish"),
    Word(("trace",), Takes.PUBLICATION, "trace [class,'STOCK'],[price,20]", "publish, and show its way"),
    Word(("unsub", "unsubscribe"), Takes.SUBSCRIBED, "unsub s1", "end subscriptions, or all"),
    Word(("unadv", "unadvertise"), Takes.ADVERTISED, "unadv a1", "withdraw advertisements, or all"),
    Word(("ls", "list"), Takes.NOTHING, "list", "what is advertised and subscribed"),
    Word(("info",), Takes.PERHAPS_BROKER, "info B", "how brokers are"),
    Word(("settle",), Takes.NOTHING, "settle", "wait until all brokers know of the above"),
    Word(
        ("inject",), Takes.INJECTION, "inject B publish [class,'STOCK'],[price,20]", "as another broker's own"
    ),
    Word(("cut",), Takes.CUT, "cut B C", "break a connection; it comes back by itself"),
    Word(("pause",), Takes.BROKER, "pause B", "have a broker hold publications"),
    Word(("resume",), Takes.BROKER, "resume B", "have it go on"),
    Word(("shutdown",), Takes.BROKER, "shutdown B", "have it end"),
    Word(("batch",), Takes.FILE, "batch FILE", "the lines of a file, step by step"),
    Word(("connect",), Takes.BROKER, "connect B", "go to another broker"),
    Word(("clear",), Takes.NOTHING, "clear", "empty this list"),
    Word(("?", "help"), Takes.NOTHING, "help", "these words"),
)
KINDS: Final = ("publish", "advertise", "subscribe", "unadvertise", "unsubscribe")

_BY_NAME: Final = {name: word for word in WORDS for name in word.names}
_PARSERS: Final[dict[Takes, Callable[..., object]]] = {
    Takes.ADVERTISEMENT: parse_advertisement,
    Takes.SUBSCRIPTION: parse_subscription,
    Takes.PUBLICATION: parse_publication,
}
_INJECTED: Final = {
    "publish": parse_publication,
    "advertise": parse_advertisement,
    "subscribe": parse_subscription,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A word and what follows it, which begins at column `at`, counted from 0."""

    word: Word
    rest: str
    at: int


def word_named(name: str) -> Word | None:
    return _BY_NAME.get(name)


def is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def read(line: str, now: datetime) -> Line:
    """The line, or LanguageError with every problem at its place in the line."""
    begin = len(line) - len(line.lstrip())
    name = line[begin:].partition(" ")[0].rstrip()
    word = word_named(name)
    if word is None:
        raise LanguageError([Problem(1, begin + 1, f"unknown word {name!r}", _hint(name), line)])
    at = begin + len(name)
    at += len(line[at:]) - len(line[at:].lstrip())
    found = Line(word, line[at:].rstrip(), at)
    _check(found, line, now)
    return found


def _check(found: Line, line: str, now: datetime) -> None:
    takes, rest = found.word.takes, found.rest
    if takes in (Takes.NOTHING, Takes.PERHAPS_BROKER):
        return
    if not rest:
        hint = f"for example: {found.word.usage}"
        raise LanguageError([Problem(1, len(line) + 1, f"the {takes.value} is missing", hint, line)])
    parser = _PARSERS.get(takes)
    if parser is not None:
        _parse(parser, rest, found.at, line, now)
    elif takes is Takes.INJECTION:
        _check_injection(found, line, now)
    elif takes is Takes.CUT and len(rest.split()) != 2:
        raise LanguageError([Problem(1, found.at + 1, "cut takes a broker and its peer", "cut B C", line)])


def _check_injection(found: Line, line: str, now: datetime) -> None:
    broker, kind, text = injection(found.rest)
    if kind not in KINDS:
        column = found.at + len(broker) + 2
        raise LanguageError(
            [Problem(1, column, f"unknown kind {kind!r}", f"one of {', '.join(KINDS)}", line)]
        )
    parser = _INJECTED.get(kind)
    if parser is not None:
        _parse(parser, text, line.index(text, found.at) if text else len(line), line, now)


def injection(rest: str) -> tuple[str, str, str]:
    """Broker, kind and text."""
    broker, _, more = rest.partition(" ")
    kind, _, text = more.strip().partition(" ")
    return broker, kind, text.strip()


def _parse(parser: Callable[..., object], text: str, at: int, line: str, now: datetime) -> None:
    try:
        parser(text, now=now)
    except LanguageError as error:
        raise LanguageError(
            [replace(each, column=each.column + at, source_line=line) for each in error.problems]
        ) from None


def _hint(name: str) -> str:
    close = get_close_matches(name, _BY_NAME, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "help shows all words"
