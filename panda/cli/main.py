"""The process edge of `panda`: wires the verbs and turns whatever escapes them into an exit code.

A verb is a function in a module of its own. Its signature is all that `panda --help` needs, so the module
imports nothing heavy; the function's body imports the rooms it drives.
"""

import errno
import os
import sys
from typing import Annotated, NoReturn

import typer

from panda.cli import printing, spark
from panda.cli.analyze import analyze
from panda.cli.compare import compare
from panda.cli.console import console
from panda.cli.convert import convert
from panda.cli.deploy import attach, deploy, run
from panda.cli.doctor import doctor
from panda.cli.exits import Exit
from panda.cli.generate import generate
from panda.cli.logs import logs
from panda.cli.notebook import notebook
from panda.cli.plan import plan
from panda.cli.prepare import prepare, unprepare
from panda.cli.query import query
from panda.cli.shell import shell
from panda.cli.status import ls, status
from panda.cli.step import step
from panda.cli.stop import clean, collect, stop
from panda.cli.trust import trust
from panda.cli.upload import upload
from panda.cli.validate import validate
from panda.cli.version import version

_WRITE_ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF)

app = typer.Typer(
    help="Describe, deploy and measure distributed publish/subscribe experiments.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from broker_runtime import VERSION

        printing.result({"panda": VERSION}, f"panda {VERSION}")
        raise typer.Exit(Exit.DONE)


@app.callback()
def _panda(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_TOPOLOGIES = (validate, plan, generate, convert)
_HOSTS = (doctor, trust, prepare, unprepare, upload)
_EXPERIMENTS = (deploy, run, attach, status, console, ls, logs, step, stop, collect, clean, shell)
_ANALYSIS = (analyze, compare, query, notebook)
for _verb in (*_TOPOLOGIES, *_HOSTS, *_EXPERIMENTS, *_ANALYSIS, version):
    app.command()(_verb)
app.add_typer(spark.app, name="spark")


def main() -> NoReturn:
    printing.prepare()
    sys.exit(run_verb(sys.argv[1:]))


def run_verb(arguments: list[str]) -> int:
    """Run one verb in this process; every way it can end is an exit code."""
    try:
        app(arguments, prog_name="panda")
    except SystemExit as asked:
        return asked.code if isinstance(asked.code, int) else Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except printing.CannotWrite as error:
        printing.problem(f"cannot write: {error}")
        return Exit.FAILED
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _WRITE_ERRORS:
            printing.problem(f"cannot write: {error.strerror}")  # a help page, which typer prints
            return Exit.FAILED
        if os.environ.get("PANDA_DEBUG") == "1":
            import traceback

            printing.note(traceback.format_exc().rstrip())
        printing.problem(f"internal error: {type(error).__name__}: {error} (please report)")
        return Exit.BUG
    return Exit.DONE
