"""Decides where a run's files are and which may be read; it never follows a link out of the folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from broker_runtime.agent.protocol import NAME, READ_BYTES_MAX, STREAMS, Code, RequestRefused

SOCKET: Final = "agent.sock"
LINE_SOCKET: Final = "line.sock"
FILES_MAX: Final = 50_000
DEPTH_MAX: Final = 8
LINES_MAX: Final = 10_000
TAIL_BYTES_MAX: Final = 1 << 20
COMPRESSION: Final = 1
PATH_LENGTH_MAX: Final = 4_096
SPEC_BYTES_MAX: Final = 64 << 20
READABLE: Final = frozenset(("journal.jsonl", "agent.log"))
_STREAM_FILES: Final = {"stdout": "stdout", "stderr": "stderr", "log": "log.jsonl"}


class Folder:
    """The folder of one run."""

    def __init__(self, root: Path, run: str) -> None:
        if NAME.fullmatch(run) is None:
            raise ValueError(f"{run!r} is no name of a run")
        self.root = root
        self.run = run
        self.path = root / "runs" / run

    def create(self) -> None:
        """Make it, for us alone; ValueError if somebody else's is there."""
        for folder in (self.root, self.path.parent, self.path):
            folder.mkdir(mode=0o700, exist_ok=True, parents=folder is self.root)
        self.check()
        self.path.chmod(0o700)

    def check(self) -> None:
        there = self.path.lstat()
        if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
            raise ValueError(f"{self.path} is no folder of ours")

    def process(self, id_: str) -> Path:
        """The working folder of a process, made if it is missing."""
        assert NAME.fullmatch(id_) is not None
        path = self.path / "processes" / id_
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def keep_spec(self, spec: Mapping[str, Any]) -> None:
        """On disk, for us alone, whole or not at all: it holds secrets."""
        temporary = self.path / "spec.json.new"
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(spec).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.path / "spec.json")
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def kept_spec(self) -> Any:
        """What was kept; None if nothing was."""
        try:
            with (self.path / "spec.json").open("rb") as file:
                return json.loads(file.read(SPEC_BYTES_MAX))
        except FileNotFoundError:
            return None

    def files(self) -> list[dict[str, object]]:
        """What may be read: regular files, bounded in number and depth."""
        found: list[dict[str, object]] = []
        for name in sorted(READABLE):
            _note(self.path / name, name, found)
        waiting = [(self.path / "processes", "processes", 0)]
        while waiting and len(found) < FILES_MAX:
            folder, name, depth = waiting.pop()
            for entry in _listing(folder):
                inner = f"{name}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if depth < DEPTH_MAX:
                        waiting.append((folder / entry.name, inner, depth + 1))
                elif len(found) < FILES_MAX and _sendable(entry.name):
                    _note(folder / entry.name, inner, found)
        return found

    def read(
        self, path: object, offset: object, length: object, *, compressed: bool = False
    ) -> dict[str, object]:
        if not isinstance(path, str) or not 0 < len(path) <= PATH_LENGTH_MAX:
            raise RequestRefused(Code.BAD_REQUEST, "path is no path")
        if not _whole(offset) or not _whole(length):
            raise RequestRefused(Code.BAD_REQUEST, "offset or length is no whole number")
        assert isinstance(offset, int)
        assert isinstance(length, int)
        if length > READ_BYTES_MAX:
            raise RequestRefused(Code.TOO_LARGE, f"at most {READ_BYTES_MAX} bytes can be read at once")
        parts = path.split("/")
        inside = parts[0] == "processes" and len(parts) >= 3
        if not (path in READABLE or inside) or not all(map(_sendable, parts)):
            raise RequestRefused(Code.NO_FILE, f"{path[:200]!r} is no file of the run")
        with self._opened(parts) as fd:
            data = os.pread(fd, length, offset)
            sent = zlib.compress(data, COMPRESSION) if compressed else data
            told: dict[str, object] = {"data": base64.b64encode(sent).decode("ascii")}
            return {**told, "size": os.fstat(fd).st_size, "compressed": compressed}

    def tail(self, process: str, stream: object, lines: object) -> str:
        if not isinstance(stream, str) or stream not in STREAMS:
            raise RequestRefused(Code.BAD_REQUEST, "stream is none of stdout, stderr, log")
        if not _whole(lines):
            raise RequestRefused(Code.BAD_REQUEST, "lines is no whole number")
        assert isinstance(lines, int)
        if lines > LINES_MAX:
            raise RequestRefused(Code.TOO_LARGE, f"at most {LINES_MAX} lines can be had at once")
        with self._opened(["processes", process, _STREAM_FILES[stream]]) as fd:
            return last_lines(fd, lines)

    @contextmanager
    def _opened(self, parts: list[str]) -> Iterator[int]:
        """A regular file, reached from folder to folder, so that no link on the way is followed."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                fd = _step_into(fd, part, os.O_RDONLY | os.O_DIRECTORY)
            fd = _step_into(fd, parts[-1], os.O_RDONLY | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise RequestRefused(Code.NO_FILE, f"{'/'.join(parts)[:200]!r} is no regular file")
            yield fd
        except OSError as error:
            raise RequestRefused(Code.NO_FILE, f"{'/'.join(parts)[:200]!r}: {error.strerror}") from None
        finally:
            os.close(fd)

    def remove(self) -> None:
        """Remove this run's folder, and `runs` if it was the last one; OSError or ValueError if not."""
        self.check()
        if self.path.name != self.run or self.path.parent.name != "runs":
            raise ValueError(f"{self.path} is not the folder of run {self.run}")
        shutil.rmtree(self.path)
        try:
            self.path.parent.rmdir()
        except OSError:
            return  # other runs are in it


def _step_into(fd: int, name: str, flags: int) -> int:
    inner = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    os.close(fd)
    return inner


def _listing(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # it went while we looked
        return []


def _note(path: Path, name: str, found: list[dict[str, object]]) -> None:
    try:
        there = path.lstat()
    except OSError:
        return
    if stat.S_ISREG(there.st_mode):
        found.append({"path": name, "size": there.st_size, "mtime": there.st_mtime})


def _sendable(name: str) -> bool:
    """Whether a part of a path can be asked for: it leads nowhere else and can be written in a frame."""
    return name not in ("", ".", "..") and "\0" not in name and name.isprintable()


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def last_lines(fd: int, lines: int) -> str:
    size_bytes = os.fstat(fd).st_size
    start = max(0, size_bytes - TAIL_BYTES_MAX)
    text = os.pread(fd, TAIL_BYTES_MAX, start).decode(errors="replace")
    wanted = text.splitlines()[-lines:] if lines else []
    return "\n".join(wanted)
