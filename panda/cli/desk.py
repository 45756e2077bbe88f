"""Decides what the verbs of the analysis share: where tables are, where Spark works, what is seen of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from panda.cli import ground, printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from panda.analysis.place import Place
    from panda.analysis.protocol import Answer, Progress
    from panda.analysis.refusals import AnalysisFailed

LakeOption = Annotated[
    str, typer.Option(metavar="PATH", help="Where the tables are, any path of Hadoop's; RUNS/tables.")
]
MasterOption = Annotated[
    str, typer.Option(metavar="MASTER", help="A cluster: spark://HOST:PORT, yarn, k8s://URL, or local[N].")
]
RemoteOption = Annotated[
    str, typer.Option(metavar="sc://HOST:PORT", help="A Spark Connect server; a secret one by SPARK_REMOTE.")
]
ColdOption = Annotated[bool, typer.Option("--cold", help="Without the server of panda spark up.")]


@dataclass(frozen=True, slots=True)
class Desk:
    """Where tables and runs are, and where Spark works on them."""

    runs: Path
    lake: str
    place: Place
    log: Path
    quiet: bool

    def refuse_without_tables(self) -> None:
        from panda.analysis.place import refuse_without_tables

        refuse_without_tables(self.lake)

    def ask(self, word: str, words: Sequence[str]) -> Answer:
        from panda.analysis.job import run_job

        with Stages(self.place.stage, quiet=self.quiet) as stages:
            return run_job([word, "--lake", self.lake, *words], self.place, self.log, stages.note)


def desk_of(
    runs: Path, lake: str = "", master: str = "", remote: str = "", *, cold: bool = False, quiet: bool = False
) -> Desk:
    from panda.analysis.place import Wish, lake_path, log_beside, place_of

    place = place_of(Wish(master, remote, cold), ground.cache_folder())
    path = lake_path(lake or str(runs / "tables"))
    return Desk(runs, path, place, log_beside(path, runs), quiet)


@contextmanager
def failing() -> Iterator[None]:
    """Whatever an analysis can fail with becomes one message and an exit code."""
    from panda.analysis.refusals import AnalysisBroken, AnalysisFailed, AnalysisRefused

    try:
        with ground.failing():
            yield
    except AnalysisRefused as refused:
        printing.problem(str(refused))
        raise typer.Exit(Exit.REFUSED) from None
    except AnalysisFailed as failed:
        for line in failure_lines(failed):
            printing.note(line)
        raise typer.Exit(Exit.BUG if isinstance(failed, AnalysisBroken) else Exit.FAILED) from None


def failure_lines(failed: AnalysisFailed) -> list[str]:
    lines = [f"panda: {failed}", *(f"  | {line}" for line in failed.last)]
    if failed.log is not None:
        lines.append(f"all that Spark said is in {failed.log}")
    return lines


class Stages:
    """What the analysis is doing: a spinner with a bar at a terminal, a line for each stage elsewhere."""

    def __init__(self, stage: str, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._stage = stage
        self._bars: Bars | None = None

    def __enter__(self) -> Stages:
        if printing.at_terminal() and not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description:<28}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.add_task(self._stage, total=None)
            self._bars.start()
        elif not self._quiet:
            printing.note(f"  {self._stage}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def note(self, progress: Progress) -> None:
        if self._bars is not None:
            task = self._bars.task_ids[0]
            self._bars.update(
                task, description=progress.stage, completed=progress.done or 0, total=progress.of
            )
        elif not self._quiet and progress.stage != self._stage:
            printing.note(f"  {progress.stage}")
        self._stage = progress.stage


def table_text(head: Sequence[str], rows: Sequence[Sequence[object]], width_max: int = 0) -> str:
    """Columns side by side, numbers to the right; a cell is cut if there is a limit."""
    cells = [[cell_text(value, width_max) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    right = [
        any(isinstance(row[at], int | float) for row in rows)
        and all(isinstance(row[at], int | float | None) for row in rows)
        for at in range(len(head))
    ]

    def line(texts: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(texts, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([line(head), "  ".join("-" * width for width in widths), *map(line, cells)])


def cell_text(value: object, width_max: int = 0) -> str:
    from panda.analysis.protocol import printable

    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = printable(value if isinstance(value, str) else str(value)).replace("\n", " ")
    return f"{text[: width_max - 1]}…" if 0 < width_max < len(text) else text


def listed(value: Any) -> list[Any]:
    """What was answered, if it is a list; an answer is not trusted."""
    return value if isinstance(value, list) else []
