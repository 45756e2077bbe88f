"""Decides how lines reach the logs of a generated run: by time, in batches, with bad ones among them."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, cast

from tests.spark.generator.clocks import HostClock
from tests.spark.generator.truth import BadLine

_when = itemgetter(0)


class LogFile:
    """The log of one process. Lines may come in any order within a batch; `write_until` sorts and writes."""

    def __init__(self, folder: Path, name: str, clock: HostClock, common: Mapping[str, str]) -> None:
        self.name = name
        self.truncated = False  # whether its last line is to be half a line
        self.clock = clock
        self.lines: list[tuple[float, str]] = []  # true time; the hot loop appends here itself
        self.written = 0
        self.others = 0  # lines but for publications and deliveries
        self.bad: list[bytes] = []  # lines that are still to be put in,
        self.reasons: list[str] = []  # and what is wrong with them
        self.quarantined: list[BadLine] = []
        self.common = f',{_json(common)[1:-1]},"kind":"'
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            self._file = cast(IO[bytes], gzip.GzipFile(path, "wb", compresslevel=1, mtime=0))
        else:
            self._file = path.open("wb", buffering=1 << 20)
        self._bytes = 0

    def add(self, t: float, kind: str, **fields: Any) -> None:
        self.others += 1
        rest = f",{_json(fields)[1:]}" if fields else "}"
        self.lines.append((t, f'{self.begin(t)}{kind}"{rest}'))

    def add_text(self, t: float, kind: str, fields: str) -> None:
        """Fields that are JSON already."""
        self.others += 1
        self.lines.append((t, f'{self.begin(t)}{kind}",{fields}}}'))

    def begin(self, t: float) -> str:
        """A line up to the name of its kind."""
        return f'{{"v":1,"t":{self.clock.shows(t):.6f}{self.common}'

    def plant(self, reason: str, gigantic_bytes: int) -> None:
        if reason == "truncated":
            self.truncated = True
        else:
            self.bad.append(bad_line(reason, self, gigantic_bytes) + b"\n")
            self.reasons.append(reason)

    def write_until(self, t: float) -> None:
        lines = self.lines
        lines.sort(key=_when)
        due = bisect_left(lines, t, key=_when)
        if not due:
            return
        texts = [line[1] for line in lines[:due]]
        del lines[:due]
        self.written += due
        if self.bad:
            half = due // 2
            self._write_lines(texts[:half])
            self._quarantine(self.bad.pop(), self.reasons.pop())
            texts = texts[half:]
        self._write_lines(texts)

    def close(self) -> None:
        last = self.lines[-1][0] if self.lines else self.clock.began
        self.write_until(float("inf"))
        while self.bad:
            self._quarantine(self.bad.pop(), self.reasons.pop())
        if self.truncated:
            self._quarantine(f'{self.begin(last)}deliver","id":"P0:'.encode(), "truncated")
        self._file.close()

    def _write_lines(self, texts: list[str]) -> None:
        if texts:
            texts.append("")
            self._write("\n".join(texts).encode())

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._bytes += len(data)

    def _quarantine(self, data: bytes, reason: str) -> None:
        self.quarantined.append(BadLine(self.name, self._bytes, reason))
        self._write(data)


def bad_line(reason: str, log: LogFile, gigantic_bytes: int) -> bytes:
    """A line with exactly one thing wrong; taken for a good one, it would be a delivery too many."""
    shown = log.clock.shows(log.clock.began + 5.0)
    good = (
        f'{log.begin(log.clock.began + 5.0)}deliver","id":"P0:00000000:9","client":"S0","hops":1,'
        f'"time":{shown:.6f},"latency_s":0.0,"subscriptions":1,"to":["S0:00000000:1"]}}'
    )
    if reason == "not JSON":
        return good[:-1].encode() + b',"oops"}'
    if reason == "not UTF-8":
        return good[:-1].encode() + b',"why":"\xff\xfe"}'
    if reason == "unknown version":
        return good.replace('"v":1', '"v":2', 1).encode()
    if reason == "missing field":
        return b'{"v":1,' + good[good.index('"host"') :].encode()
    if reason == "wrong type":
        return good.replace('"hops":1', '"hops":"one"').encode()
    assert reason == "gigantic", reason
    return good[:-1].encode() + b',"why":"' + b"x" * gigantic_bytes + b'"}'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
