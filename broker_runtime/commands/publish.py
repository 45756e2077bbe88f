"""`publish`: one publication per argument, or per line of stdin."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from broker_runtime.client import Client
from broker_runtime.commands import printing, stdin
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, run_async, settle
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.commands.shapes import advertisement_for
from broker_runtime.language import CLASS, LanguageError, Value, parse_advertisement, parse_publication

EXAMPLE = """python -m broker_runtime publish -b 127.0.0.1:10000 "[class,'STOCK'],[price,20]"
python -m broker_runtime publish -b 127.0.0.1:10000 - < publications.txt"""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("publish", "Publish, and print the id of each publication once a broker has it.", EXAMPLE)
    parser.add_argument("publications", nargs="+", metavar="PUBLICATION", help="or - for lines of stdin")
    parser.add_argument(
        "-a", "--advertise", action="append", metavar="TEXT", help="advertise this, not what is published"
    )
    parser.add_argument("--payload", metavar="FILE", help="send this file's bytes along")
    add_connection(parser)
    found = parse(parser, arguments)
    try:
        payload = Path(found.payload).read_bytes() if found.payload else b""
    except OSError as error:
        raise Refusal(f"--payload {found.payload}: {error.strerror}") from None
    return run_async(_publish(found, payload))


async def _publish(arguments: argparse.Namespace, payload: bytes) -> int:
    texts = arguments.publications
    known = [_parsed(place, text) for place, text in _arguments(texts) if text != "-"]  # refuse all or none
    promised = [parse_advertisement(text, now=datetime.now(UTC)) for text in arguments.advertise or ()]
    async with client_of(arguments) as client:
        for advertisement in promised:
            await client.advertise(advertisement)
        if promised:
            await settle(client)
        advertiser = None if promised else Advertiser(client)
        if advertiser is not None:
            for content in known:
                await advertiser.advertise_for(content)
        client.ready()
        async for place, text in _texts(texts):
            content = _parsed(place, text)
            if advertiser is not None:
                await advertiser.advertise_for(content)
            try:
                id_ = await client.publish(content, payload)
            except ValueError as error:  # together with its payload it is too large
                raise Refusal(f"{place}{error}") from None
            printing.result({"id": id_}, id_, as_json=arguments.json)
    return Exit.DONE


class Advertiser:
    """Advertises what is about to be published, once for each class and set of attributes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._done: set[tuple[Value, frozenset[str]]] = set()

    async def advertise_for(self, content: Mapping[str, Value]) -> None:
        shape = (content[CLASS], frozenset(content))
        if shape not in self._done:
            self._done.add(shape)
            await self._client.advertise(advertisement_for(content))
            await settle(self._client)


def _parsed(place: str, text: str) -> Mapping[str, Value]:
    try:
        return parse_publication(text, now=datetime.now(UTC))
    except LanguageError as error:
        raise Refusal("\n".join(f"{place}{problem.pointing()}" for problem in error.problems)) from None


def _arguments(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each argument after what to call it."""
    for number, text in enumerate(texts, 1):
        yield f"argument {number}: " if len(texts) > 1 else "", text


async def _texts(arguments: Sequence[str]) -> AsyncIterator[tuple[str, str]]:
    """Every text, after where it stands."""
    number = 0
    for place, argument in _arguments(arguments):
        if argument != "-":
            yield place, argument
            continue
        async for line in stdin.lines():
            number += 1
            text = _decoded(f"stdin line {number}: ", line).strip()
            if text and not text.startswith("#"):
                yield f"stdin line {number}: ", text


def _decoded(place: str, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Refusal(f"{place}it is not UTF-8") from None
