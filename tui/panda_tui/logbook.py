"""Decides how logs of many processes become one: lines of each as they grow, in order of corrected time.

A line of `log` says when it was written, by its host's clock; one of stdout or stderr does not, and counts as
written when it was read. Whoever reads ahead waits a moment, so that slower hosts' lines fall into place.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from panda_tui.escaping import one_line
from panda_tui.watch import Piece

FIRST_BYTES: Final = 64 << 10  # of each file, at first: its end
PIECE_BYTES: Final = 256 << 10
LINE_CHARACTERS_MAX: Final = 1_000
SETTLE_S: Final = 0.8
HELD_MAX: Final = 20_000
TRAFFIC: Final = frozenset(("publish", "deliver", "counts", "load"))
WRONG: Final = frozenset(("error", "refuse", "refused", "dial_failed", "link_down", "disconnected", "fault"))
_COMPLAINT: Final = re.compile(r"(?i)\b(error|failed|failure|fatal|traceback|exception|refused|cannot)\b")
_NOTIFICATION: Final = re.compile(r"(\S+: )?\[class,")  # as subscribers print them
_SHOWN_ELSEWHERE: Final = frozenset(("v", "t", "host", "run", "proc", "kind"))

Read = Callable[[str, str, int, int], Piece]  # process, stream, offset, length


@dataclass(frozen=True, slots=True, order=True)
class Line:
    at: float  # by our clock
    process: str
    number: int  # of this process and stream, so that equal times keep their order
    stream: str = field(compare=False)
    text: str = field(compare=False)  # nothing in it steers a terminal
    wrong: bool = field(compare=False, default=False)
    traffic: bool = field(compare=False, default=False)
    timed: bool = field(compare=False, default=False)  # else it was written at that time or before


@dataclass(slots=True)
class _File:
    process: str
    host: str
    stream: str
    offset: int = -1  # not looked at yet
    rest: bytes = b""
    number: int = 0


class Logbook:
    """Read by one thread. `more` gives the lines that have settled, in order."""

    def __init__(self, processes: Mapping[str, str], streams: Sequence[str]) -> None:
        self._files = [
            _File(process, host, stream) for process, host in processes.items() for stream in streams
        ]
        self._held: list[Line] = []
        self._first = True

    def more(self, read: Read, offsets: Mapping[str, float], now: float) -> list[Line]:
        for file in self._files:
            self._held += self._read(file, read, offsets.get(file.host, 0.0), now)
        self._held.sort()
        # What was there before we came is complete; of what comes, the last moment may not be.
        until = now + 1e9 if self._first else now - SETTLE_S
        self._first = False
        settled = [line for line in self._held if line.at <= until]
        self._held = [line for line in self._held if line.at > until]
        return settled[-HELD_MAX:]

    def _read(self, file: _File, read: Read, offset_s: float, now: float) -> Iterator[Line]:
        whole = True
        if file.offset < 0:
            size = read(file.process, file.stream, 0, 1).size
            file.offset = max(0, size - FIRST_BYTES)
            whole = file.offset == 0
        while True:
            piece = read(file.process, file.stream, file.offset, PIECE_BYTES)
            if piece.size < file.offset:  # another file than the one we began with
                file.offset, file.rest = 0, b""
                return
            if not piece.data:
                return
            file.offset += len(piece.data)
            *lines, file.rest = (file.rest + piece.data).split(b"\n")
            if not whole and lines:
                del lines[0]
                whole = True
            for line in lines:
                file.number += 1
                yield _line(file, line, offset_s, now)
            if len(piece.data) < PIECE_BYTES:
                return


def _line(file: _File, raw: bytes, offset_s: float, now: float) -> Line:
    text = raw[: 4 * LINE_CHARACTERS_MAX].decode("utf-8", "replace")
    if file.stream == "log":
        try:
            entry = json.loads(raw)
            at = float(entry["t"]) - offset_s
            kind = str(entry["kind"])
            return Line(
                at,
                file.process,
                file.number,
                file.stream,
                _words(kind, entry),
                kind in WRONG,
                kind in TRAFFIC,
                timed=True,
            )
        except (ValueError, KeyError, TypeError):
            pass
    shown = one_line(text)[:LINE_CHARACTERS_MAX]
    notified = file.stream == "stdout" and _NOTIFICATION.match(shown) is not None
    wrong = not notified and _COMPLAINT.search(shown) is not None
    return Line(now, file.process, file.number, file.stream, shown, wrong, traffic=notified)


def _words(kind: str, entry: Mapping[str, Any]) -> str:
    fields = " ".join(f"{name}={value}" for name, value in entry.items() if name not in _SHOWN_ELSEWHERE)
    return one_line(f"{kind} {fields}".rstrip())[:LINE_CHARACTERS_MAX]


class Page:
    """The lines that are kept, and of these the ones that a filter lets through."""

    def __init__(self, lines_max: int) -> None:
        self._kept: deque[Line] = deque(maxlen=lines_max)
        self.shown: deque[Line] = deque(maxlen=lines_max)
        self._wanted = ""
        self._traffic = False

    def add(self, lines: Iterable[Line]) -> list[Line]:
        """Those of them that are to be shown."""
        came = list(lines)
        self._kept.extend(came)
        fitting = [line for line in came if self._fits(line)]
        self.shown.extend(fitting)
        return fitting

    def choose(self, wanted: str, *, traffic: bool) -> list[Line]:
        """Another filter: words that all have to be there, in the line or the process's id."""
        self._wanted, self._traffic = wanted.lower(), traffic
        self.shown.clear()
        self.shown.extend(line for line in self._kept if self._fits(line))
        return list(self.shown)

    def _fits(self, line: Line) -> bool:
        if line.traffic and not self._traffic:
            return False
        if not self._wanted:
            return True
        text = f"{line.process} {line.stream} {line.text}".lower()
        return all(word in text for word in self._wanted.split())

    def next_wrong(self, since: int, step: int) -> int | None:
        """The number of the next line that tells of something wrong, forwards or backwards."""
        shown = list(self.shown)
        numbers = range(since + 1, len(shown)) if step > 0 else range(since - 1, -1, -1)
        return next((number for number in numbers if shown[number].wrong), None)

    def next_match(self, text: str, since: int, step: int) -> int | None:
        shown, wanted = list(self.shown), text.lower()
        numbers = range(since + 1, len(shown)) if step > 0 else range(since - 1, -1, -1)
        return next((number for number in numbers if wanted in shown[number].text.lower()), None)
