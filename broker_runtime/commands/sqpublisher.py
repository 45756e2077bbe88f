"""`sqpublisher`: stock quotes at a rate, as the papers' startSQpublisher.sh."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from broker_runtime.client import ClientOptions
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import CommandClient, log_file, open_client, run_async, settle
from broker_runtime.commands.changes import Changes
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.commands.pacing import keep, limited
from broker_runtime.dialect.options import options_text
from broker_runtime.dialect.scripts import SQ_PUBLISHER, read_client
from broker_runtime.workloads.schedule import even, merged, poisson
from broker_runtime.workloads.stocks import advertisement_text, quotes

RATE_PER_MINUTE: Final = 60.0

HELP: Final = f"""usage: python -m broker_runtime sqpublisher -i ID -s SYMBOLS [-b BROKER] [option …]

Advertise and publish stock quotes until stopped.

options:
{options_text(SQ_PUBLISHER)}

example:
  startSQpublisher.sh -i P0 -s YHOO/MSFT -r 60 -d 0 -b 127.0.0.1:10000"""


def run(arguments: Sequence[str]) -> int:
    return run_traffic("sqpublisher", arguments, HELP, _publish)


def run_traffic(word: str, arguments: Sequence[str], help_: str, act: Any) -> int:
    """What publisher and subscriber of quotes share: read, refuse, wait for the delay, connect, act."""
    reading = read_client(word, arguments)
    if "help" in reading.values:
        printing.result({}, help_)
        return Exit.DONE
    if reading.problems:
        raise Refusal("\n".join(reading.problems))
    return run_async(_connected(reading.values, act))


async def _connected(values: Mapping[str, Any], act: Any) -> int:
    options = ClientOptions(
        on_change=Changes().tell,
        log=log_file(values.get("log")),
        log_every=values.get("log_every", 0),
        run=values.get("run", ""),
    )
    client = open_client(values["broker"].uri, values["id"], values.get("token_file"), options)
    async with client:
        printing.note(f"{client.id} connected to {client.broker}")
        code: int = await act(client, values)
        return code


async def _publish(client: CommandClient, values: Mapping[str, Any]) -> int:
    symbols: tuple[str, ...] = values["symbols"]
    rates = values.get("rates", (RATE_PER_MINUTE,))
    seed = values.get("seed", 0)
    for symbol in dict.fromkeys(symbols):
        await client.advertise(advertisement_text(symbol))
    await settle(client)
    client.ready()
    await asyncio.sleep(values.get("delay_s", 0.0))
    sources = [quotes(symbol, random.Random(f"{seed} {symbol}")) for symbol in symbols]
    times = []
    for number, symbol in enumerate(symbols):
        per_second = rates[number if len(rates) > 1 else 0] / 60
        spacing = random.Random(f"{seed} {symbol} spacing")
        each = poisson(per_second, spacing) if values.get("poisson") else even(per_second)
        times.append(limited(each, None, values.get("duration_s")))
    schedule = islice(merged(times), values.get("count"))
    done = await keep(client, schedule, lambda number: client.publish_soon(next(sources[number])))
    told = {"id": client.id, "published": done}
    printing.result(told, f"{client.id} published {done}", as_json=values.get("json", False))
    return Exit.DONE
