"""`workload`: publications or subscriptions by distribution and rate, to a broker or to stdout."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from itertools import islice

from broker_runtime.commands import printing
from broker_runtime.commands.arguments import (
    CommandClient,
    Parser,
    add_connection,
    client_of,
    parse,
    reader,
    run_async,
    settle,
)
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.commands.pacing import keep, limited
from broker_runtime.dialect import readers
from broker_runtime.language import print_publication, print_subscription
from broker_runtime.workloads.schedule import even, poisson
from broker_runtime.workloads.synthetic import OPERATORS, Spec, Synthetic

EXAMPLE = """python -m broker_runtime workload publish -b 127.0.0.1:10000 --rate 500 --duration 10s --zipf 1
python -m broker_runtime workload subscribe --count 1000 --print > subscriptions.txt"""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("workload", "Publish or subscribe by distribution and rate, from a seed.", EXAMPLE)
    parser.add_argument("kind", choices=("publish", "subscribe"))
    parser.add_argument(
        "--class", dest="class_", default="SYNTHETIC", help="class of the messages (SYNTHETIC)"
    )
    parser.add_argument("--attributes", type=reader(readers.positive), default=20, metavar="N", help="(20)")
    parser.add_argument(
        "--per-message", type=reader(_range), default=(3, 6), metavar="A..B", help="attributes of each (3..6)"
    )
    parser.add_argument("--values", type=reader(_range), default=(1, 100), metavar="A..B", help="(1..100)")
    parser.add_argument("--zipf", type=float, default=0.0, metavar="S", help="exponent; 0 is uniform (0)")
    parser.add_argument(
        "--operators", default=",".join(OPERATORS), metavar="=,<,…", help="of subscriptions (= < <= > >=)"
    )
    parser.add_argument("--rate", type=reader(_rate), default=10.0, metavar="R", help="per second (10)")
    parser.add_argument("--poisson", action="store_true", help="random spacing with the same rate")
    parser.add_argument("--seed", type=reader(readers.count), default=0, metavar="N", help="(0)")
    parser.add_argument("--count", type=reader(readers.positive), metavar="N", help="stop after so many")
    parser.add_argument("--duration", type=reader(readers.seconds), metavar="S", help="stop after so long")
    parser.add_argument(
        "--payload-bytes", type=reader(readers.count), default=0, metavar="N", help="of each publication (0)"
    )
    parser.add_argument("--print", action="store_true", help="print --count messages instead of sending")
    add_connection(parser)
    return _run(parse(parser, arguments))


def _run(arguments: argparse.Namespace) -> int:
    try:
        spec = Spec(
            class_=arguments.class_,
            attributes=arguments.attributes,
            per_message=arguments.per_message,
            values=arguments.values,
            skew=arguments.zipf,
            operators=tuple(arguments.operators.split(",")),
        )
    except ValueError as error:
        raise Refusal(str(error)) from None
    source = Synthetic(spec, random.Random(arguments.seed))
    if not arguments.print:
        return run_async(_send(arguments, source))
    if arguments.count is None:
        raise Refusal("--print needs --count")
    for _ in range(arguments.count):
        if arguments.kind == "publish":
            text = print_publication(source.publication())
        else:
            text = print_subscription(source.subscription())
        printing.result({arguments.kind: text}, text, as_json=arguments.json)
    return Exit.DONE


async def _send(arguments: argparse.Namespace, source: Synthetic) -> int:
    async with client_of(arguments) as client:
        if arguments.kind == "publish":
            done = await _publish(client, arguments, source)
        else:
            done = await _subscribe(client, arguments, source)
    told = {"id": client.id, arguments.kind: done}
    printing.result(told, f"{client.id}: {arguments.kind} {done}", as_json=arguments.json)
    return Exit.DONE


async def _publish(client: CommandClient, arguments: argparse.Namespace, source: Synthetic) -> int:
    await client.advertise(source.advertisement())
    await settle(client)
    client.ready()
    spacing = random.Random(f"{arguments.seed} spacing")
    times = poisson(arguments.rate, spacing) if arguments.poisson else even(arguments.rate)
    schedule = ((at, None) for at in limited(times, arguments.count, arguments.duration))

    def publish(_: None) -> None:
        client.publish_soon(source.publication(), source.payload(arguments.payload_bytes))

    return await keep(client, schedule, publish)


async def _subscribe(client: CommandClient, arguments: argparse.Namespace, source: Synthetic) -> int:
    """Subscribe all at once, and take notifications until the time is over or the client is stopped."""
    import asyncio

    received = 0

    def take(_: object) -> None:
        nonlocal received
        received += 1

    for _ in islice(range(arguments.count or 1), arguments.count):
        await client.subscribe(source.subscription(), take)
    client.ready()
    printing.note(f"{client.id} subscribed at {client.broker}")
    try:
        async with asyncio.timeout(arguments.duration):
            await client.ended()
    except TimeoutError:
        pass
    finally:
        printing.note(f"{client.id} received {received}")
    return arguments.count or 1


def _range(text: str) -> tuple[int, int]:
    """`3..6`, or `3` alone."""
    low, dots, high = text.partition("..")
    try:
        return int(low), int(high if dots else low)
    except ValueError:
        raise ValueError("it is a range such as 3..6") from None


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise ValueError("a rate is more than 0 per second")
    return rate
