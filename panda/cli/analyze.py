"""`panda analyze`: what a run did, from its logs to a sentence, tables and a report."""

from __future__ import annotations

import contextlib
import json
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli import desk, ground, printing
from panda.cli.desk import Desk, listed
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from panda.analysis.expectations import Expectation
    from panda.experiment.folder import RunFolder

RunsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[RUN]…", help="Ids, parts of them, or folders; the newest.")
]
LateOption = Annotated[float, typer.Option(metavar="S", min=0, help="A delivery that takes longer is late.")]
SettleOption = Annotated[
    float,
    typer.Option(metavar="S", min=0, help="So near to a subscription's beginning or end, either is right."),
]
ExpectOption = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC<N", help="Exit 1 unless: lost=0, 'latency_p99_s<0.5'. Columns of summary."),
]


def analyze(
    wanted: RunsArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Every run there is.")] = False,
    late: LateOption = 1.0,
    settle: SettleOption = 1.0,
    expect: ExpectOption = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="While the run goes on: figures every moment, the rest at its end."),
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Tables and the sentence alone.")] = False,
    forget: Annotated[
        str, typer.Option(metavar="RUN", help="Remove this run's tables instead; its folder stays.")
    ] = "",
    lake: desk.LakeOption = "",
    master: desk.MasterOption = "",
    remote: desk.RemoteOption = "",
    cold: desk.ColdOption = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Say what happened in a run.

    Reads its logs, makes tables of them, and writes a report. Only what is new is read.

    A run in which something was lost is a successful analysis, exit code 0: to make it a failure, say what
    you expect with --expect.

    Example: panda analyze --expect lost=0 --expect 'latency_p99_s<0.5'
    """
    from panda.analysis.expectations import expectation_of

    if not (isfinite(late) and isfinite(settle)):
        raise typer.BadParameter("--late and --settle are numbers of seconds")
    with desk.failing():
        expected = [expectation_of(text) for text in expect or ()]
        if forget:
            _forget(desk.desk_of(runs, lake, master, remote, cold=cold, quiet=as_json), forget, as_json)
            return
        folders = _folders(runs, wanted or [], everything)
        if follow and len(folders) > 1:
            raise typer.BadParameter("one run can be followed at a time", param_hint="--follow")
        at = desk.desk_of(runs, lake, master, remote, cold=cold, quiet=as_json)
        if follow:
            from panda.cli.following import show

            # Following keeps a Spark of its own: a server lends none for streams.
            own = desk.desk_of(runs, lake, cold=True, quiet=as_json)
            show(own, folders[0], as_json=as_json)
        answer = analysis_of(at, folders, late_s=late, settle_s=settle, report=not no_report)
        failed = _judge(answer, expected)
        answer["unmet"] = failed
    printing.result(answer, "\n".join(lines_of(answer)), as_json=as_json)
    for text in failed:
        printing.problem(text)
    if failed:
        raise typer.Exit(Exit.FAILED)


def analysis_of(
    at: Desk, folders: list[RunFolder], *, late_s: float = 1.0, settle_s: float = 1.0, report: bool = True
) -> dict[str, Any]:
    words = ["--late", f"{late_s:g}", "--settle", f"{settle_s:g}", *(["--report"] if report else [])]
    answer = at.ask("analyze", [*words, *(str(folder.path.absolute()) for folder in folders)]).data
    keep_answer(folders, answer)
    return answer


def keep_answer(folders: list[RunFolder], answer: dict[str, Any]) -> None:
    """In the folder of each run, for whoever lists them; one that cannot be written to does without."""
    told = {str(run.get("run")): run for run in listed(answer.get("runs"))}
    for folder in folders:
        if folder.id in told:
            with contextlib.suppress(OSError):
                folder.write_text("analysis.json", json.dumps(told[folder.id], indent=1) + "\n")


def lines_of(answer: dict[str, Any]) -> list[str]:
    """For each run its sentence, the verdict, and where the report is."""
    from panda.analysis.expectations import verdict_of
    from panda.analysis.protocol import printable

    lines = []
    for run in listed(answer.get("runs")):
        lines.append(printable(f"{run.get('run')}: {run.get('sentence')}"))
        lines.append(f"  verdict: {printable(verdict_of(run.get('summary') or {}))}")
        if run.get("report"):
            lines.append(f"  report: {_near(printable(str(run['report'])))}")
    if answer.get("quarantined"):
        count = printing.counted(answer["quarantined"], "line")
        lines.append(f"{count} could not be read: they are in the table quarantine")
    return lines


def _near(path: str) -> str:
    """As one would type it here."""
    from pathlib import Path

    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _folders(runs: Path, wanted: list[str], everything: bool) -> list[RunFolder]:
    from panda.analysis.naming import runs_of
    from panda.experiment.folder import RunFolder, RunRefused

    if everything and wanted:
        raise typer.BadParameter("--all and a run: choose one")
    if not everything:
        named = {folder.path: folder for name in wanted for folder in runs_of(runs, name)}
        return list(named.values()) or [RunFolder.find(runs)]
    found = RunFolder.all(runs)
    if not found:
        raise RunRefused(f"there are no runs in {runs}/: start one with panda run, or say --runs FOLDER")
    return found


def _judge(answer: dict[str, Any], expected: list[Expectation]) -> list[str]:
    return [
        f"{run.get('run')}: {said}"
        for run in listed(answer.get("runs"))
        for each in expected
        if (said := each.judge(run.get("summary") or {}))
    ]


def _forget(at: Desk, wanted: str, as_json: bool) -> None:
    from panda.experiment.folder import RunFolder, RunRefused

    try:
        run = RunFolder.find(at.runs, wanted).id
    except RunRefused:
        run = wanted  # its folder may be gone: the tables know it by its whole id
    at.refuse_without_tables()
    answer = at.ask("forget", [run]).data
    printing.result(answer, f"the tables hold nothing of {run} any more", as_json=as_json)
