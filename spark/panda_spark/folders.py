"""Decides what the folders of runs say beside their logs: plans, journals, clocks; all of it small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from panda_spark.schema import AGENT_EVENT, CLOCK, JOURNAL, PLAN, TEXT, VERSIONS, struct
from panda_spark.store import Listed, file_path, literal

TOP_PATH: Final = r"/([^/]+)/[^/]+$"
AGENT_PATH: Final = r"/([^/]+)/hosts/([^/]+)/journal\.jsonl(?:\.gz)?$"


class RunFolders:
    """What lies in the folders of some runs, by the names of the files."""

    def __init__(self, spark: SparkSession, files: Sequence[Listed]) -> None:
        self._spark = spark
        self._files = files

    def plans(self) -> DataFrame:
        """One row for each run that has a plan."""
        read = self._documents("plan.json", TOP_PATH)
        return read.select("run", F.from_json("text", PLAN).alias("plan")).select("run", "plan.*")

    def versions(self) -> DataFrame:
        read = self._documents("versions.json", TOP_PATH)
        return read.select("run", F.from_json("text", VERSIONS).alias("read")).select("run", "read.*")

    def configurations(self) -> DataFrame:
        """Equal for runs of the same lines."""
        read = self._documents("lines.txt", TOP_PATH)
        return read.select("run", F.substring(F.sha2("text", 256), 1, 12).alias("config"))

    def clocks(self) -> DataFrame:
        return self._records("clocks.jsonl", TOP_PATH, CLOCK).dropna().dropDuplicates(["run", "host", "at"])

    def controllers(self) -> DataFrame:
        """What controllers wrote down."""
        return self._records("journal.jsonl", TOP_PATH, JOURNAL).where("kind IS NOT NULL")

    def agents(self, plans: DataFrame) -> DataFrame:
        """Every event of every agent: from its own journal, and from what controllers heard of it.

        The folder of a host is named like the host, or by a safe name made of it.
        """
        hosts = plans.select("run", F.explode("hosts.name").alias("host"))
        known = hosts.select("run", "host", host_folder(F.col("host")).alias("folder"))
        own = self._records("journal.jsonl", AGENT_PATH, AGENT_EVENT, of_hosts=True)
        named = own.join(F.broadcast(known), ["run", "folder"], "left")
        told = self.controllers().where("kind = 'agent'").select("run", "host", "event.*")
        both = named.withColumn("host", F.coalesce("host", "folder")).select(*told.columns).union(told)
        return both.where("seq IS NOT NULL AND kind IS NOT NULL").dropDuplicates(["run", "host", "seq"])

    # Inside

    def _named(self, name: str, *, of_hosts: bool = False) -> list[str]:
        return [
            file.path
            for file in self._files
            if file.relative.removesuffix(".gz").rsplit("/", 1)[-1] == name
            and file.relative.startswith("hosts/") == of_hosts
        ]

    def _documents(self, name: str, pattern: str) -> DataFrame:
        files = self._named(name)
        if not files:
            return self._spark.createDataFrame([], struct(run=TEXT, text=TEXT))
        read = self._spark.read.text([literal(file) for file in files], wholetext=True)
        return read.select(
            F.regexp_extract(file_path(), pattern, 1).alias("run"), F.col("value").alias("text")
        )

    def _records(self, name: str, pattern: str, fields: StructType, *, of_hosts: bool = False) -> DataFrame:
        """The lines of these files that can be read; a killed writer leaves a last one that cannot."""

        files = self._named(name, of_hosts=of_hosts)
        if not files:
            return self._spark.createDataFrame(
                [], StructType([*struct(run=TEXT, folder=TEXT).fields, *fields])
            )
        read = self._spark.read.text([literal(file) for file in files]).select(
            "value", file_path().alias("file")
        )
        folder = F.regexp_extract("file", pattern, 2) if of_hosts else F.lit("")
        opened = read.select(
            F.regexp_extract("file", pattern, 1).alias("run"),
            folder.alias("folder"),
            F.from_json("value", fields).alias("read"),
        )
        return opened.select("run", "folder", "read.*")


def host_folder(host: Column) -> Column:
    """The name of a host's folder, as the run directory has it."""
    safe = F.regexp_replace(F.regexp_replace(host, "[^A-Za-z0-9_.-]+", "-"), r"^[.-]+|[.-]+$", "")
    short = F.substring(F.lower(F.hex(host)), 1, 16)
    return F.when(safe == host, host).otherwise(F.concat(safe, F.lit("-"), short))
