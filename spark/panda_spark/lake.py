"""Decides which files are the tables: what a commit says, and nothing else.

    LAKE/commits/TIME-GENERATION.json      what is known of some runs, all or nothing
    LAKE/TABLE/generation=G/run=R/…        Parquet that a commit may name

Everything is written under a generation of its own. A commit is one small file that says for each run of its
which generation holds its tables, which its lines, and of which files these are; for every run the newest
commit counts. So a writer that is killed leaves a generation that nobody reads, two writers do not meet, and
a run that was read again replaces itself at once.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from panda_spark.refusal import Refused
from panda_spark.schema import LINES
from panda_spark.store import Store, joined, literal, store_of
from panda_spark.tables import LINES_TABLE, STORED, VIEWS

COMMITS: Final = "commits"
FORMAT: Final = 2
SUPERSEDED_S: Final = 600.0  # how long a table that is replaced may still be read
ABANDONED_S: Final = 86_400.0  # after which a generation that was never committed is somebody's who died
GENERATION: Final = "generation"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: when it is other than this, it has to be read again."""

    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class RunState:
    generation: str  # of its tables
    lines: str  # the generation of its lines
    sources: Mapping[str, Source]  # by path relative to the run's folder
    options: Mapping[str, float] = field(default_factory=dict)
    folder: str = ""


class Lake:
    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.path = path
        self._store: Store = store_of(spark, path)

    # What is known

    def runs(self) -> dict[str, RunState]:
        """Every run that has tables, by name."""
        found: dict[str, RunState] = {}
        for said in self._commits():
            for run, state in said.items():
                if state is None:
                    found.pop(run, None)
                else:
                    found[run] = state
        return found

    def _commits(self) -> Iterable[dict[str, RunState | None]]:
        """What each commit says of its runs, oldest first."""
        if COMMITS not in self._store.folders(self.path):
            return
        for name, text in sorted(self._store.texts(joined(self.path, COMMITS)).items()):
            try:
                said = json.loads(text)
                if said["format"] != FORMAT:
                    raise ValueError(f"format {said['format']}")
                states = {run: state and _state(state) for run, state in said["runs"].items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise Refused(
                    f"{self.path} has a commit that cannot be read, {name}: {error}",
                    "remove the folder and analyse the runs again",
                ) from None
            yield states

    # Writing

    def new_generation(self) -> str:
        return f"{time.time_ns():020d}-{secrets.token_hex(4)}"

    def place(self, table: str, generation: str) -> str:
        return joined(self.path, table, f"{GENERATION}={generation}")

    def commit(self, generation: str, runs: Mapping[str, RunState | None]) -> None:
        """From here on these runs are so; None forgets one."""
        said = {run: None if state is None else asdict(state) for run, state in runs.items()}
        text = json.dumps({"format": FORMAT, "runs": said}, sort_keys=True)
        self._store.write(joined(self.path, COMMITS), f"{time.time_ns():020d}-{generation[-8:]}.json", text)

    def forget(self, runs: Iterable[str]) -> None:
        self.commit(self.new_generation(), dict.fromkeys(runs))

    # Reading

    def table(self, name: str, schema: StructType, runs: Mapping[str, RunState]) -> DataFrame:
        """A table of these runs."""
        if name not in VIEWS:
            return self._parts(name, schema, {run: state.generation for run, state in runs.items()})
        as_kept = VIEWS[name]
        good = self.lines(runs).where("reason_bad IS NULL")
        return good.select(*(F.col(as_kept.get(each, each)).alias(each) for each in schema.names))

    def lines(self, runs: Mapping[str, RunState]) -> DataFrame:
        """Every line of these runs, good and bad."""
        return self._parts(LINES_TABLE, LINES, {run: state.lines for run, state in runs.items()})

    def lines_of(self, runs: Mapping[str, RunState], files: Mapping[str, Iterable[str]]) -> DataFrame:
        """The lines of some files of each run."""
        relative = F.regexp_extract("file", r"/(hosts/[^/]+/processes/[^/]+/[^/]+)$", 1)
        wanted = [F.struct(F.lit(run), F.lit(name)) for run, names in files.items() for name in names]
        return self.lines(runs).where(F.struct("run", relative).isin(*wanted))

    def _parts(self, name: str, schema: StructType, generations: Mapping[str, str]) -> DataFrame:
        """Rows of a table by run and generation; Spark looks into no other folders."""
        full = StructType([*schema.fields, StructField(GENERATION, StringType())])
        runs: dict[str, list[str]] = {}
        for run, generation in generations.items():
            runs.setdefault(generation, []).append(run)
        if not runs:
            return self._spark.createDataFrame([], full)
        root = joined(self.path, name)
        places = [literal(self.place(name, generation)) for generation in runs]
        read = self._spark.read.schema(full).option("basePath", root).parquet(*places)
        wanted = [(F.col(GENERATION) == each) & F.col("run").isin(*names) for each, names in runs.items()]
        return read.where(reduce(Column.__or__, wanted)).drop(GENERATION)

    # Tidying

    def tidy(self, now: float) -> None:
        """Remove what no commit names any more, and what a writer that died has left."""
        live, committed = _named(self.runs()), [_named(said) for said in self._commits()]
        for table in STORED:
            for folder in self._store.folders(joined(self.path, table)):
                generation = folder.removeprefix(f"{GENERATION}=")
                age_s = now - int(generation.split("-")[0]) / 1e9
                superseded = any((table, generation) in each for each in committed)
                if (table, generation) not in live and age_s > (SUPERSEDED_S if superseded else ABANDONED_S):
                    self._store.remove(joined(self.path, table, folder))


def _named(runs: Mapping[str, RunState | None]) -> set[tuple[str, str]]:
    """The tables and generations that these states name."""
    return {
        (table, state.lines if table == LINES_TABLE else state.generation)
        for state in runs.values()
        if state is not None
        for table in STORED
    }


def _state(said: Mapping[str, Any]) -> RunState:
    sources = {name: Source(**source) for name, source in said["sources"].items()}
    return RunState(said["generation"], said["lines"], sources, said["options"], said["folder"])
