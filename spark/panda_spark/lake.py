"""Decides which files are the tables: what a commit says, and nothing else.

    LAKE/commits/TIME-GENERATION.json      what is known of some runs, all or nothing
    LAKE/TABLE/generation=G/run=R/…        Parquet that a commit may name

Everything is written under a generation of its own. A commit is one small file that says for each run of its
which generation holds its tables, and for each of its files which generation holds its lines; for every run
the newest commit counts. So a writer that is killed leaves a generation that nobody reads, two writers do not
meet, and a run that was read again replaces itself at once.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from panda_spark.refusal import Refused
from panda_spark.store import Store, joined, literal, store_of

COMMITS: Final = "commits"
FORMAT: Final = 1
SUPERSEDED_S: Final = 600.0  # how long a table that is replaced may still be read
ABANDONED_S: Final = 86_400.0  # after which a generation that was never committed is somebody's who died
GENERATION: Final = "generation"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: when it is other than this, it has to be read again."""

    size: int
    changed: float
    generation: str = ""  # that holds its lines; empty for a file that is no log


@dataclass(frozen=True, slots=True)
class RunState:
    generation: str  # of its tables
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
        generations: dict[str, list[str]] = {}
        for run, state in runs.items():
            generations.setdefault(state.generation, []).append(run)
        return self.parts(name, schema, generations)

    def lines(self, schema: StructType, runs: Mapping[str, RunState]) -> DataFrame:
        """The lines of the files of these runs, each from the generation that read it last."""
        generations: dict[str, list[str]] = {}
        stale = []
        for run, state in runs.items():
            held = {source.generation for source in state.sources.values()} - {""}
            for generation in held:
                generations.setdefault(generation, []).append(run)
            if len(held) > 1:
                stale.append(run)
        read = self.parts("bronze", schema, generations)
        if not stale:
            return read
        pairs = [
            F.struct(F.lit(run), F.lit(name), F.lit(source.generation))
            for run in stale
            for name, source in runs[run].sources.items()
            if source.generation
        ]
        relative = F.regexp_extract("file", r"/(hosts/[^/]+/processes/[^/]+/[^/]+)$", 1)
        mine = F.struct("run", relative, GENERATION)
        return read.where(~F.col("run").isin(*stale) | mine.isin(*pairs))

    def parts(self, name: str, schema: StructType, generations: Mapping[str, Sequence[str]]) -> DataFrame:
        """Rows of a table by generation and run; Spark opens no other files."""
        full = StructType(
            [
                *(each for each in schema.fields if each.name != GENERATION),
                StructField(GENERATION, StringType()),
            ]
        )
        if not generations or name not in self._store.folders(self.path):
            return self._spark.createDataFrame([], full)
        read = self._spark.read.schema(full).parquet(literal(joined(self.path, name)))
        wanted = [
            (F.col(GENERATION) == generation) & F.col("run").isin(*runs)
            for generation, runs in generations.items()
        ]
        return read.where(reduce(Column.__or__, wanted))

    # Tidying

    def tidy(self, tables: Iterable[str], now: float) -> None:
        """Remove what no commit names any more, and what a writer that died has left."""
        live: set[str] = set()
        for state in self.runs().values():
            live |= {state.generation, *(source.generation for source in state.sources.values())}
        committed = {
            generation
            for said in self._commits()
            for state in said.values()
            if state is not None
            for generation in (state.generation, *(each.generation for each in state.sources.values()))
        }
        for table in tables:
            for name in self._store.folders(joined(self.path, table)) if table else ():
                generation = name.removeprefix(f"{GENERATION}=")
                age_s = now - int(generation.split("-")[0]) / 1e9
                if generation not in live and age_s > (
                    SUPERSEDED_S if generation in committed else ABANDONED_S
                ):
                    self._store.remove(joined(self.path, table, name))


def _state(said: Mapping[str, Any]) -> RunState:
    sources = {name: Source(**source) for name, source in said["sources"].items()}
    return RunState(said["generation"], sources, said["options"], said["folder"])
