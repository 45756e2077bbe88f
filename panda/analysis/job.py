"""Decides how one piece of analysis runs: a process of its own, listened to, ended with all it started."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from panda.analysis.family import end_family, interruptible
from panda.analysis.place import Place
from panda.analysis.protocol import BUG, Answer, Progress, answer_of, printable, progress_of, row_of
from panda.analysis.refusals import AnalysisBroken, AnalysisFailed, AnalysisRefused
from panda.prepare.offspring import identity_of

LINE_BYTES_MAX = 1 << 16
ANSWER_BYTES_MAX = 256 << 20
LOG_BYTES_MAX = 16 << 20  # when it is found larger, it is begun anew
LAST_LINES = 12

Note = Callable[[Progress], None]  # called from a thread of the job


def run_job(words: Sequence[str], place: Place, log: Path, note: Note = lambda progress: None) -> Answer:
    """What `python -m panda_spark` answers to these words."""
    with interruptible(), Job(words, place, log, note) as job:
        return job.answer()


class Job:
    """A running `python -m panda_spark`. Leaving it ends it, and whatever it started."""

    def __init__(
        self, words: Sequence[str], place: Place, log: Path, note: Note = lambda progress: None
    ) -> None:
        self._note = note
        self._log = log
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._kept = _open_log(log)
        word, *rest = words
        self._popen = subprocess.Popen(
            # -P: a file of the user's folder must not stand in for a module.
            [sys.executable, "-P", "-m", "panda_spark", word, *place.arguments, *rest],
            env=dict(place.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._identity = identity_of(self._popen.pid)
        assert self._popen.stderr is not None
        self._listening = threading.Thread(target=self._listen, args=(self._popen.stderr,), daemon=True)
        self._listening.start()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        # Not reaped before: as long as it is not, its number and its session are its own.
        try:
            if self._identity is not None and self._popen.returncode is None:
                end_family(self._identity)
        finally:
            self._popen.wait()
            self._listening.join()
            self._kept.close()
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
                assert pipe is not None
                pipe.close()

    def answer(self) -> Answer:
        """Wait for its end; AnalysisRefused and AnalysisFailed say why there is no answer."""
        assert self._popen.stdout is not None
        self.no_more()
        out = self._popen.stdout.read(ANSWER_BYTES_MAX + 1)
        if len(out) > ANSWER_BYTES_MAX:
            raise AnalysisFailed(f"it answered more than {ANSWER_BYTES_MAX >> 20} MiB", log=self._log)
        code = self._ended()
        answer = answer_of(code, out)
        if answer is None:
            raise self._failure(code)
        return answer

    def rows(self) -> Iterator[dict[str, Any]]:
        """What it tells while it works, line by line, until its end."""
        assert self._popen.stdout is not None
        last = b""
        while line := self._popen.stdout.readline(LINE_BYTES_MAX):
            last = line
            row = row_of(line)
            if row is not None and "error" not in row:
                yield row
        code = self._ended()
        if code and answer_of(code, last) is None:
            raise self._failure(code)

    def no_more(self) -> None:
        """Its input ends: nothing more will come from us, be it that we are done or that we are gone."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def _ended(self) -> int:
        code = self._popen.wait()
        self._listening.join()
        return code

    def _failure(self, code: int) -> AnalysisFailed:
        last = tuple(self._last)
        if code == BUG:
            return AnalysisBroken("the analysis broke off by a bug (please report)", last, self._log)
        how = f"it was ended by signal {-code}" if code < 0 else f"exit code {code}"
        return AnalysisFailed(f"the analysis broke off ({how})", last, self._log)

    def _listen(self, pipe: IO[bytes]) -> None:
        """Progress is passed on; the rest is Spark talking to itself, and kept."""
        while line := pipe.readline(LINE_BYTES_MAX):
            progress = progress_of(line)
            if progress is not None:
                self._note(progress)
                continue
            with contextlib.suppress(OSError):  # a full disk must not keep Spark waiting to be heard
                self._kept.write(line)
            text = printable(line.decode("utf-8", "replace").rstrip())
            if text:
                self._last.append(text)


def _open_log(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.stat().st_size > LOG_BYTES_MAX:
            path.unlink()
        return path.open("ab", buffering=0)
    except OSError as error:
        said = f"what Spark says cannot be kept in {path} ({error.strerror})"
        raise AnalysisRefused(said, "say --lake PATH") from None
