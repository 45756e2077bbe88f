"""Decides how a run is followed while it happens: which lines count as what; keeps windows, never a line.

Spark finds new files, reads each once and counts lines by window and bucket of latency. What windows add up
to is ours, kept beside Spark's checkpoint with the number of the last batch in it: Spark repeats a batch that
it does not know to be done, and the number says that it is. Spark's own windows would not do: they drop what
is behind the watermark and tell how many groups that were, not how many lines.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from panda_spark.ingest import judged
from panda_spark.refusal import Refused
from panda_spark.session import fit
from panda_spark.windows import (
    BUCKET_BELOW,
    BUCKET_GROWTH,
    BUCKET_LAST,
    LATENCY_MIN_S,
    Group,
    Row,
    Windows,
)

END_NAME: Final = ".end"
AHEAD_MAX_S: Final = 60.0  # a line this much later than its file is not believed: all others would be late
FILES_PER_BATCH_MAX: Final = 1000
FILE_AGE_MAX: Final = "36500d"  # Spark would pass over files a week older than the newest, in silence
POLL_S: Final = 1
PATTERN_CHARACTERS: Final = frozenset("\\{}[]*?")
FIELDS: Final = ("t", "host", "kind", "id", "ack_s", "latency_s", "ended")
ERROR_KINDS: Final = ("error", "refuse", "refused", "notice")


@dataclass(frozen=True, slots=True)
class Following:
    run: Path
    stream: Path | None = None  # unless it is RUN/stream
    window_s: float = 5.0
    watermark_s: float = 10.0
    once: bool = False
    checkpoint: Path | None = None

    @property
    def slices(self) -> Path:
        return self.stream or self.run / "stream"

    @property
    def kept(self) -> Path:
        return self.checkpoint or self.slices / ".checkpoint"


def follow(spark: SparkSession, following: Following, emit: Callable[[Row], None]) -> None:
    """Tell what happens until the stream has ended, or with `once` what has happened until now."""
    check(following)
    try:
        following.slices.mkdir(parents=True, exist_ok=True)
        following.kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{error.filename} cannot be made: {error.strerror}"
        raise Refused(message, "say --checkpoint FOLDER, where you may write") from None
    with _alone(following.kept):
        follower = Follower(following, emit)
        follower.repeat()
        fit(spark, 0)  # what a batch comes to is small, whatever goes in
        ended = (following.slices / END_NAME).exists()
        query = follower.start(spark)
        try:
            if following.once:
                query.awaitTermination()
            else:
                ended = _until_ended(query, following.slices / END_NAME)
        except StreamingQueryException:
            if follower.failure is not None:
                raise follower.failure from None
            raise
        finally:
            query.stop()
        if ended:
            follower.close()


class Follower:
    """Takes the batches of one following, each exactly once."""

    def __init__(self, following: Following, emit: Callable[[Row], None]) -> None:
        self._following = following
        self._emit = emit
        self._path = following.kept / "windows.json"
        self._windows = _read_windows(self._path, following)
        self.failure: Exception | None = None  # what stopped a batch: Spark passes on the text of it alone

    def start(self, spark: SparkSession) -> StreamingQuery:
        reader = spark.readStream.option("maxFilesPerTrigger", FILES_PER_BATCH_MAX)
        reader = reader.option("maxFileAge", FILE_AGE_MAX).option("lineSep", "\n")
        lines = reader.text(f"{self._following.slices.absolute()}/*/*/*.jsonl")
        modified = F.col("_metadata.file_modification_time").cast("double").alias("modified")
        writer = lines.select("value", modified).writeStream.foreachBatch(self.take)
        writer = writer.option("checkpointLocation", str(self._following.kept / "spark"))
        if self._following.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{POLL_S} seconds").start()

    def repeat(self) -> None:
        """Tell again what was told last: whoever was stopped then may not have got round to it."""
        for row in self._windows.rows:
            self._emit(row)

    def take(self, lines: DataFrame, batch: int) -> None:
        try:
            self._take(lines, batch)
        except Exception as failure:
            self.failure = failure
            raise

    def _take(self, lines: DataFrame, batch: int) -> None:
        done = self._windows.batch
        if batch == done:
            return
        if batch != done + 1:
            raise Refused(
                f"{self._following.kept} is damaged: Spark is at batch {batch}, the windows at {done}",
                "remove that folder and follow the run from its beginning",
            )
        homes = _homes(self._following.run / "plan.json")
        offsets = {**_offsets(self._following.run / "clocks.jsonl"), **self._windows.offsets}
        self._windows.offsets = offsets
        found = groups(lines, offsets, homes, self._following.window_s).collect()
        self._tell(self._windows.take(batch, [Group(*row) for row in found]))

    def close(self) -> None:
        self._tell(self._windows.close())

    def _tell(self, rows: list[Row]) -> None:
        """Kept first, told second: what was told and not kept could be told otherwise the next time."""
        part = self._path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(self._windows.data(), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
        for row in rows:
            self._emit(row)


def groups(lines: DataFrame, offsets: dict[str, float], homes: dict[str, str], window_s: float) -> DataFrame:
    """How many lines of what there are, by window and bucket of latency; columns as in `Group`."""
    spark = lines.sparkSession
    there = {client: offsets[host] for client, host in homes.items() if host in offsets}
    here_s = spark.createDataFrame(list(offsets.items()), "host string, here_s double")
    there_s = spark.createDataFrame(list(there.items()), "publisher string, there_s double")
    fields = [F.col("line")[name].alias(name) for name in FIELDS]
    opened = judged(lines).select("modified", "reason_bad", *fields)
    named = opened.withColumn("publisher", F.substring_index("id", ":", 1))
    known = named.join(F.broadcast(here_s), "host", "left").join(F.broadcast(there_s), "publisher", "left")
    here, there_or_here = F.coalesce("here_s", F.lit(0.0)), F.coalesce("there_s", "here_s", F.lit(0.0))
    timed = known.withColumns({"at": F.col("t") - here, "took_s": F.col("latency_s") + there_or_here - here})
    believed = F.coalesce(F.col("at").between(0.0, F.col("modified") + AHEAD_MAX_S), F.lit(False))
    counting = timed.withColumn("good", F.col("reason_bad").isNull() & believed)
    kind = F.col("kind")
    counted = counting.select(
        F.when(F.col("good"), F.floor(F.col("at") / window_s)).alias("window"),
        F.when(F.col("good"), F.col("at")).alias("at"),
        ((kind == "publish") & F.col("ack_s").isNotNull()).alias("published"),
        ((kind == "deliver") & F.col("latency_s").isNotNull()).alias("delivered"),
        (kind.isin(*ERROR_KINDS) | ((kind == "link_down") & ~F.col("ended"))).alias("error"),
        _bucket(F.col("took_s")).alias("bucket"),
    )
    bucket = F.when(F.col("delivered"), F.col("bucket")).alias("bucket")
    return counted.groupBy("window", bucket).agg(
        F.count("*").alias("lines"),
        F.count_if("published").alias("published"),
        F.count_if("delivered").alias("delivered"),
        F.count_if("error").alias("errors"),
        F.max("at").alias("newest"),
    )


def _bucket(took_s: Column) -> Column:
    grown = F.floor(F.log(took_s / LATENCY_MIN_S) / math.log(BUCKET_GROWTH))
    within = F.least(grown, F.lit(BUCKET_LAST))
    numbered = F.when(took_s < LATENCY_MIN_S, F.lit(BUCKET_BELOW)).otherwise(within)
    return F.when(took_s.isNotNull() & ~F.isnan(took_s), numbered)


def _until_ended(query: StreamingQuery, end: Path) -> bool:
    """Wait for the file that says that no other will come, and then for all that came before it."""
    while not query.awaitTermination(POLL_S):
        if end.exists():
            query.processAllAvailable()
            return True
    return False


def check(following: Following) -> None:
    """Refuse what cannot be followed."""
    if not (following.run / "plan.json").is_file():
        raise Refused(
            f"{following.run} is not the folder of a run", "name one that panda deploy made, as runs/NAME"
        )
    if set(str(following.slices.absolute())) & PATTERN_CHARACTERS:
        raise Refused(
            f"Spark would read a pattern in the name {following.slices}",
            f"move the run to a folder without any of {' '.join(sorted(PATTERN_CHARACTERS))} in its name",
        )
    if not 0.1 <= following.window_s <= 86_400:
        raise Refused(f"a window of {following.window_s} s cannot be followed", "say 0.1 to 86400 seconds")
    if not 0 <= following.watermark_s <= 86_400:
        raise Refused(f"a watermark of {following.watermark_s} s is no delay", "say 0 to 86400 seconds")


def _read_windows(path: Path, following: Following) -> Windows:
    if not path.exists():
        return Windows(following.window_s, following.watermark_s)
    hint = f"remove {following.kept} and follow the run from its beginning"
    try:
        windows = Windows.of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(f"{path} cannot be read: {error}", hint) from None
    if (windows.window_s, windows.watermark_s) != (following.window_s, following.watermark_s):
        raise Refused(
            f"{path} has windows of {windows.window_s} s that wait {windows.watermark_s} s for late lines",
            f"follow with the same, or {hint}",
        )
    return windows


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"somebody else follows this run with {folder}", "say --checkpoint FOLDER for one of your own"
            ) from None
        yield


def _homes(path: Path) -> dict[str, str]:
    """Which host each client is on, by the plan; none while it cannot be read."""
    try:
        processes = json.loads(path.read_text(encoding="utf-8"))["processes"]
        return {str(each["speaks"]): str(each["host"]) for each in processes if each.get("speaks")}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _offsets(path: Path) -> dict[str, float]:
    """The first offset of each host that is written down; what cannot be read is passed over."""
    found: dict[str, float] = {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    for line in text.splitlines():
        try:
            entry: Any = json.loads(line)
            host, offset_s = entry["host"], float(entry["offset_s"])
        except (ValueError, TypeError, KeyError):
            continue
        if isinstance(host, str) and math.isfinite(offset_s):
            found.setdefault(host, offset_s)
    return found
