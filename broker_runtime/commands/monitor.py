"""`monitor`: what brokers tell of themselves, live or once."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence

from broker_runtime.client import ClientOptions, Notification
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, reader, run_async
from broker_runtime.commands.changes import Changes
from broker_runtime.commands.exits import Exit
from broker_runtime.commands.shapes import content_data
from broker_runtime.commands.subscribe import until_done_or_failed
from broker_runtime.control.words import BROKER_INFO
from broker_runtime.dialect import readers
from broker_runtime.language import Value

EXAMPLE = "python -m broker_runtime monitor -b 127.0.0.1:10000 --once"
HEADER = (
    f"{'broker':<12} {'state':<8} {'neighbours':<24} {'clients':>7} {'subs':>6} {'in/s':>8} {'out/s':>8}"
    f" {'queue':>6} {'match µs':>9} {'MB':>6}"
)


def run(arguments: Sequence[str]) -> int:
    parser = Parser("monitor", "Show the status of every broker, as they publish it or once.", EXAMPLE)
    parser.add_argument("--once", action="store_true", help="ask every broker now, and end")
    parser.add_argument("--count", metavar="N", type=reader(readers.positive), help="stop after so many")
    add_connection(parser)
    return run_async(_monitor(parse(parser, arguments)))


async def _monitor(arguments: argparse.Namespace) -> int:
    left = arguments.count
    done = asyncio.Event()

    def show(notification: Notification) -> None:
        nonlocal left
        if not done.is_set():
            show_status(notification.content, as_json=arguments.json)
            left = None if left is None else left - 1
            if left == 0:
                done.set()

    async with client_of(arguments, ClientOptions(on_change=Changes().tell)) as client:
        if not arguments.json:
            printing.result({}, HEADER)
        if arguments.once:
            client.ready()
            for info in await client.brokers():
                show_status(info.content, as_json=arguments.json)
            return Exit.DONE
        await client.subscribe(f"[class,eq,'{BROKER_INFO}'],[state,isPresent,@STRING]", show)
        client.ready()
        await until_done_or_failed(client, done)
    return Exit.DONE


def show_status(content: Mapping[str, Value], *, as_json: bool) -> None:
    printing.result(content_data(content), status_text(content), as_json=as_json)


def status_text(content: Mapping[str, Value]) -> str:
    def number(name: str, scale: float = 1.0) -> float:
        value = content.get(name, 0)
        return value * scale if isinstance(value, int | float) else 0.0

    return (
        f"{content.get('broker', '')!s:<12} {content.get('state', '')!s:<8}"
        f" {content.get('neighbours', '')!s:<24}"
        f" {number('client_count'):>7.0f} {number('subscriptions'):>6.0f}"
        f" {number('rate_in'):>8.1f} {number('rate_out'):>8.1f} {number('queue_length'):>6.0f}"
        f" {number('matching_us'):>9.1f} {number('memory_bytes', 1 / (1 << 20)):>6.1f}"
    )
