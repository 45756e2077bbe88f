"""Decides how a table of options reads an argument list, in any dialect; never prints or exits.

An option may have several names, with one dash or two, and any length: `-p`, `-hostname`, `--log-every`.
Its value is the next argument, or follows `=` after a long name; names marked `glued` may carry it directly
(`-Xmx128m`). All problems of an argument list are found at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Reader = Callable[[str], Any]


def text(value: str) -> str:
    if not value:
        raise ValueError("it is empty")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of a table. A row without `value` is a switch; `read` raises ValueError."""

    names: tuple[str, ...]
    key: str
    help: str
    value: str = ""  # how the help calls the value
    read: Reader = text
    glued: bool = False

    @property
    def shown(self) -> str:
        return ", ".join(self.names) + (f" {self.value}" if self.value else "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an argument list says: values by key, and what is wrong with it."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


HELP: Final = Option(names=("--help",), key="help", help="show this and exit")


def read_arguments(table: Sequence[Option], arguments: Iterable[str], rest: Option | None = None) -> Reading:
    """Read every argument; a later one overrides an earlier one of the same key.

    Arguments that are no options belong to `rest`, if there is such a row: a tuple under its key.
    """
    by_name = {name: option for option in table for name in option.names}
    reading = Reading()
    left = list(arguments)
    while left:
        argument = left.pop(0)
        option, name, glued = _find(by_name, argument)
        if option is None and rest is not None and (argument == "-" or not argument.startswith("-")):
            _take_one_more(reading, rest, argument)
        elif option is None:
            _skip_value(by_name, left)
            reading.problems.append(_unknown(by_name, argument))
        elif not option.value:
            if glued is None:
                reading.values[option.key] = True
            else:
                reading.problems.append(f"{name} takes no value")
        elif glued is not None:
            _take(reading, option, name, glued)
        elif not left or left[0] in by_name:
            reading.problems.append(f"{name} needs a value: {option.value}")
        else:
            _take(reading, option, name, left.pop(0))
    return reading


def changed_arguments(
    table: Sequence[Option], arguments: Iterable[str], change: Mapping[str, Callable[[str], str]]
) -> list[str]:
    """The same arguments with the values of some keys changed; what the table does not know stays."""
    by_name = {name: option for option in table for name in option.names}
    left = list(arguments)
    changed = []
    while left:
        argument = left.pop(0)
        option, name, glued = _find(by_name, argument)
        act = change.get(option.key) if option is not None and option.value else None
        if option is None or not option.value:
            changed.append(argument)
        elif glued is not None:
            tie = argument[len(name) : len(argument) - len(glued)]  # `=` or nothing
            changed.append(f"{name}{tie}{act(glued) if act else glued}")
        else:
            changed.append(argument)
            if left:
                value = left.pop(0)
                changed.append(act(value) if act else value)
    return changed


def read_mapping(table: Sequence[Option], entries: Mapping[str, object]) -> Reading:
    """Read a configuration file's entries: option names without dashes; `-` and `_` are alike."""
    by_name = {_plain(name): (name, option) for option in table for name in option.names}
    reading = Reading()
    for key, value in entries.items():
        name, option = by_name.get(_plain(key), ("", None))
        if option is None:
            reading.problems.append(f"unknown option {key!r}{nearest(_plain(key), by_name)}")
        elif not option.value:
            if not isinstance(value, bool):
                reading.problems.append(f"{key} is true or false")
            elif value:
                reading.values[option.key] = True
        else:
            several = isinstance(value, list)
            written = ",".join(map(str, value)) if several else str(value)  # type: ignore[call-overload]
            _take(reading, option, name, written)
    return reading


def options_text(table: Sequence[Option]) -> str:
    """The rows of a help page."""
    width = 30
    lines = []
    for option in table:
        shown = f"  {option.shown}"
        if len(shown) > width - 2:
            lines += [shown, " " * width + option.help]
        else:
            lines.append(shown.ljust(width) + option.help)
    return "\n".join(lines)


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean …?)` or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _find(by_name: Mapping[str, Option], argument: str) -> tuple[Option | None, str, str | None]:
    option = by_name.get(argument)
    if option is not None:
        return option, argument, None
    name, equals, value = argument.partition("=")
    if equals and name.startswith("--") and name in by_name:
        return by_name[name], name, value
    for name, option in by_name.items():
        if option.glued and argument.startswith(name):
            return option, name, argument[len(name) :]
    return None, argument, None


def _take(reading: Reading, option: Option, name: str, value: str) -> None:
    try:
        reading.values[option.key] = option.read(value)
    except ValueError as error:
        reading.problems.append(f"{name} {value}: {error}")


def _take_one_more(reading: Reading, rest: Option, value: str) -> None:
    try:
        taken = (*reading.values.get(rest.key, ()), rest.read(value))
    except ValueError as error:
        reading.problems.append(f"{value} is no {rest.value}: {error}")
    else:
        reading.values[rest.key] = taken


def _skip_value(by_name: Mapping[str, Option], left: list[str]) -> None:
    """An unknown option's value is not reported as well."""
    if left and not left[0].startswith("-"):
        left.pop(0)


def _unknown(by_name: Mapping[str, Option], argument: str) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}"
    name = argument.partition("=")[0]
    return f"unknown option {name}{nearest(name, by_name)}"


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")
