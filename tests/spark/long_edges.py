"""Runs that went wrong, or never began, are analysed like any other: an answer, a report, no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panda_spark.__main__ import MARK
from tests.spark.generator import Options, generate
from tests.spark.tabled import Said, said

HOSTILE = "<script>alert('x')</script> \"'`;--\\ \u202e\U0001f600 ../../etc {{7*7}} %s ${x} NaN"
SMALL = {"hosts": 2, "brokers": 2, "publishers": 1, "subscribers": 1, "publications": 15}


def edited(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    lines = [edit(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines if each is not None), "utf-8")


def gate_never_met(folder: Path) -> None:
    edited(folder / "journal.jsonl", lambda entry: None if entry["kind"] == "go" else entry)
    for log in folder.glob("hosts/*/processes/*/log.jsonl"):
        log.unlink()
    for journal in folder.glob("hosts/*/journal.jsonl"):
        journal.unlink()
    (folder / "clocks.jsonl").unlink()


def nothing_but_a_plan(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "plan.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def a_plan_of_nonsense(folder: Path) -> None:
    nothing_but_a_plan(folder)
    (folder / "plan.json").write_text('["no", "plan"]')


def hostile_names(folder: Path) -> None:
    """In every text that a program may have chosen, and in none that says where a file is."""

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        said = {
            name: HOSTILE for name in ("run", "proc", "client", "peer", "broker", "class") if name in line
        }
        if "id" in line:
            said["id"] = f"{HOSTILE}:{line['id']}"
        return {**line, **said}

    for log in folder.glob("hosts/*/processes/*/log.jsonl"):
        edited(log, edit)
    plan = json.loads((folder / "plan.json").read_text())
    for process in plan["processes"]:
        process["speaks"] = HOSTILE
    plan["name"] = HOSTILE
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "versions.json").write_text(json.dumps({"panda": HOSTILE, "python": HOSTILE}))
    (folder / "lines.txt").write_text(HOSTILE)


def mad_numbers(folder: Path) -> None:
    edited(folder / "clocks.jsonl", lambda entry: {**entry, "offset_s": entry["offset_s"] * 1e300})
    for log in folder.glob("hosts/*/processes/*/log.jsonl"):
        edited(log, lambda line: {**line, **{name: 1e300 for name in ("time", "latency_s") if name in line}})


RUNS: dict[str, tuple[dict[str, Any], Callable[[Path], None] | None]] = {
    "no clients": ({"publishers": 0, "subscribers": 0, "publications": 0}, None),
    "no faults": ({}, None),
    "a host is missing": ({"missing_hosts": 1, "cuts": 1}, None),
    "of two versions": ({"bad_lines": ("unknown version",) * 3}, None),
    "gate never met": ({}, gate_never_met),
    "only a plan": ({}, nothing_but_a_plan),
    "a plan of nonsense": ({}, a_plan_of_nonsense),
    "hostile names": ({}, hostile_names),
    "mad numbers": ({}, mad_numbers),
}


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Said, dict[str, Path]]:
    """All of these runs at once: none may spoil the others."""
    folder = tmp_path_factory.mktemp("edges")
    found = {}
    for seed, (name, (changes, spoil)) in enumerate(RUNS.items()):
        truth = generate(Options(seed=seed, **{**SMALL, **changes}), folder / "runs")
        found[name] = Path(truth.folder)
        if spoil is not None:
            spoil(found[name])
    answer = said("analyze", "--report", "--lake", str(folder / "tables"), *map(str, found.values()))
    return answer, found


Analysed = tuple[Said, dict[str, Path]]


def answer_of(analysed: Analysed, name: str) -> dict[str, Any]:
    (found,) = (each for each in analysed[0].answer["runs"] if each["run"] == analysed[1][name].name)
    return dict(found)


def test_the_analysis_is_done_and_tells_its_steps(analysed: Analysed) -> None:
    answer, folders = analysed
    assert answer.code == 0, answer.noise
    assert "Traceback" not in answer.noise
    assert [each["run"] for each in answer.answer["runs"]] == [each.name for each in folders.values()]
    assert answer.answer["quarantined"] == 3
    stages = [
        json.loads(line.removeprefix(MARK))["stage"]
        for line in answer.noise.splitlines()
        if line.startswith(MARK)
    ]
    assert stages[0] == "starting Spark"
    assert "writing the report" in stages


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_a_sentence_a_summary_and_a_report(analysed: Analysed, name: str) -> None:
    found = answer_of(analysed, name)
    assert found["new"]
    assert found["sentence"].endswith(".")
    page = Path(found["report"])
    assert page == analysed[1][name] / "report" / "report.html"
    assert "</html>" in page.read_text("utf-8")


def test_the_figures_of_strange_runs_are_as_they_are(analysed: Analysed) -> None:
    summaries = {name: answer_of(analysed, name)["summary"] for name in RUNS}
    assert summaries["no clients"]["published"] == 0
    assert summaries["no faults"]["published"] == SMALL["publications"]
    assert summaries["no faults"]["lost"] == summaries["no faults"]["faults"] == 0
    assert summaries["a host is missing"]["missing"] > 0
    assert summaries["of two versions"]["quarantined"] == 3
    assert summaries["of two versions"]["published"] == SMALL["publications"]
    for name in ("gate never met", "only a plan"):
        assert (summaries[name]["published"], summaries[name]["expected"]) == (0, 0)


def test_hostile_names_are_text_in_the_report(analysed: Analysed) -> None:
    page = Path(answer_of(analysed, "hostile names")["report"]).read_text("utf-8")
    assert "<script>alert(" not in page
    assert "alert(" in page
