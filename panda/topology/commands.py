"""Decides what the command of an ADD line says about the process: who it is, where it listens, whom it calls.

The start scripts are read by the runtime's own tables; any other command is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from broker_runtime.addresses import Address, parse_address
from broker_runtime.dialect import scripts
from broker_runtime.dialect.options import read_arguments
from panda.topology.model import BROKER, CLIENT, COMMAND

WILDCARDS: Final = frozenset(("0.0.0.0", "::", "*"))  # noqa: S104 - compared, never bound


@dataclass(frozen=True, slots=True)
class Said:
    """What a command says; `problems` are each an index of the command and a message."""

    kind: str = COMMAND
    word: str = ""
    arguments: tuple[str, ...] = ()
    speaks: str = ""
    listen: Address | None = None
    hostname: str = ""
    neighbours: tuple[Address, ...] = ()
    broker: Address | None = None
    configured: bool = False
    """A configuration file says the rest."""
    problems: tuple[tuple[int, str], ...] = ()


def said_by(command: Sequence[str], host: str) -> Said:
    """A broker without a host name of its own listens at the host of its line."""
    word = scripts.word_of(command[0]) if command else None
    arguments = tuple(command[1:])
    if word is None:
        return Said(arguments=tuple(command))
    if word == scripts.START_SCRIPTS["startbroker"]:
        return _broker(word, arguments, host)
    return _client(word, arguments)


def _broker(word: str, arguments: tuple[str, ...], host: str) -> Said:
    reading = read_arguments(scripts.BROKER, arguments)
    values = dict(reading.values)
    uri: Address | None = values.get("uri")
    hostname = values.get("hostname") or (uri.host if uri else "")
    if uri is None:
        values.setdefault("hostname", host)
    problems = list(reading.problems)
    configured = "config" in values
    words = scripts.broker_words({**values, "neighbours": ()})  # a link with itself is the overlay's affair
    if not isinstance(words, list):
        listen = words.listen
        if listen.host in WILDCARDS:
            listen = listen._replace(host=host)
        neighbours = tuple(map(parse_address, values.get("neighbours", ())))
        return Said(
            BROKER,
            word,
            arguments,
            listen.id,
            listen,
            hostname,
            neighbours,
            configured=configured,
            problems=_placed(problems, arguments),
        )
    if not problems and not configured:
        problems += words
    speaks = values.get("id") or (uri.id if uri else "")
    return Said(
        BROKER,
        word,
        arguments,
        speaks,
        hostname=hostname,
        neighbours=tuple(map(parse_address, values.get("neighbours", ()))),
        configured=configured,
        problems=_placed(problems, arguments),
    )


def _client(word: str, arguments: tuple[str, ...]) -> Said:
    reading = scripts.read_client(word, arguments)
    values: Mapping[str, Any] = reading.values
    return Said(
        CLIENT,
        word,
        arguments,
        values.get("id", ""),
        broker=values.get("broker"),
        problems=_placed(reading.problems, arguments),
    )


def _placed(problems: Sequence[str], arguments: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Each with the index in the command of the argument that it is about; 0 when it is about all of them."""
    return tuple((_index(problem, arguments), problem) for problem in problems)


def _index(problem: str, arguments: Sequence[str]) -> int:
    for index, argument in enumerate(arguments, 1):
        name = argument.partition("=")[0] if argument.startswith("--") else argument
        if problem.startswith((f"{name} ", f"unexpected argument {argument!r}")):
            return index
        if problem.startswith(f"unknown option {name}") and problem[15 + len(name) :][:1] in ("", " "):
            return index
    return 0
