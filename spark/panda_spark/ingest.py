"""Decides what is a good line of a log and what is none; keeps both, and drops nothing.

A line is read as text, so that one that is broken cannot take its neighbours along.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from panda_spark.schema import (
    COMMON,
    CORRUPT,
    LINE,
    LINE_BYTES_MAX,
    LOG_VERSION,
    NEEDED,
    PLACE,
    QUARANTINE,
)
from panda_spark.store import file_path, literal

SHOWN_CHARACTERS: Final = 1_000  # of a bad line
FROM_RUN: Final = -6  # the parts of RUN/hosts/HOST/processes/PROCESS/FILE, from the end
STRICT: Final = {  # as JSON is defined
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Every line of the files with its place; gzip and bzip2 are known by their endings."""
    read = spark.read.option("lineSep", "\n").text([literal(path) for path in paths])
    return read.select(
        "value",
        file_path().alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
    )


def bronze(lines_: DataFrame) -> DataFrame:
    """The lines, each as one `line` of fields; a bad one has its reason and beginning instead."""
    bad = F.col("reason_bad").isNotNull()
    beginning = F.make_valid_utf8(F.substring("value", 1, SHOWN_CHARACTERS))
    return judged(lines_).select(
        F.substring_index(F.substring_index("file", "/", FROM_RUN), "/", 1).alias("run"),
        *PLACE.names,
        F.when(~bad, F.col("line")).alias("line"),
        "reason_bad",
        F.when(bad, beginning).alias("text_bad"),
    )


def judged(lines_: DataFrame) -> DataFrame:
    """The lines, each with its `line` as far as it can be read, and `reason_bad` if it is no good."""
    size = F.octet_length("value").cast("long").alias("bytes")
    # Of every line, whatever it is: a condition here would be interpreted for each of them.
    line = F.from_json("value", LINE, STRICT).alias("line")
    opened = lines_.select("*", size, line)
    return opened.select("*", _reason().alias("reason_bad"))


def quarantine(bronze_: DataFrame) -> DataFrame:
    """The bad lines, with the byte at which each begins.

    Rows of one block are in the order of the file, and blocks in the order of their starts: a line begins
    after all that came before it, each with its line end.
    """
    bad = F.col("reason_bad").isNotNull()
    files = bronze_.where(bad).select("file").distinct()
    sized = bronze_.select("run", *PLACE.names, "reason_bad", "text_bad")
    before = Window.partitionBy("file").orderBy("block", "row").rowsBetween(Window.unboundedPreceding, -1)
    offset = F.coalesce(F.sum(F.col("bytes") + 1).over(before), F.lit(0))
    placed = sized.join(F.broadcast(files), "file", "left_semi").withColumn("offset", offset)
    renamed = placed.where(bad).withColumnsRenamed({"reason_bad": "reason", "text_bad": "text"})
    return renamed.select(*QUARANTINE.names)


def _reason() -> Column:
    line = F.col("line")
    text = F.col("value")
    missing = [line[name].isNull() for name in COMMON.names if name != "run"]
    for kind, fields in NEEDED.items():
        lacking = reduce(Column.__or__, [line[field].isNull() for field in fields])
        missing.append((line["kind"] == kind) & lacking)
    corrupt = line[CORRUPT].isNotNull()
    # Of two lines whose line end was lost the parser would read the first.
    several = text.contains("}{") & F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))).isNull()
    return (
        F.when(F.col("bytes") > LINE_BYTES_MAX, "gigantic")
        .when(~F.is_valid_utf8(text), "not UTF-8")
        .when(text.startswith("{") & ~(text.endswith("}") | text.endswith("}\r")), "truncated")
        .when(~text.startswith("{") | line.isNull() | several, "not JSON")
        .when(corrupt & line["t"].isNull() & line["kind"].isNull(), "not JSON")
        .when(line["v"] != LOG_VERSION, "unknown version")
        .when(corrupt, "wrong type")
        .when(reduce(Column.__or__, missing), "missing field")
    )
