"""`client`: the interactive console, at a terminal or from a pipe."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from broker_runtime.client import Change, Client, ClientOptions, connect
from broker_runtime.commands import printing, stdin
from broker_runtime.commands.arguments import Parser, add_connection, client_of, parse, run_async
from broker_runtime.commands.console import WORDS, Console
from broker_runtime.commands.exits import Exit

EXAMPLE = """python -m broker_runtime client -b 127.0.0.1:10000 -i S0
> s [class,eq,'STOCK'],[price,>,10]
> help"""
HISTORY = Path("~/.panda_history")
HISTORY_LENGTH_MAX = 1000
PROMPT = "> "


def run(arguments: Sequence[str]) -> int:
    parser = Parser(
        "client", "Advertise, subscribe and publish by hand; notifications show as they come.", EXAMPLE
    )
    add_connection(parser)
    return run_async(_converse(parse(parser, arguments)))


async def _converse(arguments: argparse.Namespace) -> int:
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not arguments.json
    screen = Screen(arguments.json, terminal)
    console: Console | None = None

    def changed(change: Change) -> None:
        if console is not None:
            console.changed(change)

    first = client_of(arguments, ClientOptions(on_change=changed))

    def reopen(address: str) -> Client:
        opened = connect(address, first.id, token_file=arguments.token_file, options=first.options)

        def changed(change: Change) -> None:
            if console is not None and console.client is opened:
                console.changed(change)

        opened.options = replace(first.options, on_change=changed, on_wait=None)
        return opened

    async with first:
        console = Console(first, reopen, screen.show)
        first.ready()
        screen.show({"connected": first.broker, "id": first.id}, f"{first.id} connected to {first.broker}")
        try:
            with _terminal_kept(terminal):
                async for line in _lines(screen):
                    if not await console.execute(line):
                        break
        finally:
            await console.client.close()
    return Exit.FAILED if console.failures and not terminal else Exit.DONE


class Screen:
    """Shows results; at a terminal, above the line that is being typed."""

    def __init__(self, as_json: bool, terminal: bool) -> None:
        self.terminal = terminal
        self.typing = False
        self._as_json = as_json

    def show(self, data: Mapping[str, object], text: str) -> None:
        if not (self.terminal and self.typing):
            printing.result(data, text, as_json=self._as_json)
            return
        sys.stdout.write(f"\r\x1b[K{text}\n{PROMPT}{_typed()}")
        sys.stdout.flush()


async def _lines(screen: Screen) -> AsyncIterator[str]:
    """Lines as they are typed, or come from a pipe."""
    if not screen.terminal:
        async for line in stdin.lines():
            yield line.decode(errors="backslashreplace").rstrip("\n")
        return
    screen.typing = True
    async for text in stdin.read_by(lambda: input(PROMPT)):
        screen.typing = False
        yield text
        screen.typing = True


def _typed() -> str:
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()


@contextlib.contextmanager
def _terminal_kept(terminal: bool) -> Iterator[None]:
    """History and completion while we are there, and the terminal as it was when we leave."""
    if not terminal:
        yield
        return
    import termios

    attributes = termios.tcgetattr(sys.stdin)
    try:
        with _history():
            yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, attributes)


@contextlib.contextmanager
def _history() -> Iterator[None]:
    try:
        import readline
    except ImportError:
        yield
        return
    names = sorted({name for word in WORDS for name in word.names} | {"quit"})

    def complete(text: str, state: int) -> str | None:
        found = [f"{name} " for name in names if name.startswith(text)]
        return found[state] if state < len(found) and not readline.get_begidx() else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    file = HISTORY.expanduser()
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LENGTH_MAX)
        with contextlib.suppress(OSError):
            readline.write_history_file(file)
