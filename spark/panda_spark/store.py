"""Decides how small files are listed, read, written and removed, here or on any path that Hadoop knows.

A path without a scheme is this machine's and is handled without Spark; everything else goes through it, as it
alone can reach the place. Writing is all or nothing in both.
"""

from __future__ import annotations

import errno
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://?")


@dataclass(frozen=True, slots=True)
class Listed:
    """A file below a folder: `path` as Spark reads it, `relative` to the folder."""

    path: str
    relative: str
    size: int
    changed: float  # seconds since the epoch


class Store(Protocol):
    def files(self, folder: str) -> list[Listed]: ...

    def texts(self, folder: str) -> Mapping[str, str]:
        """The whole of every text below the folder, by a name that sorts as written."""

    def write(self, folder: str, name: str, text: str) -> None: ...

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in it."""

    def remove(self, folder: str) -> None: ...


def store_of(spark: SparkSession, path: str) -> Store:
    return SparkStore(spark) if _SCHEME.match(path) else LocalStore()


def here_bytes(folders: Sequence[str]) -> float:
    """How much lies in these folders, if all are of this machine; else there is no telling."""
    if any(_SCHEME.match(folder) for folder in folders):
        return math.inf
    try:
        return sum(file.size for folder in folders for file in LocalStore().files(folder))
    except OSError:
        return math.inf


def joined(*parts: str) -> str:
    return "/".join([parts[0].rstrip("/"), *parts[1:]])


class LocalStore:
    """Files of this machine."""

    def files(self, folder: str) -> list[Listed]:
        top = Path(folder).resolve()
        return sorted(self._below(top, top), key=lambda each: each.relative)

    def _below(self, folder: Path, top: Path) -> Iterator[Listed]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    continue  # nothing outside the folder is part of it
                path = Path(entry.path)
                if entry.is_dir():
                    yield from self._below(path, top)
                elif entry.is_file():
                    seen = entry.stat()
                    yield Listed(
                        path.as_posix(), path.relative_to(top).as_posix(), seen.st_size, seen.st_mtime
                    )

    def texts(self, folder: str) -> Mapping[str, str]:
        found = sorted(Path(folder).glob("*.json"))
        return {path.name: path.read_text("utf-8", "replace") for path in found}

    def write(self, folder: str, name: str, text: str) -> None:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{name}.{secrets.token_hex(4)}")
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def folders(self, folder: str) -> Sequence[str]:
        top = Path(folder)
        return sorted(path.name for path in top.iterdir() if path.is_dir()) if top.is_dir() else []

    def remove(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)


class SparkStore:
    """Files of wherever the session can reach."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def files(self, folder: str) -> list[Listed]:
        reader = self._spark.read.format("binaryFile").option("recursiveFileLookup", True)
        changed = F.unix_micros("modificationTime").alias("changed")
        try:
            rows = reader.load(literal(folder)).select("path", "length", changed).collect()
        except AnalysisException:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder) from None
        top = _tail(folder)
        return sorted(
            (
                Listed(row.path, _tail(row.path).removeprefix(f"{top}/"), row.length, row.changed / 1e6)
                for row in rows
            ),
            key=lambda each: each.relative,
        )

    def texts(self, folder: str) -> Mapping[str, str]:
        read = self._spark.read.option("recursiveFileLookup", True).text(literal(folder), wholetext=True)
        named = read.select(F.col("_metadata.file_path").alias("file"), "value")
        return {row.file.rsplit("/", 2)[-2]: row.value for row in named.orderBy("file").collect()}

    def write(self, folder: str, name: str, text: str) -> None:
        row = self._spark.range(1).select(F.lit(text).alias("value"))
        row.coalesce(1).write.mode("error").text(joined(folder, name))

    def folders(self, folder: str) -> Sequence[str]:
        try:
            found = self.files(folder)
        except FileNotFoundError:
            return []
        return sorted({each.relative.split("/")[0] for each in found if "/" in each.relative})

    def remove(self, folder: str) -> None:
        """Only where the session is ours: a Connect server lends no hand for files."""
        jvm = getattr(self._spark, "_jvm", None)
        context = getattr(self._spark, "_jsc", None)
        if jvm is None or context is None:
            return
        path = jvm.org.apache.hadoop.fs.Path(folder)
        path.getFileSystem(context.hadoopConfiguration()).delete(path, True)


def whole(path: str) -> str:
    """A path of this machine as Spark will tell it: without links and dots."""
    return path.rstrip("/") if _SCHEME.match(path) else Path(path).resolve().as_posix()


def literal(path: str) -> str:
    """A path as Spark reads it, which would take some characters for a pattern."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def file_path() -> Column:
    """The file of a row; Spark writes it as a URI, in which a plus is a plus. Most need no decoding."""
    path = F.col("_metadata.file_path")
    decoded = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    return F.when(path.contains("%"), decoded).otherwise(path)


def _tail(path: str) -> str:
    """A path without scheme and authority, which Hadoop writes in several ways."""
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "", path).rstrip("/")
