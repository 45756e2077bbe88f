"""Decides how a run that goes on is followed: what its logs grew by is fetched, cut into slices, and told of.

Nothing is written to the folder of what was collected: whoever ends the run collects there at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panda.analysis.family import interruptible
from panda.analysis.job import Job, Note
from panda.analysis.place import Place
from panda.analysis.slicing import LOG, Read, slice_log, slice_run, slices_of

if TYPE_CHECKING:
    from panda.deploy.crew import Crew
    from panda.deploy.session import AgentSession
    from panda.experiment.folder import RunFolder
    from panda.experiment.looking import Look

LOOK_EVERY_S = 2.0
END = ".end"  # a file in the stream's folder: no other slice will come


def follow(
    folder: RunFolder, crew: Crew, place: Place, log: Path, note: Note = lambda progress: None
) -> Generator[dict[str, Any]]:
    """The windows of the run as they close, until it is over and everything is read."""
    stream = (folder.path / "stream").absolute()
    stream.mkdir(exist_ok=True, mode=0o700)
    (stream / END).unlink(missing_ok=True)  # of somebody who followed before: there may be more by now
    words = ["follow", "--stream", str(stream), "--run", str(folder.path.absolute())]
    words += ["--checkpoint", str(stream / ".checkpoint")]
    with (
        interruptible(),
        Job(words, place, log, note) as job,
        _fed(folder, crew, stream, job.no_more) as feeder,
    ):
        yield from job.rows()
        feeder.raise_failure()


@contextmanager
def _fed(folder: RunFolder, crew: Crew, stream: Path, no_more: Callable[[], None]) -> Iterator[Feeder]:
    feeder = Feeder(folder, crew, stream, no_more)
    feeder.start()
    try:
        yield feeder
    finally:
        feeder.close()


class Feeder:
    """Fetches what a run logs and cuts it into slices, until the run is over; then says so."""

    def __init__(self, folder: RunFolder, crew: Crew, stream: Path, no_more: Callable[[], None]) -> None:
        self._folder = folder
        self._crew = crew
        self._stream = stream
        self._no_more = no_more
        self._leave = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._feed, name="follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._leave.set()
        self._thread.join()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _feed(self) -> None:
        from panda.experiment.looking import look

        try:
            found = look(self._folder, self._folder.read_plan(), self._crew)
            try:
                while not self._leave.is_set():
                    over = self._over(found)  # asked first: what is logged until then is fetched after
                    self._fetch(found)
                    if over:
                        slice_run(self._folder.path / "hosts", self._stream)  # hosts were cleaned meanwhile
                        (self._stream / END).touch()
                        break
                    self._leave.wait(LOOK_EVERY_S)
            finally:
                found.close()
                self._crew.close()
        except Exception as error:  # told by whoever reads the windows
            self._failure = error
        finally:
            self._no_more()

    def _over(self, found: Look) -> bool:
        view = found.view
        return not found.sessions or view.stopped or (view.ended and not view.living) or self._folder.over

    def _fetch(self, found: Look) -> None:
        """A host that does not answer any more is not asked again: it was cleaned, or is lost."""
        from panda.hosts.remote import HostError

        plan = self._folder.read_plan()  # lines may have been added
        for name, session in list(found.sessions.items()):
            try:
                for planned in plan.processes:
                    if planned.host == name:
                        read = _reader_of(session, f"processes/{planned.id}/{LOG}")
                        slice_log(read, slices_of(self._stream, name, planned.id))
            except HostError:
                found.sessions.pop(name).close()


def _reader_of(session: AgentSession, path: str) -> Read:
    """Reads a log where it is written; nothing while it is not there."""
    from broker_runtime.agent.protocol import READ_BYTES_MAX, RequestRefused
    from panda.deploy.collecting import read_piece

    def read(offset: int, length: int) -> bytes:
        found = b""
        try:
            while more := length - len(found):
                piece = read_piece(session, path, offset + len(found), min(more, READ_BYTES_MAX))
                if not piece:
                    break
                found += piece
        except RequestRefused:
            return b""
        return found

    return read
