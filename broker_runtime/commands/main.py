"""Decides which word starts what, and turns whatever escapes a command into an exit code and one message."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NoReturn

from broker_runtime.commands import printing
from broker_runtime.commands.exits import Exit, Refusal
from broker_runtime.dialect.options import nearest

WORDS: Final = {
    "broker": "run a broker",
    "client": "an interactive console at a broker",
    "publish": "publish messages, from the command line or from stdin",
    "subscribe": "subscribe and print notifications",
    "sqpublisher": "publish stock quotes, as in the papers",
    "sqsubscriber": "subscribe to stock quotes, as in the papers",
    "workload": "generate publications or subscriptions by distribution and rate",
    "monitor": "show what brokers tell of themselves",
    "control": "pause, resume, shut down, ask or feed a broker",
    "trace": "publish and show the way the publication takes",
    "version": "print the version",
}

HELP: Final = (
    "usage: python -m broker_runtime WORD [option …]\n\n"
    + "\n".join(f"  {word:<14}{what}" for word, what in WORDS.items())
    + "\n\nWORD --help says more, with an example."
)


def main(arguments: Sequence[str]) -> int:
    printing.prepare()
    word = arguments[0] if arguments else ""
    if word in ("-h", "--help", "help"):
        return _ended("help", _help)
    if word not in WORDS:
        said = f"unknown word {word!r}{nearest(word, WORDS)}" if word else "a word is missing"
        printing.note(f"{said}\n\n{HELP}")
        return Exit.REFUSED
    return run_command(word, arguments[1:])


def run_command(word: str, arguments: Sequence[str]) -> int:
    """Run one word in this process; every way it can end is an exit code."""

    signal.signal(signal.SIGTERM, _leave)  # until the command has a loop that takes it

    def act() -> int:
        run: Callable[[Sequence[str]], int] = import_module(f"broker_runtime.commands.{word}").run
        return run(arguments)

    return _ended(word, act)


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(Exit.DONE)


def _help() -> int:
    printing.result({}, HELP)
    return Exit.DONE


def _ended(word: str, act: Callable[[], int]) -> int:
    try:
        return act()
    except Refusal as refusal:
        lines = str(refusal).splitlines()
        printing.note("\n".join(line if line.startswith(" ") else f"{word}: {line}" for line in lines))
        return refusal.code
    except SystemExit as asked:  # argparse, after --help; SIGTERM, before anything is open
        return asked.code if isinstance(asked.code, int) else Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone
        return Exit.FAILED
    except Exception as error:
        if os.environ.get("PANDA_DEBUG") == "1":
            import traceback

            printing.note(traceback.format_exc().rstrip())
        printing.note(f"{word}: internal error: {type(error).__name__}: {error} (please report)")
        return Exit.BUG
