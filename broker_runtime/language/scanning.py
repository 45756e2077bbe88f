"""Decides where names, quoted strings and places in a text begin and end; knows no grammar.

The scanner is a handful of regular expressions, each matched at an offset. None of them can backtrack over
more than it has read once, so reading is linear in the text.
"""

from __future__ import annotations

import re
from typing import Final

from broker_runtime.language.limits import SOURCE_LINE_MAX_CHARACTERS
from broker_runtime.language.problems import Problem

QUOTES: Final = "'\"‘’“”"

SPACE = re.compile(r"\s*")
BARE_NAME = re.compile(r"[^\W\d][\w.\-]*")
BARE_RUN = re.compile(rf"[^\[\](){{}},;{QUOTES}]+")

# A string opened by a typographic quote is closed by either half of its pair, because text copied from a
# paper often has only one of them; and by a plain quote at the end of a slot.
_QUOTED: Final = {
    "'": re.compile(r"'((?:[^'\\\r\n]|\\.|'')*+)'"),
    '"': re.compile(r'"((?:[^"\\\r\n]|\\.|"")*+)"'),
    "‘": re.compile(r"[‘’]((?:[^‘’'\\\r\n]|\\.|'(?!\s*[\],@}]))*+)[‘’']"),
    "“": re.compile(r"[“”]((?:[^“”\"\\\r\n]|\\.|\"(?!\s*[\],@}]))*+)[“”\"]"),
}
_QUOTED["’"], _QUOTED["”"] = _QUOTED["‘"], _QUOTED["“"]

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|(''|\"\")", re.DOTALL)
_SIMPLE_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", **{quote: quote for quote in QUOTES}}


class PlacedError(Exception):
    """One problem at an offset; the parser turns it into a `Problem` and reads on from `resume`."""

    def __init__(self, offset: int, message: str, hint: str = "", resume: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.hint = hint
        self.resume = offset if resume is None else resume


def problem_at(text: str, refused: PlacedError) -> Problem:
    offset = min(refused.offset, len(text))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    source = text[start : end if end >= 0 else len(text)].rstrip("\r")
    if len(source) > SOURCE_LINE_MAX_CHARACTERS:
        source = ""
    line = text.count("\n", 0, offset) + 1
    return Problem(line, offset - start + 1, refused.message, refused.hint, source)


def place(text: str, offset: int) -> str:
    """`line 2, column 7`, for hints that point somewhere else."""
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"


_FOUND = re.compile(rf"[\w.\-@$]+|[{QUOTES}]|[^\w\s]{{1,2}}")


def found(text: str, offset: int) -> str:
    """What stands at the offset, for an error message."""
    offset = skip_space(text, offset)
    if offset >= len(text):
        return "the end of the text"
    token = _FOUND.match(text, offset)
    what = token[0] if token else text[offset]
    if what[0] in "[](){}" or what[0] in QUOTES:
        what = what[0]
    return shown(what)


def shown(what: str) -> str:
    return repr(what if len(what) <= 40 else what[:39] + "…")


def skip_space(text: str, offset: int) -> int:
    return SPACE.match(text, offset).end()  # type: ignore[union-attr]


def quoted(text: str, offset: int) -> tuple[str, int]:
    """The string whose opening quote stands at the offset, and the offset behind its closing quote."""
    literal = _QUOTED[text[offset]].match(text, offset)
    if literal is None:
        raise PlacedError(
            offset,
            f"the string that begins here has no closing {_closing(text[offset])} on its line",
            "close it, or write \\n for a new line inside it",
        )
    raw = literal[1]
    if "\\" in raw or text[offset] in raw:
        raw = _unescaped(raw, text[offset], literal.start(1))
    return raw, literal.end()


def _closing(opening: str) -> str:
    return {"‘": "’", "“": "”"}.get(opening, opening)


def _unescaped(raw: str, quote: str, start: int) -> str:
    def replaced(escape: re.Match[str]) -> str:
        if escape[5]:
            return escape[5][0] if escape[5][0] == quote else escape[5]
        if escape[4]:
            return _simple(escape[4], start + escape.start())
        code = int(escape[1] or escape[2] or escape[3], 16)
        if code > 0x10FFFF:
            raise PlacedError(
                start + escape.start(), f"{escape[0]} is beyond the last character, \\U0010FFFF"
            )
        if 0xD800 <= code <= 0xDFFF:
            raise PlacedError(
                start + escape.start(),
                f"{escape[0]} is half of a surrogate pair, not a character",
                "write the whole character as \\UHHHHHHHH",
            )
        return chr(code)

    return _ESCAPE.sub(replaced, raw)


def _simple(letter: str, offset: int) -> str:
    character = _SIMPLE_ESCAPES.get(letter)
    if character is not None:
        return character
    if letter in "xuU":
        digits = {"x": "2", "u": "4", "U": "8"}[letter]
        raise PlacedError(offset, f"\\{letter} needs {digits} hexadecimal digits")
    raise PlacedError(
        offset,
        f"\\{letter} is not an escape",
        "write \\\\ for a backslash; the escapes are \\n \\t \\r \\\\ \\' \\\" \\xHH \\uHHHH \\UHHHHHHHH",
    )
