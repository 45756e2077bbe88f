"""`control`: have a broker do something, and print its answer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from broker_runtime.client import BrokerInfo
from broker_runtime.commands import printing
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, reader, run_async
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.commands.monitor import HEADER, status_text
from broker_runtime.commands.shapes import content_data
from broker_runtime.dialect import readers

COMMANDS = ("info", "tables", "pause", "resume", "shutdown", "cut", "inject")
KINDS = ("publish", "advertise", "subscribe", "unadvertise", "unsubscribe")
EXAMPLE = """python -m broker_runtime control pause Bob -b 127.0.0.1:10000
python -m broker_runtime control cut Bob --peer Carol -b 127.0.0.1:10000
python -m broker_runtime control inject Bob publish "[class,'STOCK'],[price,20]" -b 127.0.0.1:10000"""


def run(arguments: Sequence[str]) -> int:
    parser = Parser("control", "Have a broker carry out a command, through any broker.", EXAMPLE)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument(
        "target", nargs="?", default="", metavar="BROKER", help="its id; else the one dialled"
    )
    parser.add_argument("kind", nargs="?", choices=KINDS, help="of an injected message")
    parser.add_argument("text", nargs="?", default="", help="the message, or the id to withdraw")
    parser.add_argument("--peer", default="", metavar="ID", help="whose connection to cut")
    parser.add_argument(
        "--timeout", type=reader(readers.seconds), default=10.0, metavar="S", help="for the answer (10 s)"
    )
    add_connection(parser)
    found = parse(parser, arguments)
    _check(found)
    return run_async(_control(found))


def _check(found: argparse.Namespace) -> None:
    """Refuse what a command lacks, or has and cannot use."""
    if found.command == "inject":
        needed = {"BROKER": found.target, f"KIND ({', '.join(KINDS)})": found.kind, "TEXT": found.text}
        missing = [name for name, given in needed.items() if not given]
        if missing:
            raise Refusal(f"inject takes BROKER KIND TEXT; missing: {', '.join(missing)}")
    elif found.kind:
        raise Refusal(f"{found.command} takes no {found.kind!r}: only inject takes BROKER KIND TEXT")
    if found.command == "cut" and not found.peer:
        raise Refusal("cut needs --peer ID: the neighbour or client whose connection to cut")
    if found.command != "cut" and found.peer:
        raise Refusal(f"{found.command} takes no --peer: only cut does")


async def _control(arguments: argparse.Namespace) -> int:
    fields = {"kind": arguments.kind, "text": arguments.text} if arguments.kind else {}
    if arguments.peer:
        fields["peer"] = arguments.peer
    async with client_of(arguments) as client:
        client.ready()
        broker = arguments.target or client.broker
        answer = await client.control(broker, arguments.command, timeout_s=arguments.timeout, **fields)
    _show(arguments, answer)
    return Exit.DONE


def _show(arguments: argparse.Namespace, answer: BrokerInfo) -> None:
    data: dict[str, object] = content_data(answer.content)
    if arguments.command == "tables":
        tables = answer.tables()
        printing.result({**data, "tables": tables}, tables_text(answer), as_json=arguments.json)
    elif arguments.command == "info":
        printing.result(data, f"{HEADER}\n{status_text(answer.content)}", as_json=arguments.json)
    else:
        data["answer"] = answer.payload.decode()
        text = f"{answer.broker}: {arguments.command} done {answer.payload.decode()}".rstrip()
        printing.result(data, text, as_json=arguments.json)


def tables_text(answer: BrokerInfo) -> str:
    tables = answer.tables()
    lines = []
    for title, hop in (("advertisements", "from"), ("subscriptions", "from")):
        lines.append(f"{title}:")
        lines += [f"  {each['id']} {hop} {each['hop']}: {each['text']}" for each in tables[title]]
    lines.append("links:")
    lines += [
        f"  {each['role']} {each['peer']}: {'up' if each['up'] else 'down'}, {each['records_in']} in,"
        f" {each['records_out']} out, {each['queue_length']} waiting"
        for each in tables["links"]
    ]
    lines.append("overlay: " + ", ".join(f"{edge[-2]}–{edge[-1]}" for edge in tables["overlay"]))
    return "\n".join(lines)
