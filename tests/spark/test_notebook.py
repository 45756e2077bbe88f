"""A first notebook names what it is about as it is, and runs from top to bottom on real tables."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from panda_spark.notebook import line_picture, notebook
from tests.spark.generator import Options, generate

STRANGE = "/it's {a} \"strange\"\nlake \\ 'x'"

# As Jupyter does: cell by cell, and the value of a last expression is shown.
PROGRAM = """
import ast, json, sys
from panda_spark.lake import Lake
from panda_spark.pipeline import Options, analyze
from panda_spark.session import Place, open_session

lake, folder = sys.argv[1:]
spark = open_session(Place(master="local[2]"))
analyze(spark, Lake(spark, lake), [folder], Options(), lambda stage, done, of: None)
names, shown = {}, []
for code in json.load(sys.stdin):
    *first, last = ast.parse(code).body
    ends_in_value = isinstance(last, ast.Expr)
    exec(compile(ast.Module(first if ends_in_value else [*first, last], []), "cell", "exec"), names)
    if ends_in_value:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        shown.append(value.svg[:4] if hasattr(value, "svg") else list(value.columns) if len(value) else [])
print(json.dumps(shown))
"""


def code_of(lake: str, run: str = "") -> list[str]:
    return [cell["text"] for cell in notebook(lake, run)["cells"] if cell["kind"] == "code"]


@pytest.mark.parametrize("name", ["/lake", "hdfs://host/lake", STRANGE])
def test_names_stand_in_it_as_they_are_whatever_is_in_them(name: str) -> None:
    values = {}
    for code in code_of(name, name):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                values[ast.unparse(node.targets[0])] = node.value.value
    assert values == {"LAKE": name, "RUN": name}


def test_every_question_has_its_code() -> None:
    kinds = [cell["kind"] for cell in notebook("lake")["cells"]]
    assert kinds[:3] == ["markdown", "code", "code"]
    assert kinds[3:] == ["markdown", "code"] * ((len(kinds) - 3) // 2)


def test_every_cell_runs_from_top_to_bottom_and_shows_something(tmp_path: Path) -> None:
    truth = generate(Options(seed=3, cuts=1, losses=3), tmp_path / "runs")
    lake = str(tmp_path / "lake")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, lake, truth.folder],
        input=json.dumps(code_of(lake)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown.count("<svg") == 2
    assert "verdict" in shown[1]
    assert all(shown)


def test_a_picture_shows_its_lines_and_may_have_none() -> None:
    rows = pd.DataFrame({"at": [0.0, 1.0, 2.0], "p50": [1.0, None, 3.0], "p99": [2.0, 3.0, 4.0]})
    svg = line_picture(rows, x="at", ys=["p50", "p99"], title="ms")._repr_svg_()
    assert svg.startswith("<svg")
    assert "p50" in svg
    assert line_picture(rows[:0], x="at", ys=["p50"], title="ms").svg.startswith("<svg")
