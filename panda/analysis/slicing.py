"""Decides how a log that grows becomes files that do not: whole lines, each once.

Spark's stream of files sees a file once. So what a log grew by becomes a new file, named by where it began:
STREAM/HOST/PROCESS/GENERATION-OFFSET.jsonl. The names are all there is to know after a restart. A log that
was replaced, or is shorter than before, is another log: the next generation.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SLICE_BYTES_MAX = 8 << 20  # a line longer than this is cut, and told from whole ones by whoever reads it
TAIL_BYTES = 256  # by the end of what was cut before, a replaced log is told from one that grew
LOG = "log.jsonl"
_NAME = re.compile(r"(\d+)-(\d+)\.jsonl")


@dataclass(frozen=True, slots=True)
class Cut:
    """How far a log has been cut into slices."""

    generation: int = 0
    offset: int = 0
    last: Path | None = None


def slice_run(hosts: Path, stream: Path) -> int:
    """Cut what all collected logs of a run grew by; how many bytes."""
    done = 0
    for log in _logs(hosts):
        host, process = log.parts[-4], log.parts[-2]
        done += slice_log(log, stream / host / process)
    return done


def slice_log(log: Path, folder: Path) -> int:
    """Cut what the log grew by since its last slice; how many bytes. Half a line stays where it is."""
    cut = cut_of(folder)
    try:
        if not _continues(log, cut):
            cut = Cut(cut.generation + 1)
        done = 0
        while piece := _piece(log, cut.offset):
            path = folder / f"{cut.generation}-{cut.offset:016d}.jsonl"
            _write(path, piece)
            cut = Cut(cut.generation, cut.offset + len(piece), path)
            done += len(piece)
        return done
    except FileNotFoundError:  # it went between being seen and being opened
        return 0


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


def _logs(hosts: Path) -> Iterator[Path]:
    """Every log that came home: plain, or else packed."""
    for folder in sorted(hosts.glob("*/processes/*")):
        for name in (LOG, f"{LOG}.gz"):
            path = folder / name
            if path.is_file() and not path.is_symlink():
                yield path
                break


def _continues(log: Path, cut: Cut) -> bool:
    """Whether what was cut last still stands where it stood."""
    if cut.last is None:
        return True
    size = min(TAIL_BYTES, cut.last.stat().st_size)
    with cut.last.open("rb") as file:
        file.seek(-size, os.SEEK_END)
        return _read(log, cut.offset - size, size) == file.read()


def _piece(log: Path, offset: int) -> bytes:
    """Whole lines from there on."""
    data = _read(log, offset, SLICE_BYTES_MAX)
    end = data.rfind(b"\n") + 1
    return data[:end] if end or len(data) < SLICE_BYTES_MAX else data


def _read(log: Path, offset: int, length: int) -> bytes:
    with log.open("rb") as file:
        if log.suffix == ".gz":
            return _unpacked(file, offset, length)
        file.seek(offset)
        return file.read(length)


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
