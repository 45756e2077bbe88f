"""Decides how entries reach the disk and come back: JSON lines, appended and synced, never rewritten."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ENTRIES_PER_READ_MAX: Final = 256
ENTRY_BYTES_MAX: Final = 64 << 10


class Journal:
    """One file. What could not be written, on a full disk, stays in order until it can."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._offsets = [0]  # where each entry begins, and at the end where the next one will
        self._unwritten = bytearray()

    def recover(self) -> list[dict[str, Any]]:
        """Every whole entry; what a crash left of a last line is cut off. ValueError if more is wrong."""
        entries: list[dict[str, Any]] = []
        size_bytes = os.fstat(self._fd).st_size
        data = _read_all(self._fd, size_bytes)
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            try:
                entry = json.loads(data[start:end])
            except ValueError:
                break
            if not isinstance(entry, dict) or entry.get("seq") != len(entries) + 1:
                break
            entries.append(entry)
            start = end + 1
            self._offsets.append(start)
        if start < size_bytes:
            if data.find(b"\n", start) not in (-1, size_bytes - 1):
                raise ValueError(f"the journal is damaged in line {len(entries) + 1}")
            os.ftruncate(self._fd, start)
        return entries

    def append(self, entry: Mapping[str, Any]) -> None:
        assert entry["seq"] == len(self._offsets), "entries are numbered without gaps"
        line = json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n"
        assert len(line) <= ENTRY_BYTES_MAX
        self._unwritten += line
        self._offsets.append(self._offsets[-1] + len(line))

    def flush(self) -> None:
        """Hand everything to the operating system; OSError if it does not take it all."""
        while self._unwritten:
            written = os.write(self._fd, self._unwritten)
            del self._unwritten[:written]

    def sync(self) -> None:
        """Wait for the disk; this may be called in another thread."""
        os.fdatasync(self._fd)

    @property
    def seq(self) -> int:
        """The number of the last entry."""
        return len(self._offsets) - 1

    def read(self, since: int) -> list[dict[str, Any]]:
        """Entries after `since`, some of them at a time."""
        first = min(max(since, 0), self.seq)
        last = min(first + ENTRIES_PER_READ_MAX, self.seq)
        start, end = self._offsets[first], self._offsets[last]
        data = os.pread(self._fd, end - start, start)
        return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]

    def close(self) -> None:
        os.close(self._fd)


def _read_all(fd: int, size_bytes: int) -> bytes:
    pieces = []
    offset = 0
    while offset < size_bytes and (piece := os.pread(fd, 1 << 20, offset)):
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)
