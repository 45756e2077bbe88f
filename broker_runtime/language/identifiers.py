"""Decides which texts may name a broker or a client."""

from __future__ import annotations

import re

from broker_runtime.language.problems import LanguageError, Problem

ID_MAX_CHARACTERS = 64
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_id(text: str) -> str:
    """The id itself; LanguageError points at the first character that does not belong."""
    good = _ID.match(text)
    end = good.end() if good else 0
    if good and end == len(text) and end <= ID_MAX_CHARACTERS:
        return text
    if end > ID_MAX_CHARACTERS:
        end, message = ID_MAX_CHARACTERS, f"an id has at most {ID_MAX_CHARACTERS} characters"
    elif not text:
        message = "an id is empty"
    elif end == 0:
        message = f"an id begins with a letter or a digit, not with {text[0]!r}"
    else:
        message = f"an id holds no {text[end]!r}"
    hint = "an id is made of letters, digits, '_', '.' and '-'"
    raise LanguageError([Problem(1, end + 1, message, hint, text[:200])])
