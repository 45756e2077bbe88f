"""`sqsubscriber`: subscribes to stock quotes, as the papers' startSQsubscriber.sh."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from broker_runtime.client import Notification
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import CommandClient
from broker_runtime.commands.exits import Exit
from broker_runtime.commands.shapes import notification_data, notification_text
from broker_runtime.commands.sqpublisher import run_traffic
from broker_runtime.commands.subscribe import until_done_or_failed
from broker_runtime.dialect.options import options_text
from broker_runtime.dialect.scripts import SQ_SUBSCRIBER

HELP: Final = f"""usage: python -m broker_runtime sqsubscriber -i ID -s SUBSCRIPTIONS [-b BROKER] [option …]

Subscribe, and print notifications until stopped.

options:
{options_text(SQ_SUBSCRIBER)}

example:
  startSQsubscriber.sh -i S0 -s "[class,eq,'STOCK'],[symbol,eq,'YHOO']" -b 127.0.0.1:10000"""


def run(arguments: Sequence[str]) -> int:
    return run_traffic("sqsubscriber", arguments, HELP, _subscribe)


async def _subscribe(client: CommandClient, values: Mapping[str, Any]) -> int:
    received = 0
    enough = asyncio.Event()

    def take(notification: Notification) -> None:
        nonlocal received
        if enough.is_set():
            return
        received += 1
        if not values.get("quiet"):
            text = notification_text(notification)
            printing.result(notification_data(notification), text, as_json=values.get("json", False))
        if received == values.get("count"):
            enough.set()

    await asyncio.sleep(values.get("delay_s", 0.0))
    for text in values["subscriptions"]:
        await client.subscribe(text, take)
    client.ready()
    try:
        async with asyncio.timeout(values.get("duration_s")):
            await until_done_or_failed(client, enough)
    except TimeoutError:
        pass
    finally:
        printing.note(f"{client.id} received {received}")
    return Exit.DONE if received >= values.get("count", 0) else Exit.FAILED
