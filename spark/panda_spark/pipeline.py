"""Decides in which order folders of runs become tables: what is new is read, what it changes is remade."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from panda_spark import ingest, silver
from panda_spark.clocks import Offsets, ends, measurements, slices
from panda_spark.folders import RunFolders, host_folder
from panda_spark.gold import brokers, course, delivery, faults, figures
from panda_spark.gold.summary import summary
from panda_spark.lake import Lake, RunState, Source
from panda_spark.refusal import Refused
from panda_spark.schema import WHOLE
from panda_spark.session import WORTH_COMPILING_BYTES, compile_queries, fit
from panda_spark.store import Listed, literal, store_of, whole
from panda_spark.tables import LARGE, LINES_TABLE, STORED, TABLES

ASIDE: Final = 2  # tables that are made beside those on which others wait
LOG: Final = re.compile(r"hosts/([^/]+)/processes/([^/]+)/[^/]+\.jsonl(\.gz|\.bz2)?")
BESIDE: Final = re.compile(
    r"(plan\.json|versions\.json|lines\.txt|clocks\.jsonl|journal\.jsonl|hosts/[^/]+/journal\.jsonl)(\.gz)?"
)
STAGES: Final = {
    LINES_TABLE: "reading logs",
    "quarantine": "telling what happened",
    "deliveries": "judging deliveries",
    "latency": "making figures",
}
RUN_HINT: Final = "a run is a folder that panda run or panda deploy made, such as runs/TIME-NAME"
Tell = Callable[[str, int, int], None]  # stage, done, of how many


@dataclass(frozen=True, slots=True)
class Options:
    late_s: float = 1.0  # a delivery that takes longer is late
    settle_s: float = 1.0  # around its beginning and end a subscription may get a publication or not

    def data(self) -> dict[str, float]:
        return {"late_s": self.late_s, "settle_s": self.settle_s}


@dataclass(slots=True)
class Done:
    """What an analysis did."""

    runs: dict[str, RunState]  # that were asked for
    new: set[str] = field(default_factory=set)  # whose tables were made
    files_read: int = 0
    took_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFiles:
    run: str
    folder: str
    files: Mapping[str, Listed]  # by relative path

    @property
    def logs(self) -> dict[str, Listed]:
        return {name: file for name, file in self.files.items() if LOG.fullmatch(name)}


def find(spark: SparkSession, folders: Iterable[str]) -> dict[str, RunFiles]:
    """The runs in these folders, by name."""
    found: dict[str, RunFiles] = {}
    for folder in folders:
        name = whole(folder).rsplit("/", 1)[-1]
        try:
            listed = store_of(spark, folder).files(folder)
        except OSError as error:
            raise Refused(f"{folder} cannot be read: {error.strerror}", RUN_HINT) from None
        files = {
            each.relative: each
            for each in listed
            if LOG.fullmatch(each.relative) or BESIDE.fullmatch(each.relative)
        }
        if "plan.json" not in files:
            raise Refused(f"{folder} is no folder of a run: it has no plan.json", RUN_HINT)
        if name in found and whole(found[name].folder) != whole(folder):
            raise Refused(
                f"two folders are called {name}: {found[name].folder} and {folder}",
                "a run is known by the name of its folder: rename one",
            )
        found[name] = RunFiles(name, folder, files)
    return found


def analyze(spark: SparkSession, lake: Lake, folders: Sequence[str], options: Options, tell: Tell) -> Done:
    """Bring the tables up to date with the folders; what has not changed is not read again."""
    tell("looking for what is new", 0, 0)
    begun = time.monotonic()
    found, known = find(spark, folders), lake.runs()
    generation = lake.new_generation()
    todo: dict[str, Todo] = {}
    for run, files in found.items():
        wanted = _todo(files, known.get(run), options, generation)
        if wanted is not None:
            todo[run] = wanted
    states = {run: each.state for run, each in todo.items()}
    read = sum(len(each.fresh) for each in todo.values())
    done = Done({run: states.get(run) or known[run] for run in found}, set(states), read)
    done.took_s["looking"] = time.monotonic() - begun
    if not states:
        return done
    input_bytes = sum(file.size for run in states for file in found[run].logs.values())
    fit(spark, input_bytes)
    with _Maker(spark, lake, generation, input_bytes, tell, done.took_s) as maker:
        maker.make({run: found[run] for run in states}, todo, options)
    lake.commit(generation, states)
    lake.tidy(time.time())
    return done


@dataclass(frozen=True, slots=True)
class Todo:
    """What has to be done for a run, and how it will be known after that."""

    state: RunState
    fresh: Sequence[Listed]  # logs to be read
    kept: Sequence[str]  # logs whose lines are known
    before: RunState | None  # where those are

    @property
    def new_lines(self) -> bool:
        """Whether its lines are written: read, or corrected anew by clocks that have become known."""
        return self.state.lines == self.state.generation


def _todo(files: RunFiles, before: RunState | None, options: Options, generation: str) -> Todo | None:
    if before and not before.sources.keys() <= files.files.keys():
        before = None  # the lines of a file that is gone stand among those of others
    sources = {name: Source(file.size, file.changed) for name, file in files.files.items()}
    known = before.sources if before else {}
    same = {name for name, source in sources.items() if known.get(name) == source}
    if before and len(same) == len(sources) and before.options == options.data():
        return None
    lines = before.lines if before and len(same) == len(sources) else generation
    state = RunState(generation, lines, sources, options.data(), files.folder)
    fresh = [file for name, file in files.logs.items() if name not in same]
    return Todo(state, fresh, [name for name in files.logs if name in same], before)


class _Maker:
    """Makes the tables of some runs, in an order in which each finds what it needs."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        generation: str,
        input_bytes: int,
        tell: Tell,
        took_s: dict[str, float],
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._generation = generation
        self._input_bytes = input_bytes
        self._tell = tell
        self._took_s = took_s
        self._made = 0
        self._doing = ""
        self._aside = ThreadPoolExecutor(ASIDE)
        self._pending: dict[str, Future[None]] = {}
        self._kept: list[DataFrame] = []

    def __enter__(self) -> _Maker:
        return self

    def __exit__(self, *_: object) -> None:
        self._aside.shutdown(cancel_futures=True)
        for rows in self._kept:
            rows.unpersist()  # a server goes on after us

    def make(self, found: Mapping[str, RunFiles], todo: Mapping[str, Todo], options: Options) -> None:
        """What others wait for is written here, one after another, and the rest beside it."""
        logs = [
            (run, match[1], match[2])
            for run, files in found.items()
            for match in map(LOG.fullmatch, files.logs)
            if match
        ]
        beside = RunFolders(self._spark, [file for each in found.values() for file in each.files.values()])
        plans, clocks = self._keep(beside.plans()), self._keep(beside.clocks())
        measured = self._keep(measurements(clocks))
        known = Offsets(self._keep(slices(measured)), self._keep(ends(measured)))
        bronze = self._bronze(todo)
        starts = self._starts(self._keep(course.beginnings(plans, beside.controllers())), bronze, todo)
        if any(each.new_lines for each in todo.values()):
            if self._input_bytes >= WORTH_COMPILING_BYTES:
                compile_queries(self._spark, wanted=True)
            self._write(LINES_TABLE, silver.lines(bronze, known, silver.homes(plans), starts))
            fit(self._spark, self._input_bytes)
        states = {run: each.state for run, each in todo.items()}
        lines, events = self._lake.lines(states), self._lake.table("events", TABLES["events"], states)
        agents = self._keep(course.agent_events(beside.agents(plans), known))
        logged = course.logged(self._spark, logs)
        self._beside(
            {
                "runs": course.runs(plans, beside.versions(), beside.configurations(), events, starts),
                "schedule": course.schedule(plans, agents, starts),
                "traffic": brokers.traffic(events),
                "quarantine": ingest.quarantine(lines),
                "clocks": course.clocks(clocks, starts),
                "marks": course.marks(agents, starts),
                "links": course.links(events),
                "samples": brokers.samples(brokers.loads(events)),
                "detections": figures.detections(events, starts),
            }
        )
        self._write("processes", course.processes(plans, agents, logged, host_folder(F.col("host")), starts))
        processes = self._read("processes")
        published = self._keep(delivery.publish_lines(events))
        brokers_ = self._keep(delivery.first_brokers(events))
        self._write("subscriptions", delivery.subscriptions(events, brokers_, agents, processes, starts))
        self._beside(
            {
                "publications": delivery.publications(published, brokers_, processes, starts),
                "missing": course.missing(processes),
            }
        )
        subscriptions = self._read("subscriptions")
        expected = delivery.expected(published, subscriptions, options.settle_s)
        received = delivery.received(events)
        vague = not delivery.unaddressed(received).isEmpty()
        addressed = delivery.addressed(received, expected if vague else None, subscriptions)
        pairs = self._keep(delivery.pairs(expected, delivery.arrivals(addressed)))
        self._write(
            "deliveries",
            delivery.deliveries(pairs, published, subscriptions, processes, starts, options.late_s),
        )
        deliveries, runs = self._read("deliveries"), self._read("runs")
        spans = self._keep(faults.intervals(agents, self._read("schedule"), processes, runs))
        self._beside(
            {
                "load": brokers.load(brokers.loads(events), self._read("traffic"), processes),
                "throughput": figures.throughput(self._read("publications"), deliveries, runs),
                "latency": figures.latency(deliveries, runs),
                "histogram": figures.histogram(deliveries),
                "hops": figures.hops(deliveries),
                "verdicts": delivery.verdicts(deliveries),
            }
        )
        self._write("faults", faults.faults(spans, deliveries))
        self._write("spread", brokers.spread(self._read("load")))
        made = {name: self._read(name) for name in STORED if name not in (LINES_TABLE, "summary")}
        self._write("summary", summary(made))

    def _keep(self, rows: DataFrame) -> DataFrame:
        """In memory, for those that are asked for more than once."""
        self._kept.append(rows.persist())
        return rows

    def _bronze(self, todo: Mapping[str, Todo]) -> DataFrame:
        """Every line that has to be written: those of new files as they are read, the others as they were."""
        fresh = [file.path for each in todo.values() if each.new_lines for file in each.fresh]
        read = ingest.bronze(ingest.lines(self._spark, fresh)) if fresh else None
        kept = {run: each for run, each in todo.items() if each.new_lines and each.kept}
        if not kept:
            return read or self._spark.createDataFrame([], WHOLE)
        before = {run: each.before for run, each in kept.items() if each.before}
        known = silver.as_read(self._lake.lines_of(before, {run: each.kept for run, each in kept.items()}))
        return known if read is None else read.union(known)

    def _starts(self, begun: DataFrame, bronze: DataFrame, todo: Mapping[str, Todo]) -> DataFrame:
        """T0 of every run. Lines are looked through for those alone whose phase 2 never began."""
        waiting = [row["run"] for row in begun.where("go IS NULL").select("run").collect()]
        if not waiting:
            return self._keep(course.starts(begun, None))
        as_they_were = {run: each.state for run, each in todo.items() if not each.new_lines}
        times = bronze.select("run", F.col("line.t").alias("t"))
        if as_they_were:
            times = times.union(self._lake.lines(as_they_were).select("run", "t_raw"))
        return self._keep(course.starts(begun, times.where(F.col("run").isin(*waiting))))

    def _stage(self, table: str) -> str:
        """What is told of the work: a few words for many tables."""
        self._doing = STAGES.get(table, self._doing)
        return self._doing

    def _read(self, table: str) -> DataFrame:
        """A table, when it has been made."""
        if table in self._pending:
            self._pending.pop(table).result()
        return self._spark.read.schema(TABLES[table]).parquet(
            literal(self._lake.place(table, self._generation))
        )

    def _beside(self, tables: Mapping[str, DataFrame]) -> None:
        for name, rows in tables.items():
            self._pending[name] = self._aside.submit(self._write, name, rows)

    def _write(self, table: str, rows: DataFrame) -> None:
        self._tell(self._stage(table), self._made, len(STORED))
        begun = time.monotonic()
        schema = STORED[table]
        typed = rows.select(
            *(F.col(each.name).cast(each.dataType).alias(each.name) for each in schema.fields)
        )
        by = ("run", "kind") if table == LINES_TABLE else ("run",)
        shaped = typed if table in LARGE else typed.coalesce(1)
        shaped.write.partitionBy(*by).mode("error").parquet(self._lake.place(table, self._generation))
        self._made += 1
        self._took_s[table] = time.monotonic() - begun
