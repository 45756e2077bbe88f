"""`subscribe`: print notifications as they come."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from broker_runtime.client import Client, ClientOptions, Notification
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, reader, run_async
from broker_runtime.commands.changes import Changes
from broker_runtime.commands.exits import Exit
from broker_runtime.commands.shapes import notification_data, notification_text
from broker_runtime.dialect import readers
from broker_runtime.language import parse_subscription

EXAMPLE = """python -m broker_runtime subscribe -b 127.0.0.1:10000 "[class,eq,'STOCK'],[price,>,10]" """


def run(arguments: Sequence[str]) -> int:
    parser = Parser("subscribe", "Subscribe, and print notifications until stopped.", EXAMPLE)
    parser.add_argument("subscriptions", nargs="+", metavar="SUBSCRIPTION")
    parser.add_argument("--count", metavar="N", type=reader(readers.positive), help="stop after so many")
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=reader(readers.seconds),
        help="stop after so long (exit 1 before --count)",
    )
    add_connection(parser)
    return run_async(_subscribe(parse(parser, arguments)))


async def _subscribe(arguments: argparse.Namespace) -> int:
    wanted = [parse_subscription(text, now=datetime.now(UTC)) for text in arguments.subscriptions]
    left = arguments.count
    done = asyncio.Event()

    def show(notification: Notification) -> None:
        nonlocal left
        if done.is_set():
            return
        data = notification_data(notification)
        printing.result(data, notification_text(notification), as_json=arguments.json)
        if left is not None:
            left -= 1
            if not left:
                done.set()

    async with client_of(arguments, ClientOptions(on_change=Changes().tell)) as client:
        for subscription in wanted:
            await client.subscribe(subscription, show)
        client.ready()
        printing.note(f"{client.id} subscribed at {client.broker}")
        try:
            async with asyncio.timeout(arguments.timeout):
                await until_done_or_failed(client, done)
        except TimeoutError:
            if left:
                came = arguments.count - left
                printing.note(f"only {came} of {arguments.count} came within {arguments.timeout:g} s")
                return Exit.FAILED
    return Exit.DONE


async def until_done_or_failed(client: Client, done: asyncio.Event) -> None:
    """Wait for the event, or raise what ended the client."""
    waiting = asyncio.create_task(done.wait())
    ended = asyncio.create_task(client.ended())
    try:
        await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            ended.result()
    finally:
        waiting.cancel()
        ended.cancel()
