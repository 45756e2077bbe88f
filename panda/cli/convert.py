"""`panda convert`: the same topology in the other form."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from panda.cli import printing
from panda.cli.exits import Exit
from panda.cli.ground import VariablesOption, read


class Form(StrEnum):
    TEXT = "text"
    YAML = "yaml"


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A topology, text or YAML.")],
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    variables: VariablesOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here instead of to stdout.")
    ] = None,
) -> None:
    """Write a topology as text or as YAML.

    A template is filled in, and comments are lost.

    Example: panda convert topo.txt --to yaml -o topo.yaml
    """
    from panda.topology.problems import TopologyRefused
    from panda.topology.writing import write_text, write_yaml

    try:
        topology = read(file, variables)
    except TopologyRefused as refused:
        for problem in refused.problems:
            printing.note(str(problem))
        raise typer.Exit(Exit.REFUSED) from None
    put(write_yaml(topology) if to is Form.YAML else write_text(topology), output)


def put(text: str, output: Path | None) -> None:
    """To a file or, without one, to stdout."""
    if output is None:
        printing.result({}, text.removesuffix("\n"))
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{output}: {error.strerror}", param_hint="-o") from None
