"""Decides where the words of a topology line begin and end; knows quotes and comments, never a verb.

As in a shell: words are separated by blanks, '…' is literal, in "…" a backslash takes \\ " $ and ` literally,
outside of quotes any character. A comment begins with # or // where a word could begin.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

BLANKS: Final = " \t"
_ESCAPED_IN_QUOTES: Final = '"\\$`'
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_TEMPLATE_MARK = re.compile(r"(?<=\{)(?=[{%#])")
_REFUSED_CATEGORIES: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


class ScanningError(ValueError):
    """What is wrong with a line, and at which column."""

    def __init__(self, column: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    column: int
    quoted: bool = False


class LineScanner:
    """Gives the words of one line, one after the other."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._position = 0
        if (at := refused_character(line)) is not None:
            raise ScanningError(
                at + 1,
                f"a line holds no {character_name(line[at])}",
                "remove it; control characters are not part of a topology",
            )

    @property
    def column(self) -> int:
        return self._position + 1

    def next(self) -> Token | None:
        """The next word, or None at the end of the line or at a comment."""
        line = self._line
        self._skip_blanks()
        if self._position == len(line) or self._at_comment():
            return None
        start = self._position
        parts: list[str] = []
        quoted = False
        while self._position < len(line) and line[self._position] not in BLANKS:
            character = line[self._position]
            if character in "'\"":
                quoted = True
                parts.append(self._quotation(character))
            elif character == "\\":
                quoted = True
                parts.append(self._escaped())
            else:
                parts.append(character)
                self._position += 1
        return Token("".join(parts), start + 1, quoted)

    def words(self) -> list[Token]:
        found = []
        while (token := self.next()) is not None:
            found.append(token)
        return found

    def remark(self) -> Token | None:
        """The rest of the line as one text: quoted, or as it stands up to a comment."""
        self._skip_blanks()
        start = self._position
        if self._line[start : start + 1] in ("'", '"'):
            return self.next()
        position = start
        while position < len(self._line):
            if position > start and self._line[position - 1] not in BLANKS:
                position += 1
                continue
            if self._comment_at(position):
                break
            position += 1
        self._position = len(self._line)
        text = self._line[start:position].strip(BLANKS)
        return Token(text, start + 1) if text else None

    def _skip_blanks(self) -> None:
        while self._position < len(self._line) and self._line[self._position] in BLANKS:
            self._position += 1

    def _at_comment(self) -> bool:
        return self._comment_at(self._position)

    def _comment_at(self, position: int) -> bool:
        return self._line.startswith(("#", "//"), position)

    def _quotation(self, quote: str) -> str:
        line, start = self._line, self._position
        parts = []
        position = start + 1
        while position < len(line) and line[position] != quote:
            if quote == '"' and line[position] == "\\" and line[position + 1 : position + 2]:
                following = line[position + 1]
                parts.append(following if following in _ESCAPED_IN_QUOTES else "\\" + following)
                position += 2
            else:
                parts.append(line[position])
                position += 1
        if position >= len(line):
            raise ScanningError(
                start + 1, f"the quote {quote} is never closed", f"close it with {quote} on the same line"
            )
        self._position = position + 1
        return "".join(parts)

    def _escaped(self) -> str:
        following = self._line[self._position + 1 : self._position + 2]
        if not following:
            raise ScanningError(
                self._position + 1,
                "nothing follows the backslash",
                "a step is one line; write '\\' in quotes if it is meant",
            )
        self._position += 2
        return following


def refused_character(text: str) -> int | None:
    """The index of the first character that no line, argument or remark may hold."""
    if text.isprintable():
        return None
    for index, character in enumerate(text):
        if character != "\t" and unicodedata.category(character) in _REFUSED_CATEGORIES:
            return index
    return None


def character_name(character: str) -> str:
    if character == "\0":
        return "NUL character"
    if character == "\n":
        return "newline"
    return f"character U+{ord(character):04X}"


def quote(word: str) -> str:
    """The word as a line has to write it; never so that the line would be taken for a template."""
    if _PLAIN.fullmatch(word) and not word.startswith("//"):
        return word
    return "".join(map(_quoted, _TEMPLATE_MARK.split(word)))


def _quoted(part: str) -> str:
    if "'" not in part:
        return f"'{part}'"
    return '"' + "".join("\\" + each if each in _ESCAPED_IN_QUOTES else each for each in part) + '"'


def quote_remark(text: str) -> str:
    """A remark as a line has to write it: bare where that reads back as the same."""
    bare = text and text[0] not in "'\"" and not _TEMPLATE_MARK.search(text)
    if bare and LineScanner(text).remark() == Token(text, 1):
        return text
    return quote(text)
