"""Decides which names a bracket expression stands for, in Ansible's spelling and in Slurm's; bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product

from panda.hosts.sources.entry import HOSTS_MAX
from panda.hosts.sources.refusal import shown

TEXT_LENGTH_MAX = 65_536
BRACKETS_MAX = 8

_ANSIBLE_NUMBERS = re.compile(r"([0-9]{1,9}):([0-9]{1,9})(?::([0-9]{1,9}))?")
_ANSIBLE_LETTERS = re.compile(r"([A-Za-z]):([A-Za-z])(?::([0-9]{1,2}))?")
_SLURM_NUMBERS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class BadRange(ValueError):
    """A bracket expression that cannot be expanded, and the column (from 0) where it fails."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


def expand_ansible(text: str) -> list[str]:
    """`node[01:20:2].example` or `db[a:f]`: the ends are both in."""
    return _expand(text, _ansible_range)


def expand_slurm(text: str) -> list[str]:
    """`node[01-03,07]` or `r[1-2]n[0-3]`, one name; `split_slurm` takes a list apart."""
    return _expand(text, _slurm_range)


def split_slurm(text: str) -> Iterator[tuple[int, str]]:
    """The names of a list separated by commas outside brackets, each with its column from 0."""
    begin, depth = 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield begin, text[begin:at]
            begin = at + 1
    yield begin, text[begin:]


def _expand(text: str, expand_range: Callable[[str], list[str]]) -> list[str]:
    if len(text) > TEXT_LENGTH_MAX:
        raise BadRange(f"an expression longer than {TEXT_LENGTH_MAX} characters")
    parts: list[list[str]] = []
    count, at, brackets = 1, 0, 0
    while at < len(text):
        begin = text.find("[", at)
        stop = len(text) if begin < 0 else begin
        if "]" in text[at:stop]:
            raise BadRange("']' without '['", text.index("]", at))
        parts.append([text[at:stop]])
        if begin < 0:
            break
        end = text.find("]", begin)
        if end < 0:
            raise BadRange("'[' without ']'", begin)
        if "[" in text[begin + 1 : end]:
            raise BadRange("a bracket within brackets", text.index("[", begin + 1))
        brackets += 1
        try:
            names = expand_range(text[begin + 1 : end])
        except BadRange as error:
            raise BadRange(str(error), begin + 1) from None
        count *= len(names)
        if count > HOSTS_MAX or brackets > BRACKETS_MAX:
            raise BadRange(f"it stands for more than {HOSTS_MAX} hosts", begin)
        parts.append(names)
        at = end + 1
    return ["".join(pieces) for pieces in product(*parts)]


def _ansible_range(text: str) -> list[str]:
    if numbers := _ANSIBLE_NUMBERS.fullmatch(text):
        first, last, step = numbers.groups()
        return _numbers(first, last, int(step or 1))
    if letters := _ANSIBLE_LETTERS.fullmatch(text):
        low, high, step = ord(letters[1]), ord(letters[2]), int(letters[3] or 1)
        if low > high or step < 1 or letters[1].islower() != letters[2].islower():
            raise BadRange(f"not a range: {shown(text)}")
        return [chr(code) for code in range(low, high + 1, step)]
    raise BadRange(f"not a range such as 01:20 or a:f: {shown(text)}")


def _slurm_range(text: str) -> list[str]:
    names: list[str] = []
    for item in text.split(","):
        numbers = _SLURM_NUMBERS.fullmatch(item)
        if not numbers:
            raise BadRange(f"not a range such as 01-20 or 7: {shown(item)}")
        names += _numbers(numbers[1], numbers[2] or numbers[1], 1)
        if len(names) > HOSTS_MAX:
            raise BadRange(f"it stands for more than {HOSTS_MAX} hosts")
    return names


def _numbers(first: str, last: str, step: int) -> list[str]:
    """Leading zeros of the first number are the width of all."""
    if int(first) > int(last):
        raise BadRange(f"a range that ends before it begins: {first}, {last}")
    if step < 1:
        raise BadRange("a range with a step of 0")
    width = len(first) if first.startswith("0") else 0
    if width > len(last):
        raise BadRange(f"a range whose ends have different widths: {first}, {last}")
    if (int(last) - int(first)) // step >= HOSTS_MAX:
        raise BadRange(f"it stands for more than {HOSTS_MAX} hosts")
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1, step)]
