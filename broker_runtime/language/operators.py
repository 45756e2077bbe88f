"""Decides which operator a spelling means, and which kind of operand that spelling insists on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from broker_runtime.language.predicates import CustomOperator, Op, custom_operator, custom_operator_names
from broker_runtime.language.values import Kind


@dataclass(frozen=True, slots=True)
class Spelling:
    """An operator as written. `str-lt` and `before` are both LT, but take only strings and only dates."""

    name: str
    op: Op | CustomOperator
    kind: Kind | None = None


BETWEEN: Final = "between"

_ANY_KIND: Final[dict[str, Op]] = {
    "eq": Op.EQ,
    "=": Op.EQ,
    "==": Op.EQ,
    "neq": Op.NEQ,
    "<>": Op.NEQ,
    "!=": Op.NEQ,
    "≠": Op.NEQ,
    "<": Op.LT,
    "<=": Op.LE,
    "≤": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
    "≥": Op.GE,
    "ispresent": Op.PRESENT,
    "in": Op.IN,
}
_STRINGS: Final[dict[str, Op]] = {
    "str-prefix": Op.PREFIX,
    "str-postfix": Op.POSTFIX,
    "str-suffix": Op.POSTFIX,
    "str-contains": Op.CONTAINS,
    "str-eq": Op.EQ,
    "str-neq": Op.NEQ,
    "str-lt": Op.LT,
    "str-le": Op.LE,
    "str-gt": Op.GT,
    "str-ge": Op.GE,
}
_DATES: Final[dict[str, Op]] = {"before": Op.LT, "after": Op.GT}

SPELLINGS: Final[dict[str, Spelling]] = {
    **{name: Spelling(name, op) for name, op in _ANY_KIND.items()},
    **{name: Spelling(name, op, Kind.STRING) for name, op in _STRINGS.items()},
    **{name: Spelling(name, op, Kind.DATE) for name, op in _DATES.items()},
}

# Words of other languages, too far from ours for a search by likeness.
_FOREIGN: Final = {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "ne": "neq",
    "=<": "<=",
    "=>": ">=",
    "equals": "eq",
    "like": "str-contains",
    "contains": "str-contains",
    "prefix": "str-prefix",
    "startswith": "str-prefix",
    "endswith": "str-postfix",
    "exists": "isPresent",
    "present": "isPresent",
}


def spelling(name: str) -> Spelling | None:
    """The operator of that name in any case, or None. BETWEEN has none: it makes two predicates."""
    known = SPELLINGS.get(name) or SPELLINGS.get(name.lower())
    if known is not None:
        return known
    custom = custom_operator(name)
    return Spelling(custom.name, custom) if custom is not None else None


def is_operator(name: str) -> bool:
    return name.lower() == BETWEEN or spelling(name) is not None


def operator_hint(name: str) -> str:
    """What the writer of an unknown operator probably meant."""
    lowered = name.lower()
    meant = _FOREIGN.get(lowered)
    if meant is None:
        known = [*SPELLINGS, BETWEEN, *(each.lower() for each in custom_operator_names())]
        meant = nearest(lowered, known)
        meant = "isPresent" if meant == "ispresent" else meant
    if meant:
        return f"did you mean {meant}?"
    return "the operators are eq neq < <= > >= isPresent in between before after and str-prefix and its kin"


def nearest(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # needed by errors only, and slow to import

    close = get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None
