"""A program in a pseudo-terminal: what it writes there, and what it costs meanwhile."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_ESCAPE = re.compile(
    r"\x1b\[[0-9;:?<>=]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78cM]"
)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Terminal:
    def __init__(self, command: Sequence[str], size: tuple[int, int]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,  # where Textual draws
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.written = 0
        self._rest = ""

    def read(self, seconds: float) -> str:
        """What is written within so long, without escapes; returns as soon as there is anything."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, seconds))
        if not ready:
            return ""
        try:
            data = os.read(self._ours, 1 << 20)
        except (BlockingIOError, OSError):
            return ""
        self.written += len(data)
        text = self._rest + data.decode("utf-8", "replace")
        cut = text.rfind("\x1b")
        self._rest = text[cut:] if cut >= 0 and len(text) - cut < 24 else ""
        return _ESCAPE.sub("", text[: len(text) - len(self._rest)])

    def until(self, wanted: Callable[[str], bool], seconds: float) -> float | None:
        """How long until what was written since now is as wanted; None if it never was."""
        began, text = time.perf_counter(), ""
        while (left := began + seconds - time.perf_counter()) > 0:
            text += self.read(left)
            if wanted(text):
                return time.perf_counter() - began
        return None

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def drain(self, seconds: float) -> str:
        end, text = time.perf_counter() + seconds, ""
        while (left := end - time.perf_counter()) > 0:
            text += self.read(left)
        return text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self._ours)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def memory_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
