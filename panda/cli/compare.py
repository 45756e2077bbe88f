"""`panda compare`: whether two groups of runs differ, by how much, and whether chance explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli import desk, ground, printing
from panda.cli.desk import listed
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

_GROUP = "Runs that are repetitions of one another: an id or a part of it, ids with commas, or a pattern."
ThresholdOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC:CHANGE", help="Exit 1 when B is worse than A by more: 'latency_p99_s:+10%', lost:0."
    ),
]


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=_GROUP)],
    b: Annotated[str, typer.Argument(metavar="B", help="As A.")],
    threshold: ThresholdOption = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Also write the comparison there, as a report.")
    ] = "",
    lake: desk.LakeOption = "",
    master: desk.MasterOption = "",
    remote: desk.RemoteOption = "",
    cold: desk.ColdOption = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Compare runs, or groups of repetitions.

    Runs that have no tables yet are analysed first. Patterns are over ids, and want quotes.

    Example: panda compare '*-slow*' '*-fast*' --threshold 'latency_p99_s:+10%'
    """
    from panda.analysis.expectations import check_threshold

    with desk.failing():
        limits = [part for text in threshold or () for part in ("--threshold", check_threshold(text))]
        group_a, folders_a = _group(runs, a, lake)
        group_b, folders_b = _group(runs, b, lake)
        at = desk.desk_of(runs, lake, master, remote, cold=cold, quiet=as_json)
        words = ["--a", *group_a, "--b", *group_b, *limits]
        folders = list(dict.fromkeys(folders_a + folders_b))
        words += ["--folders", *folders] if folders else []
        words += ["--out", _out(out)] if out else []
        answer = at.ask("compare", words)
    printing.result(answer.data, "\n".join(lines_of(answer.data)), as_json=as_json)
    if not answer.met:
        crossed = ", ".join(map(str, listed(answer.data.get("crossed"))))
        printing.problem(f"crossed: {crossed}")
        raise typer.Exit(Exit.FAILED)


def _group(runs: Path, wanted: str, lake: str) -> tuple[list[str], list[str]]:
    """Ids, and folders. The tables of a lake that was named may hold runs whose folders are not here."""
    from panda.analysis.naming import runs_of
    from panda.experiment.folder import RunRefused

    try:
        folders = runs_of(runs, wanted)
    except RunRefused:
        if not lake or any(letter in wanted for letter in "*?["):
            raise
        return [name.strip() for name in wanted.split(",")], []
    return [folder.id for folder in folders], [str(folder.path.absolute()) for folder in folders]


def _out(folder: str) -> str:
    from pathlib import Path

    return str(Path(folder).absolute())


def lines_of(data: dict[str, Any]) -> list[str]:
    from panda.analysis.protocol import printable

    head = ("metric", "A", "B", "difference", "")
    rows = [
        (
            row.get("metric"),
            _estimate(row, "a"),
            _estimate(row, "b"),
            _difference(row),
            "significant" if row.get("significant") else "",
        )
        for row in listed(data.get("metrics"))
    ]
    lines = [desk.table_text(head, rows)] if rows else []
    lines += [f"note: {note}" for note in listed(data.get("notes"))]
    lines.append(str(data.get("sentence") or ""))
    if data.get("report"):
        lines.append(f"report: {data['report']}")
    return [printable(line) for line in lines]


def _estimate(row: dict[str, Any], group: str) -> str:
    """The mean, with its interval if there is one."""
    mean, low, high = (row.get(f"{group}_{name}") for name in ("mean", "low", "high"))
    if not isinstance(mean, int | float):
        return "unknown"
    if isinstance(low, int | float) and isinstance(high, int | float):
        return f"{mean:.4g} [{low:.4g}, {high:.4g}]"
    return f"{mean:.4g}"


def _difference(row: dict[str, Any]) -> str:
    change, share = row.get("difference"), row.get("difference_share")
    if not isinstance(change, int | float):
        return "unknown"
    return f"{change:+.4g} ({100 * share:+.1f} %)" if isinstance(share, int | float) else f"{change:+.4g}"
