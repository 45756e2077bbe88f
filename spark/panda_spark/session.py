"""Decides how a Spark session is opened: on this machine, on a cluster, or at a Connect server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

LOCAL: Final = "local[*]"
PARTITION_BYTES: Final = 64 << 20  # of input, for a task of a shuffle
PARTITIONS_MIN, PARTITIONS_MAX = 2, 400
# Of input for which planning queries anew from stage to stage takes longer than running them, and compiling
# them too, unless a server that stays has done it before: measured, 100,000 events take 29 s of CPU without
# and 47 s with both.
SMALL_BYTES: Final = 64 << 20
WORTH_COMPILING_BYTES: Final = 4 << 20  # of lines, each of which goes through eighty columns

# Of every session, wherever it runs; all of them can be set while it lives.
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # What a log says is not to be trusted: a number out of bounds becomes null, not the end of the analysis.
    "spark.sql.ansi.enabled": "false",
    # Deriving filters from filters takes longer than all of a small run, and finds nothing in ours.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    # What one subscription gets from one publisher stays together: sorted, compared and counted in one place.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": str(32 << 20),
    # One parse of a line for all of its fields, instead of one for each.
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    # Files of many kinds are written side by side instead of sorting everything by kind first.
    "spark.sql.maxConcurrentOutputFileWriters": "100",
    "spark.sql.parquet.compression.codec": "zstd",
    # A line has more fields than Spark would compile, and far more lines come than queries are made.
    "spark.sql.codegen.maxFields": "1000",
    # Logs are many and of very different sizes; tasks should not be.
    "spark.sql.files.openCostInBytes": str(256 << 10),
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
STATIC: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.extraJavaOptions": "-XX:-DontCompileHugeMethods",
    "spark.executor.extraJavaOptions": "-XX:-DontCompileHugeMethods",
}
# A Java that ends before thorough compilation and concurrent collection would pay.
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True, slots=True)
class Place:
    """Where Spark runs; a remote one may also come by SPARK_REMOTE, where no list of processes shows it."""

    master: str = ""
    remote: str = ""
    memory: str = ""
    py_files: str = ""
    quick: bool = False  # for one small analysis on this machine
    shared: str = ""  # a session of the remote one that others use as well, one after another


def open_session(place: Place) -> SparkSession:
    remote = place.remote or ("" if place.master else os.environ.get("SPARK_REMOTE", ""))
    builder = SparkSession.builder.appName("panda")
    if remote:
        session = builder.remote(_joining(remote, place.shared)).getOrCreate()
    else:
        os.environ.pop("SPARK_REMOTE", None)
        master = place.master or LOCAL
        settings = {**STATIC, "spark.driver.memory": place.memory or default_memory()}
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            settings["spark.driver.host"] = "127.0.0.1"
            if place.quick:
                settings["spark.driver.extraJavaOptions"] += f" {QUICK}"
        if place.py_files:
            settings["spark.submit.pyFiles"] = place.py_files
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.master(master).getOrCreate()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


def _joining(remote: str, session: str) -> str:
    """The address of a server together with the session to be used there."""
    if not session:
        return remote
    return f"{remote}{';' if '/;' in remote else '/;'}session_id={session};user_id=panda"


def fit(session: SparkSession, input_bytes: int) -> None:
    """As many tasks as the input is worth: a small run should not pay for hundreds of empty ones."""
    wanted = max(PARTITIONS_MIN, min(PARTITIONS_MAX, input_bytes // PARTITION_BYTES))
    small = input_bytes < SMALL_BYTES
    session.conf.set("spark.sql.shuffle.partitions", str(wanted))
    session.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    compile_queries(session, wanted=not small or is_remote())


def compile_queries(session: SparkSession, *, wanted: bool) -> None:
    session.conf.set("spark.sql.codegen.wholeStage", str(wanted).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if wanted else "NO_CODEGEN")


def default_memory() -> str:
    """A third of the machine's, between 1 and 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1024, min(8192, total // 3 >> 20))}m"
