"""Decides how a log that grows becomes files that do not: whole lines, each once.

Spark's stream of files sees a file once. So what a log grew by becomes a new file, named by where it began:
STREAM/HOST/PROCESS/GENERATION-OFFSET.jsonl. The names are all there is to know after a restart. A log that
was replaced is another log, the next generation; an older copy of the same log has nothing new to say.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from panda.experiment.folder import host_folder

SLICE_BYTES_MAX = 8 << 20  # a line longer than this is cut, and told from whole ones by whoever reads it
SEEN_BYTES = 256  # by so much of what was cut before, a replaced log is told from one that grew
LOG = "log.jsonl"
_NAME = re.compile(r"(\d+)-(\d+)\.jsonl")

Read = Callable[[int, int], bytes]  # from the offset, at most so many bytes; less only at the log's end


@dataclass(frozen=True, slots=True)
class Cut:
    """How far a log has been cut into slices."""

    generation: int = 0
    offset: int = 0
    last: Path | None = None


def slice_run(hosts: Path, stream: Path) -> int:
    """Cut what the collected logs of a run have that was not cut yet; how many bytes."""
    return sum(
        slice_log(reader_of(log), slices_of(stream, log.parts[-4], log.parts[-2])) for log in _logs(hosts)
    )


def slices_of(stream: Path, host: str, process: str) -> Path:
    """The folder for the slices of one log."""
    return stream / host_folder(host) / host_folder(process)


def slice_log(read: Read, folder: Path) -> int:
    """Cut what the log grew by since its last slice; how many bytes. Half a line stays where it is."""
    cut = _continued(read, cut_of(folder))
    done = 0
    while cut is not None and (piece := _piece(read, cut.offset)):
        path = folder / f"{cut.generation}-{cut.offset:016d}.jsonl"
        _write(path, piece)
        cut = Cut(cut.generation, cut.offset + len(piece), path)
        done += len(piece)
    return done


def cut_of(folder: Path) -> Cut:
    """How far it was cut, by the names and sizes of its slices."""
    found = [
        Cut(int(named[1]), int(named[2]), path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (named := _NAME.fullmatch(path.name))
    ]
    if not found:
        return Cut()
    newest = max(found, key=lambda cut: (cut.generation, cut.offset))
    assert newest.last is not None
    return Cut(newest.generation, newest.offset + newest.last.stat().st_size, newest.last)


def reader_of(log: Path) -> Read:
    """Reads a log that lies here, plain or packed; nothing if it went meanwhile."""

    def read(offset: int, length: int) -> bytes:
        try:
            with log.open("rb") as file:
                if log.suffix == ".gz":
                    return _unpacked(file, offset, length)
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            return b""

    return read


def _logs(hosts: Path) -> Iterator[Path]:
    """Every log that came home: plain, or else packed."""
    for folder in sorted(hosts.glob("*/processes/*")):
        for name in (LOG, f"{LOG}.gz"):
            path = folder / name
            if path.is_file() and not path.is_symlink():
                yield path
                break


def _continued(read: Read, cut: Cut) -> Cut | None:
    """From where to cut on; None when this is an older copy of the log."""
    if cut.last is None:
        return cut
    end = _ends(cut.last, first=False)
    found = read(cut.offset - len(end), len(end))
    if found == end:
        return cut
    start = _ends(cut.last.with_name(f"{cut.generation}-{0:016d}.jsonl"), first=True)
    if len(found) < len(end) and start.startswith(read(0, len(start))):
        return None
    return Cut(cut.generation + 1)


def _ends(path: Path, *, first: bool) -> bytes:
    with path.open("rb") as file:
        if not first:
            file.seek(-min(SEEN_BYTES, path.stat().st_size), os.SEEK_END)
        return file.read(SEEN_BYTES)


def _piece(read: Read, offset: int) -> bytes:
    """Whole lines from there on."""
    data = read(offset, SLICE_BYTES_MAX)
    end = data.rfind(b"\n") + 1
    return data[:end] if end or len(data) < SLICE_BYTES_MAX else data


def _unpacked(file: IO[bytes], offset: int, length: int) -> bytes:
    """From a packed log that may still grow: as far as it can be read. Offsets count unpacked bytes."""
    found = bytearray()
    at = 0
    unpack = zlib.decompressobj(wbits=31)
    data = b""
    while len(found) < length:
        data = data or file.read(1 << 16)
        if not data:
            break
        try:
            plain = unpack.decompress(data, 1 << 20)
        except zlib.error:  # broken from here on
            break
        found += plain[max(0, offset - at) :]
        at += len(plain)
        data = unpack.unconsumed_tail
        if unpack.eof:  # members may follow one another
            data = unpack.unused_data
            unpack = zlib.decompressobj(wbits=31)
    return bytes(found[:length])


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing; a name with a dot in front is not looked at by Spark."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
