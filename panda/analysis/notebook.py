"""Decides how cells become a notebook file; what the cells say is the analysis' matter."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from panda.analysis.refusals import AnalysisFailed


def notebook_of(cells: object) -> dict[str, Any]:
    """In Jupyter's format 4.5, from cells `{"kind": "markdown" or "code", "text": …}`."""
    if not isinstance(cells, Sequence) or not cells:
        raise AnalysisFailed("the analysis gave no cells for a notebook")
    return {
        "cells": [_cell(number, cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": platform.python_version()},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(number: int, cell: object) -> dict[str, Any]:
    if not isinstance(cell, Mapping) or cell.get("kind") not in ("markdown", "code"):
        raise AnalysisFailed(f"cell {number} of the notebook is neither markdown nor code")
    kind, text = cell["kind"], str(cell.get("text", ""))
    made = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return made if kind == "markdown" else {**made, "execution_count": None, "outputs": []}


def write_notebook(path: Path, notebook: Mapping[str, Any]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
