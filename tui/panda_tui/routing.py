"""Decides how a broker's routing tables are read, searched, and which of their subscriptions covers which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from broker_runtime.language import (
    CLASS,
    Advertisement,
    LanguageError,
    Subscription,
    parse_advertisement,
    parse_publication,
    parse_subscription,
)
from panda_tui.overlay.graph import natural

COVER_ALL_MAX: Final = 400
"""Subscriptions of which it is said for each what covers it; of more, only for the one that is chosen."""


CONTROL_PREFIX: Final = "BROKER_"


@dataclass(frozen=True)
class Entry:
    """A subscription or an advertisement, and where it came from."""

    id: str
    hop: str
    text: str
    kind: str  # "subscription" or "advertisement"

    @cached_property
    def meaning(self) -> Subscription | Advertisement | None:
        """None when it is of a language that is not known here."""
        try:
            if self.kind == "subscription":
                return parse_subscription(self.text)
            return parse_advertisement(self.text)
        except (LanguageError, ValueError):
            return None

    @cached_property
    def is_control(self) -> bool:
        """Whether it is only about brokers being asked and telling of themselves."""
        if self.meaning is None:
            return False
        classes = self.meaning.constraints[CLASS].values
        return bool(classes) and all(str(each).startswith(CONTROL_PREFIX) for each in classes or ())

    def covers(self, other: Entry) -> bool:
        mine, theirs = self.meaning, other.meaning
        if isinstance(mine, Subscription) and isinstance(theirs, Subscription):
            return mine.covers(theirs)
        if isinstance(mine, Advertisement) and isinstance(theirs, Advertisement):
            return mine.covers(theirs)
        return False


@dataclass(frozen=True)
class LinkRow:
    peer: str
    role: str
    up: bool
    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    queue_length: int
    in_flight: int
    dropped: int
    blocked_on: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    subscriptions: tuple[Entry, ...] = ()
    advertisements: tuple[Entry, ...] = ()
    links: tuple[LinkRow, ...] = ()


def tables_of(answer: Mapping[str, Any], known: Tables | None = None) -> Tables:
    """What a broker answered. Entries that were known stay the same, with what was found out about them."""
    before = {entry: entry for entry in (*known.subscriptions, *known.advertisements)} if known else {}

    def entries(name: str, kind: str) -> tuple[Entry, ...]:
        found = [
            Entry(str(row.get("id", "")), str(row.get("hop", "")), str(row.get("text", "")), kind)
            for row in answer.get(name, ())
        ]
        found.sort(key=lambda entry: (natural(entry.hop), natural(entry.id)))
        return tuple(before.get(entry, entry) for entry in found)

    links = [_link_row(row) for row in answer.get("links", ())]
    return Tables(
        entries("subscriptions", "subscription"),
        entries("advertisements", "advertisement"),
        tuple(sorted(links, key=lambda link: (link.role, natural(link.peer)))),
    )


def _link_row(row: Mapping[str, Any]) -> LinkRow:
    return LinkRow(
        peer=str(row.get("peer", "")),
        role=str(row.get("role", "")),
        up=bool(row.get("up")),
        records_in=int(row.get("records_in", 0)),
        records_out=int(row.get("records_out", 0)),
        bytes_in=int(row.get("bytes_in", 0)),
        bytes_out=int(row.get("bytes_out", 0)),
        queue_length=int(row.get("queue_length", 0)),
        in_flight=int(row.get("in_flight", 0)),
        dropped=int(row.get("dropped", 0)),
        blocked_on=tuple(map(str, row.get("blocked_on", ()))),
    )


def search(entries: Iterable[Entry], text: str) -> list[Entry]:
    """Those with the text in them, in any case; a publication finds what it matches.

    LanguageError when the text begins like a publication and is none.
    """
    wanted = text.strip()
    if not wanted.startswith("["):
        folded = wanted.casefold()
        return [e for e in entries if folded in f"{e.id} {e.hop} {e.text}".casefold()]
    content = parse_publication(wanted)
    return [
        entry
        for entry in entries
        if (isinstance(entry.meaning, Subscription) and entry.meaning.matches(content))
        or (isinstance(entry.meaning, Advertisement) and entry.meaning.induces(content))
    ]


def covering(entry: Entry, entries: Iterable[Entry]) -> list[Entry]:
    """Those that cover it: whatever it asks for, they ask for."""
    return [other for other in entries if other is not entry and other.covers(entry)]


def covered(entry: Entry, entries: Iterable[Entry]) -> list[Entry]:
    return [other for other in entries if other is not entry and entry.covers(other)]


def first_covering(entries: Sequence[Entry]) -> dict[str, str]:
    """By id: one that covers it; nothing is said of too many. An equal one counts when it came before."""
    if len(entries) > COVER_ALL_MAX:
        return {}
    found: dict[str, str] = {}
    for number, entry in enumerate(entries):
        for at, other in enumerate(entries):
            if other is entry or not other.covers(entry):
                continue
            if at < number or not entry.covers(other):
                found[entry.id] = other.id
                break
    return found
