"""Decides in which order folders of runs become tables: what is new is read, what it changes is remade."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from panda_spark import ingest, silver
from panda_spark.folders import RunFolders, host_folder
from panda_spark.gold import brokers, course, delivery, faults, figures
from panda_spark.gold.summary import summary
from panda_spark.lake import Lake, RunState, Source
from panda_spark.refusal import Refused
from panda_spark.session import fit
from panda_spark.store import Listed, literal, store_of, whole
from panda_spark.tables import LARGE, TABLES

AT_ONCE: Final = 3  # tables that are made side by side
LOG: Final = re.compile(r"hosts/([^/]+)/processes/([^/]+)/[^/]+\.jsonl(\.gz|\.bz2)?")
BESIDE: Final = re.compile(
    r"(plan\.json|versions\.json|lines\.txt|clocks\.jsonl|journal\.jsonl|hosts/[^/]+/journal\.jsonl)(\.gz)?"
)
STAGES: Final = {
    "bronze": "reading logs",
    "events": "correcting clocks",
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
    states: dict[str, RunState] = {}
    to_read: list[Listed] = []
    for run, files in found.items():
        state, fresh = _state(files, known.get(run), options, generation)
        if state != known.get(run):
            states[run] = state
            to_read += fresh
    done = Done({run: states.get(run) or known[run] for run in found}, set(states), len(to_read))
    done.took_s["looking"] = time.monotonic() - begun
    if not states:
        return done
    fit(spark, sum(file.size for run in states for file in found[run].logs.values()))
    maker = _Maker(spark, lake, generation, tell, done.took_s)
    maker.make({run: found[run] for run in states}, states, to_read, options)
    lake.commit(generation, states)
    lake.tidy(TABLES, time.time())
    return done


def _state(
    files: RunFiles, before: RunState | None, options: Options, generation: str
) -> tuple[RunState, list[Listed]]:
    """How the run will be known, and which of its logs have to be read for that."""
    sources: dict[str, Source] = {}
    fresh = []
    if before and not before.sources.keys() <= files.files.keys():
        before = None  # the lines of a file that is gone stand among those of others
    for name, file in files.files.items():
        old = before.sources.get(name) if before else None
        if old and (old.size, old.changed) == (file.size, file.changed):
            sources[name] = old
            continue
        is_log = name in files.logs
        sources[name] = Source(file.size, file.changed, generation if is_log else "")
        if is_log:
            fresh.append(file)
    unchanged = before is not None and before.sources == sources and before.options == options.data()
    if before is not None and unchanged:
        return before, []
    return RunState(generation, sources, options.data(), files.folder), fresh


class _Maker:
    """Makes the tables of some runs, in an order in which each finds what it needs."""

    def __init__(
        self, spark: SparkSession, lake: Lake, generation: str, tell: Tell, took_s: dict[str, float]
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._generation = generation
        self._tell = tell
        self._took_s = took_s
        self._made = 0
        self._doing = ""

    def make(
        self,
        found: Mapping[str, RunFiles],
        states: Mapping[str, RunState],
        to_read: Sequence[Listed],
        options: Options,
    ) -> None:
        logs = [
            (run, match[1], match[2])
            for run, files in found.items()
            for match in map(LOG.fullmatch, files.logs)
            if match
        ]
        beside = RunFolders(self._spark, [file for each in found.values() for file in each.files.values()])
        if to_read:
            lines = ingest.lines(self._spark, [file.path for file in to_read])
            self._write("bronze", ingest.bronze(lines))
        bronze = self._lake.lines(TABLES["bronze"], states)
        plans, clocks = beside.plans().persist(), beside.clocks().persist()
        starts = course.starts(plans, beside.controllers(), bronze).persist()
        self._write("events", silver.events(bronze, clocks, silver.homes(plans), starts))
        events = self._read("events")
        agents = course.agent_events(beside.agents(plans), clocks).persist()
        logged = course.logged(self._spark, logs)
        self._write_all(
            {
                "quarantine": ingest.quarantine(bronze),
                "runs": course.runs(plans, beside.versions(), beside.configurations(), events, starts),
                "processes": course.processes(plans, agents, logged, host_folder(F.col("host")), starts),
                "clocks": course.clocks(clocks, starts),
                "schedule": course.schedule(plans, agents, starts),
                "marks": course.marks(agents, starts),
                "links": course.links(events),
                "traffic": brokers.traffic(events),
                "samples": brokers.samples(brokers.loads(events)),
                "detections": figures.detections(events, starts),
            }
        )
        runs, processes, schedule = (self._read(name) for name in ("runs", "processes", "schedule"))
        starts = runs.select("run", "t0")
        published = delivery.publish_lines(events).persist()
        brokers_ = delivery.first_brokers(events).persist()
        self._write_all(
            {
                "subscriptions": delivery.subscriptions(events, brokers_, agents, processes, starts),
                "publications": delivery.publications(published, brokers_, processes, starts),
                "load": brokers.load(brokers.loads(events), self._read("traffic"), processes),
                "missing": course.missing(processes),
            }
        )
        subscriptions = self._read("subscriptions")
        expected = delivery.expected(published, subscriptions, options.settle_s)
        received = delivery.received(events)
        vague = not delivery.unaddressed(received).isEmpty()
        addressed = delivery.addressed(received, expected if vague else None, subscriptions)
        pairs = delivery.pairs(expected, delivery.arrivals(addressed)).persist()
        self._write(
            "deliveries",
            delivery.deliveries(pairs, published, subscriptions, processes, starts, options.late_s),
        )
        pairs.unpersist()
        published.unpersist()
        deliveries = self._read("deliveries")
        spans = faults.intervals(agents, schedule, processes, runs).persist()
        self._write_all(
            {
                "latency": figures.latency(deliveries, runs),
                "histogram": figures.histogram(deliveries),
                "hops": figures.hops(deliveries),
                "throughput": figures.throughput(self._read("publications"), deliveries, runs),
                "verdicts": delivery.verdicts(deliveries),
                "faults": faults.faults(spans, deliveries),
                "spread": brokers.spread(self._read("load")),
            }
        )
        made = {name: self._read(name) for name in TABLES if name not in ("bronze", "summary")}
        self._write("summary", summary(made))

    def _stage(self, table: str) -> str:
        """What is told of the work: a few words for many tables."""
        self._doing = STAGES.get(table, self._doing)
        return self._doing

    def _read(self, table: str) -> DataFrame:
        return self._spark.read.schema(TABLES[table]).parquet(
            literal(self._lake.place(table, self._generation))
        )

    def _write_all(self, tables: Mapping[str, DataFrame]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for written in [pool.submit(self._write, name, rows) for name, rows in tables.items()]:
                written.result()

    def _write(self, table: str, rows: DataFrame) -> None:
        self._tell(self._stage(table), self._made, len(TABLES))
        begun = time.monotonic()
        schema = TABLES[table]
        typed = rows.select(
            *(F.col(each.name).cast(each.dataType).alias(each.name) for each in schema.fields)
        )
        by = ("run", "kind") if table == "events" else ("run",)
        shaped = typed if table in LARGE else typed.coalesce(1)
        shaped.write.partitionBy(*by).mode("error").parquet(self._lake.place(table, self._generation))
        self._made += 1
        self._took_s[table] = time.monotonic() - begun
