"""Decides how an analysis is asked for from here: as `panda analyze` and `compare` do it. Blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from panda.experiment.folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from panda.analysis.protocol import Progress

Note = Callable[[str, float | None], None]  # what is being done, and how much of it is done


def analyse(folder: RunFolder, note: Note) -> dict[str, Any]:
    """What the analysis says of the run; kept in its folder too."""
    from panda.analysis.job import run_job
    from panda.cli import desk
    from panda.cli.analyze import keep_answer

    at = desk.desk_of(folder.path.parent, quiet=True)
    note(at.place.stage, None)
    words = ["analyze", "--lake", at.lake, "--report", str(folder.path.absolute())]
    answer = run_job(words, at.place, at.log, _told(note)).data
    keep_answer([folder], answer)
    told = [run for run in desk.listed(answer.get("runs")) if run.get("run") == folder.id]
    return told[0] if told else {}


def compare(runs: Path, a: str, b: str, note: Note) -> str:
    """A table of every metric, and a sentence."""
    from panda.analysis.job import run_job
    from panda.cli import desk
    from panda.cli.compare import lines_of

    at = desk.desk_of(runs, quiet=True)
    note(at.place.stage, None)
    folders = [str((runs / each).absolute()) for each in (a, b)]
    words = ["compare", "--lake", at.lake, "--a", a, "--b", b, "--folders", *folders]
    return "\n".join(lines_of(run_job(words, at.place, at.log, _told(note)).data))


def _told(note: Note) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        share = progress.done / progress.of if progress.done is not None and progress.of else None
        note(progress.stage, share)

    return tell
