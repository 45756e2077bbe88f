"""The first lines of `panda`: an interrupt while the rest is being loaded ends it without a word."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from panda.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
