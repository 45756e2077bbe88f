"""A first notebook names what it is about as it is, and runs from top to bottom on real tables."""

from __future__ import annotations

import ast

import pandas as pd
import pytest

from panda_spark.notebook import cells, line_picture

STRANGE = "it's {a} \"strange\"\nlake \\ 'x'"


def code_of(lake: str, run: str = "") -> list[str]:
    return [cell["text"] for cell in cells(lake, run) if cell["kind"] == "code"]


@pytest.mark.parametrize("name", ["lake", STRANGE])
def test_names_stand_in_it_as_they_are_whatever_is_in_them(name: str) -> None:
    values = {}
    for code in code_of(name, name):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                values[ast.unparse(node.targets[0])] = node.value.value
    assert values == {"LAKE": name, "RUN": name}


def test_every_question_has_its_code() -> None:
    kinds = [cell["kind"] for cell in cells("lake")]
    assert kinds[:3] == ["markdown", "code", "code"]
    assert kinds[3:] == ["markdown", "code"] * ((len(kinds) - 3) // 2)


def test_a_picture_shows_its_lines_and_may_have_none() -> None:
    rows = pd.DataFrame({"at": [0.0, 1.0, 2.0], "p50": [1.0, None, 3.0], "p99": [2.0, 3.0, 4.0]})
    svg = line_picture(rows, x="at", ys=["p50", "p99"], title="ms")._repr_svg_()
    assert svg.startswith("<svg")
    assert "p50" in svg
    assert line_picture(rows[:0], x="at", ys=["p50"], title="ms").svg.startswith("<svg")
