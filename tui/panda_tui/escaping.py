"""Decides how text from elsewhere is shown: no character of it steers the terminal, none of it is markup."""

from __future__ import annotations

from rich.text import Text

from panda.analysis.protocol import printable


def plain(text: object, style: str = "") -> Text:
    """One line of it, to be drawn as it is."""
    return Text(one_line(text), style, no_wrap=True, end="")


def one_line(text: object) -> str:
    return printable(str(text).replace("\t", "    ")).replace("\n", " ")


def lines(text: object) -> Text:
    """All of its lines."""
    return Text(printable(str(text).replace("\t", "    ")))
