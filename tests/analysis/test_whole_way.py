"""From a topology to a report with nothing left out: real brokers, real Spark, every verb on the tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment.panda import CHECKOUT

TIMEOUT_S = 600.0
PANDA = [sys.executable, "-c", "from panda.cli.main import main; main()"]


class Here:
    """`panda` in a folder of its own, with a Spark server of its own, so that one start serves every verb."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}

    def __call__(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        done = subprocess.run(
            [*PANDA, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    here = Here(tmp_path)
    here("spark", "up", "--memory", "1g", "--json")
    yield here
    here("spark", "down", "--json")


def test_a_topology_becomes_a_report_and_tables_that_can_be_asked(here: Here) -> None:
    done = here("run", str(CHECKOUT / "topologies" / "stock-quotes.txt"), "--local", "--json")
    [analysed] = done["analysis"]["runs"]
    run, summary = analysed["run"], analysed["summary"]
    assert run == done["run"]
    assert (summary["published"], summary["expected"], summary["lost"]) == (60, 60, 0)
    assert summary["delivered"] + summary["late"] == 60
    assert (summary["faults"], summary["quarantined"], summary["missing"]) == (1, 0, 0)
    page = Path(analysed["report"]).read_text("utf-8")
    assert analysed["sentence"].split(":")[0] in page
    assert list((Path(analysed["report"]).parent / "figures").glob("*.png"))

    again = here("analyze", "--json")
    assert [each["new"] for each in again["runs"]] == [False]
    assert again["files_read"] == 0

    asked = here("query", "--json", "SELECT fault, a, b, round(until_s - from_s, 1) FROM faults")
    assert asked["rows"] == [["cut", "Bob", "Carol", 1.0]]
    assert here("analyze", "--json", "--expect", "published>60", code=1)["unmet"]

    copy = f"{run}-again"
    shutil.copytree(here.folder / "runs" / run, here.folder / "runs" / copy)
    compared = here("compare", run, copy, "--json", "--threshold", "lost:0")
    assert compared["crossed"] == []
    assert {row["difference"] for row in compared["metrics"] if row["metric"] == "published"} == {0.0}
