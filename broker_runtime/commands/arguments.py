"""Decides what the client commands have in common: how they name a broker, and how they end."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from broker_runtime.client import Client, ClientError, ClientOptions, Unreachable, find_token
from broker_runtime.client.errors import plain_reason
from broker_runtime.commands import printing
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.dialect import readers
from broker_runtime.dialect.options import nearest
from broker_runtime.dialect.scripts import DEFAULT_BROKER
from broker_runtime.language import LanguageError
from broker_runtime.net.line import Line, LineError, open_line

SETTLE_TIMEOUT_S: Final = 5.0


class CommandClient(Client):
    """The client of a command: it tells an agent on the line when it is ready.

    Stopped before there is a broker, it says so instead of ending as if all were done.
    """

    async def open(self) -> Client:
        try:
            return await super().open()
        except asyncio.CancelledError:
            raise StoppedEarly(self) from None

    def ready(self) -> None:
        """What this command asks of the network has been taken: from here on it acts."""
        if self.line is not None:
            self.line.ready(self.id)


class StoppedEarly(Refusal):
    """SIGTERM, or an interrupt, came before there was a broker."""

    def __init__(self, client: CommandClient) -> None:
        super().__init__(f"stopped before a broker answered at {client.address}", Exit.INTERRUPTED)
        self.of_agent = client.line is not None


class Parser(argparse.ArgumentParser):
    """Refuses with one message and the nearest name, instead of printing a usage and exiting."""

    def __init__(self, word: str, about: str, example: str) -> None:
        super().__init__(
            prog=f"python -m broker_runtime {word}",
            description=about,
            epilog="example:\n" + "\n".join(f"  {line}" for line in example.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message}\n  {self.prog} --help shows how")

    def print_help(self, file: Any = None) -> None:
        printing.result({}, self.format_help().rstrip("\n"))

    def unknown(self, argument: str) -> NoReturn:
        if not argument.startswith("-"):
            self.error(f"unexpected argument {argument!r}")
        name = argument.partition("=")[0]
        known = [name for action in self._actions for name in action.option_strings]
        self.error(f"unknown option {name}{nearest(name, known)}")


def reader(read: Any) -> Any:
    """A reader of `readers` for argparse, which shows the message of ArgumentTypeError only."""

    def type_(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return type_


def add_connection(parser: Parser) -> None:
    group = parser.add_argument_group("connection")
    address = reader(lambda text: readers.target(text).uri)
    group.add_argument(
        "-b",
        "--broker",
        metavar="ADDRESS",
        default=str(DEFAULT_BROKER),
        type=address,
        help=f"host:port or URI ({DEFAULT_BROKER})",
    )
    group.add_argument("-i", "--id", metavar="ID", type=reader(readers.identifier), help="id of this client")
    group.add_argument("--token-file", metavar="FILE", help="file with the shared token (or set PANDA_TOKEN)")
    group.add_argument(
        "--connect-timeout",
        metavar="S",
        default=10.0,
        type=reader(readers.seconds),
        help="how long to wait for the broker (10 s)",
    )
    group.add_argument("--log", metavar="FILE", help="write a log of JSON lines to this file")
    group.add_argument(
        "--log-every", metavar="N", type=reader(readers.count), default=0, help="log each N-th publication"
    )
    group.add_argument("--run", metavar="NAME", default="", help="name of the run, for the log")
    parser.add_argument("--json", action="store_true", help="print results as JSON lines")


def client_of(arguments: argparse.Namespace, options: ClientOptions | None = None) -> CommandClient:
    """The client that the connection options describe, not yet open."""
    options = replace(
        options or ClientOptions(),
        connect_timeout_s=arguments.connect_timeout,
        log=log_file(arguments.log),
        log_every=arguments.log_every,
        run=arguments.run,
    )
    return open_client(arguments.broker, arguments.id or "", arguments.token_file, options)


def open_client(address: str, id_: str, token_file: str | None, options: ClientOptions) -> CommandClient:
    def wait(reason: str) -> None:
        printing.note(f"waiting for {client.address}: {reason} …")

    token = read_token(token_file)
    client = CommandClient(address, id_, token, replace(options, on_wait=wait), line_of_process())
    return client


def line_of_process() -> Line | None:
    """The line to the agent that started this process, if one did; Refusal when it is none."""
    try:
        return open_line(os.environ, printing.note)
    except LineError as error:
        raise Refusal(str(error)) from None


def read_token(file: str | None) -> str:
    try:
        return find_token(file=file)
    except OSError as error:
        raise Refusal(f"--token-file {told(error)}") from None
    except ValueError as error:
        raise Refusal(f"--token-file {error}") from None


def log_file(name: str | None) -> Path | None:
    """The path of a log; Refusal when its folder is missing."""
    path = Path(name) if name else None
    if path is not None and not path.parent.is_dir():
        raise Refusal(f"--log {path}: the folder {path.parent} does not exist")
    return path


def told(error: OSError) -> str:
    """Which file, and what about it; never a number."""
    reason = error.strerror or plain_reason(str(error))
    return f"{error.filename}: {reason}" if error.filename is not None else reason


async def settle(client: Client) -> None:
    """Wait for distant subscriptions to arrive, but not for ever: a broker on the way may be paused."""
    try:
        async with asyncio.timeout(SETTLE_TIMEOUT_S):
            await client.settle()
    except TimeoutError:
        printing.note(f"going on, though not every broker has answered within {SETTLE_TIMEOUT_S:g} s")


def run_async(main: Coroutine[Any, Any, int]) -> int:
    """Run a command to its end; SIGTERM ends it as asked for, an interrupt as interrupted."""
    return asyncio.run(_guarded(main))


async def _guarded(main: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main)
    ended_by: list[BaseException | None] = []  # None: SIGTERM; else what a handler of notifications raised

    def end(error: BaseException | None) -> None:
        if not ended_by:
            ended_by.append(error)
            task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end, None)
    loop.set_exception_handler(lambda _, about: end(about.get("exception") or RuntimeError(about["message"])))
    try:
        return await task
    except asyncio.CancelledError:
        if not ended_by:
            raise
        if ended_by[0] is not None:
            raise ended_by[0] from None
        return Exit.DONE
    except StoppedEarly as early:
        if early.of_agent and ended_by == [None]:  # an agent knows that it was not ready yet
            early.code = Exit.DONE
        raise
    except LanguageError as error:
        raise Refusal("\n".join(problem.pointing() for problem in error.problems)) from None
    except Unreachable as error:
        raise Refusal(str(error), Exit.UNREACHABLE) from None
    except ClientError as error:
        raise Refusal(str(error), Exit.FAILED) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refusal(told(error), Exit.FAILED) from None


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    found, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        parser.unknown(unknown[0])
    return found
