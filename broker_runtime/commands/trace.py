"""`trace`: publish, and show the way that the publication takes through the network."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from broker_runtime.client import Trace
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, reader, run_async
from broker_runtime.commands.exits import Exit
from broker_runtime.commands.publish import Advertiser
from broker_runtime.dialect import readers
from broker_runtime.language import parse_publication

EXAMPLE = """python -m broker_runtime trace -b 127.0.0.1:10000 "[class,'STOCK'],[price,20]" """


def run(arguments: Sequence[str]) -> int:
    parser = Parser("trace", "Publish once, and show which brokers it came by.", EXAMPLE)
    parser.add_argument("publication", metavar="PUBLICATION")
    parser.add_argument(
        "--timeout", type=reader(readers.seconds), default=10.0, metavar="S", help="for all reports (10 s)"
    )
    add_connection(parser)
    return run_async(_trace(parse(parser, arguments)))


async def _trace(arguments: argparse.Namespace) -> int:
    content = parse_publication(arguments.publication, now=datetime.now(UTC))
    async with client_of(arguments) as client:
        await Advertiser(client).advertise_for(content)
        client.ready()
        trace = await client.trace(content, timeout_s=arguments.timeout)
    printing.result(trace_data(trace), trace_text(trace), as_json=arguments.json)
    return Exit.DONE if trace.complete else Exit.FAILED


def trace_data(trace: Trace) -> dict[str, object]:
    steps = [
        {"broker": s.broker, "from": s.came_from, "to": list(s.goes_to), "hops": s.hops, "time": s.time}
        for s in trace.steps
    ]
    return {"id": trace.id, "complete": trace.complete, "steps": steps}


def trace_text(trace: Trace) -> str:
    lines = [trace.id if trace.complete else f"{trace.id} (not every broker has reported)"]
    first = trace.steps[0].time if trace.steps else 0.0
    for step in trace.steps:
        to = ", ".join(step.goes_to) or "nobody"
        lines.append(f"  {step.broker}: from {step.came_from} to {to}, {1e3 * (step.time - first):+.1f} ms")
    return "\n".join(lines)
