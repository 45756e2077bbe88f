"""`panda notebook`: a notebook with everything loaded, to go on from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from panda.cli import desk, ground, printing


def notebook(
    wanted: ground.RunArgument = "",
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")] = Path("panda.ipynb"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    lake: desk.LakeOption = "",
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Write a notebook to begin with.

    It opens Spark and all tables, asks a few things of the run, and draws one. Jupyter is not part of panda:
    pip install notebook. It finds the tables where they are now.

    Example: panda notebook --out latency.ipynb
    """
    from panda.analysis.notebook import notebook_of, write_notebook
    from panda.analysis.refusals import AnalysisRefused

    with desk.failing():
        if out.exists() and not force:
            raise AnalysisRefused(f"{out} is there already", "say another --out FILE, or --force")
        if not out.parent.is_dir():
            raise AnalysisRefused(f"there is no folder {out.parent}", "make it first")
        run = ground.find_run(runs, wanted).id
        at = desk.desk_of(runs, lake, cold=True, quiet=True)
        at.refuse_without_tables()
        made = notebook_of(at.ask("notebook", ["--run", run]).data.get("cells"))
        write_notebook(out, made)
    data = {"run": run, "notebook": str(out), "cells": len(made["cells"])}
    printing.result(data, f"{out} is about {run}: jupyter notebook {out}", as_json=as_json)
