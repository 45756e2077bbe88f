"""Decides how log lines reach their file: as JSON lines, in batches. See docs/log-format.md."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

import msgspec

from broker_runtime.net.clock import now

LOG_VERSION: Final = 1
BATCH_BYTES: Final = 64 << 10


class LogWriter:
    """Collects lines and writes them together; `flush` is called by the shell a few times a second."""

    def __init__(self, path: Path | None, process: str, run: str = "", stream: TextIO | None = None) -> None:
        self._file = path.open("ab", buffering=0) if path else None
        self._stream = stream
        host = os.environ.get("PANDA_HOST") or socket.gethostname()
        self._common = {"host": host, "run": run, "proc": process}
        self._lines: list[bytes] = []
        self._bytes = 0
        self._encode = msgspec.json.Encoder().encode

    def write(self, kind: str, fields: Mapping[str, object]) -> None:
        if self._file is None and self._stream is None:
            return
        line = self._encode({"v": LOG_VERSION, "t": round(now(), 6), **self._common, "kind": kind, **fields})
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        data = b"\n".join(self._lines) + b"\n"
        self._lines.clear()
        self._bytes = 0
        if self._file is not None:
            self._file.write(data)
        if self._stream is not None:
            self._stream.write(data.decode())
            self._stream.flush()

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
