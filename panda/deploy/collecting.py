"""Decides how a host's files come home: only what grew is fetched, nothing is written outside its folder."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from broker_runtime.agent.protocol import READ_BYTES_MAX, RequestRefused
from panda.deploy.session import AgentSession
from panda.hosts.remote import HostError

FILES_MAX = 100_000
FILE_BYTES_MAX = 16 << 30
PART_LENGTH_MAX = 200

Progress = Callable[[str, int], None]  # host, bytes


class NameRefused(HostError):
    """The host named a file that would lead somewhere else."""


@dataclass(slots=True)
class Collected:
    host: str
    files: int = 0
    fetched_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def collect(session: AgentSession, target: Path, progress: Progress = lambda host, size: None) -> Collected:
    """Everything that the agent offers; what is here already is taken up where it ends."""
    done = Collected(session.host)
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path, size in _offered(session, done):
        try:
            local = place(session.host, target, path)
            done.fetched_bytes += _fetch(session, path, size, local, progress)
            done.files += 1
        except RequestRefused as refused:
            done.problems.append(f"{path}: {refused.message}")
        except (NameRefused, OSError) as error:
            done.problems.append(str(error))
    return done


def _offered(session: AgentSession, done: Collected) -> Iterator[tuple[str, int]]:
    files = session.request("files")["files"]
    if len(files) > FILES_MAX:
        done.problems.append(f"only {FILES_MAX} of {len(files)} files are collected")
    for entry in files[:FILES_MAX]:
        yield str(entry["path"]), min(int(entry["size"]), FILE_BYTES_MAX)


def place(host: str, target: Path, path: str) -> Path:
    """Where the file of this name goes, inside of the target; NameRefused when it would not be."""
    parts = PurePosixPath(path).parts
    wrong = not parts or PurePosixPath(path).is_absolute() or "\\" in path
    if wrong or any(part == ".." or not part.isprintable() or len(part) > PART_LENGTH_MAX for part in parts):
        raise NameRefused(host, f"it offers a file {path!r}", "nothing is written for it")
    local = target
    for part in parts[:-1]:
        local = local / part
        local.mkdir(exist_ok=True, mode=0o700)
        if local.is_symlink():
            raise NameRefused(host, f"{local} is a link", "nothing is written behind it")
    return local / parts[-1]


def _fetch(session: AgentSession, path: str, size: int, local: Path, progress: Progress) -> int:
    descriptor = os.open(local, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        here = os.fstat(descriptor).st_size
        if here > size:  # another file than the one we began with
            os.ftruncate(descriptor, 0)
            here = 0
        fetched = 0
        while here < size:
            data = read_piece(session, path, here, min(READ_BYTES_MAX, size - here))
            if not data:
                break
            os.pwrite(descriptor, data, here)
            here += len(data)
            fetched += len(data)
            progress(session.host, len(data))
        return fetched
    finally:
        os.close(descriptor)


def read_piece(session: AgentSession, path: str, offset: int, length: int) -> bytes:
    """At most so much of a file from there on; nothing at its end."""
    fields = {"path": path, "offset": offset, "length": length, "compressed": True}
    answer = session.request("read", fields)
    data = base64.b64decode(answer["data"], validate=True)
    if not answer.get("compressed"):
        return data
    plain = zlib.decompressobj().decompress(data, length + 1)
    if len(plain) > length:
        raise HostError(session.host, f"it sent more of {path} than was asked for")
    return plain
