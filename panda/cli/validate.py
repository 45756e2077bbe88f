"""`panda validate`: all that is wrong with topologies, before anything is reached."""

from pathlib import Path
from typing import Annotated

import typer

from panda.cli import printing
from panda.cli.exits import Exit
from panda.cli.ground import VariablesOption, read_variables


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Topologies, text or YAML.")],
    variables: VariablesOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings for errors.")] = False,
    as_json: printing.JsonOption = False,
) -> None:
    """Check topologies and print all problems.

    Each with its line, its column and what would fix it.

    Example: panda validate topo.txt -D brokers=10
    """
    from panda.topology.model import counted
    from panda.topology.reading import open_topology

    given = read_variables(variables)
    refused = False
    for file in files:
        reading = open_topology(file, given)
        refused |= reading.refused or (strict and bool(reading.problems))
        summary = f"{file}: {reading.topology.summary() if reading.topology else 'not readable'}"
        errors, warnings = len(reading.errors), len(reading.warnings)
        counts = f" ({counted(errors, 'error')}, {counted(warnings, 'warning')})" if reading.problems else ""
        data = {
            "path": str(file),
            "valid": not reading.refused,
            "errors": errors,
            "warnings": warnings,
            "problems": [problem.as_data() for problem in reading.problems],
        }
        if reading.topology is not None:
            data |= {
                "name": reading.topology.name,
                "brokers": len(reading.topology.brokers),
                "clients": len(reading.topology.clients),
                "hosts": list(reading.topology.hosts),
                "links": len(reading.topology.links),
                "steps": len(reading.topology.steps),
                "end_s": reading.topology.end_s,
            }
        text = "\n".join([*map(str, reading.problems), summary + counts])
        printing.result(data, text, as_json=as_json)
    if refused:
        raise typer.Exit(Exit.REFUSED)
