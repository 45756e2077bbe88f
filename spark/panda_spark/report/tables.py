"""Decides which tables a report has, their columns and how a cell reads and sorts; draws no figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from panda_spark.report.data import Row, Rows, RunData, count, number, rows_max, text
from panda_spark.report.sentences import named
from panda_spark.report.words import plain, seconds, share, short, size

TEXT_MAX = 300  # characters of a cell; longer ones are cut, for a line of a log has no limit


@dataclass(frozen=True, slots=True)
class Cell:
    shown: str
    value: float | None = None  # what a number sorts by and what goes into CSV

    @property
    def numeric(self) -> bool:
        return self.value is not None


Read = Callable[[Row, str], Cell]


def words(row: Row, column: str) -> Cell:
    return Cell(short(text(row, column), TEXT_MAX))


def _measured(show: Callable[[float | None], str]) -> Read:
    def read(row: Row, column: str) -> Cell:
        value = number(row, column)
        return Cell(show(value), value)

    return read


time = _measured(seconds)
amount = _measured(plain)
octets = _measured(size)
part = _measured(share)


def yes(row: Row, column: str) -> Cell:
    value = row.get(column)
    return Cell("" if value is None else "yes" if value is True else "no")


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    name: str
    read: Read = words


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    labels: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    open: bool = False
    numeric: Sequence[bool] = field(default=())  # by column: stands at the right

    @property
    def csv_name(self) -> str:
        return f"{self.name}.csv"


def table(
    name: str, title: str, columns: Sequence[Column], rows: Rows, note: str = "", *, open_: bool = False
) -> Table:
    """A table without the columns in which no row has anything."""
    cells = [[column.read(row, column.name) for column in columns] for row in rows]
    used = [place for place in range(len(columns)) if any(row[place].shown not in {"", "–"} for row in cells)]
    return Table(
        name,
        title,
        [columns[place].label for place in used],
        [[row[place] for place in used] for row in cells],
        note,
        open_,
        [any(row[place].numeric for row in cells) for place in used],
    )


LATENCY = (
    Column("by", "by"),
    Column("of", "key"),
    Column("deliveries", "count", amount),
    Column("mean", "mean_s", time),
    Column("p50", "p50_s", time),
    Column("p95", "p95_s", time),
    Column("p99", "p99_s", time),
    Column("longest", "max_s", time),
    Column("clocks ±", "error_s", time),
)
DELIVERIES = (
    Column("verdict", "verdict"),
    Column("publication", "publication"),
    Column("class", "class"),
    Column("publisher", "publisher"),
    Column("subscriber", "subscriber"),
    Column("subscription", "subscription"),
    Column("published", "published_s", time),
    Column("latency", "latency_s", time),
    Column("times", "times", amount),
    Column("hops", "hops", amount),
)
FAULTS = (
    Column("fault", "what"),
    Column("from", "from_s", time),
    Column("until", "until_s", time),
    Column("silence", "gap_s", time),
    Column("recovered after", "recover_s", time),
    Column("published", "published", amount),
    Column("delivered", "delivered", amount),
    Column("late", "late", amount),
    Column("lost", "lost", amount),
    Column("p50 before", "p50_before_s", time),
    Column("p50 during", "p50_during_s", time),
)
LOAD = (
    Column("broker", "broker"),
    Column("host", "host"),
    Column("share", "share", part),
    Column("publications", "publications", amount),
    Column("unwanted", "unwanted", amount),
    Column("records in", "records_in", amount),
    Column("out", "records_out", amount),
    Column("bytes in", "bytes_in", octets),
    Column("bytes out", "bytes_out", octets),
    Column("queueing, ms", "queueing_ms", amount),
    Column("matching, µs", "matching_us", amount),
    Column("subscriptions", "subscriptions_max", amount),
    Column("advertisements", "advertisements_max", amount),
    Column("memory", "memory_max_bytes", octets),
    Column("CPU", "cpu_s", time),
)
SPREAD = (
    Column("of", "metric"),
    Column("brokers", "brokers", amount),
    Column("mean", "mean", amount),
    Column("least", "min", amount),
    Column("most", "max", amount),
    Column("most over mean", "peak", amount),
    Column("deviation over mean", "cv", amount),
    Column("Gini", "gini", amount),
)
SCHEDULE = (
    Column("line", "line", amount),
    Column("action", "action"),
    Column("process", "process"),
    Column("host", "host"),
    Column("text", "text"),
    Column("planned", "planned_s", time),
    Column("actual", "actual_s", time),
    Column("late", "late_s", time),
    Column("clock ±", "error_s", time),
    Column("error", "error"),
)
PROCESSES = (
    Column("process", "process"),
    Column("role", "role"),
    Column("host", "host"),
    Column("life", "life", amount),
    Column("started", "started_s", time),
    Column("ready", "ready_s", time),
    Column("ended", "ended_s", time),
    Column("code", "code", amount),
    Column("signal", "signal"),
    Column("expected", "expected", yes),
    Column("log came home", "logged", yes),
)
LINKS = (
    Column("a", "a"),
    Column("b", "b"),
    Column("state", "state"),
    Column("from", "from_s", time),
    Column("until", "until_s", time),
    Column("reason", "reason"),
)
DETECTIONS = (
    Column("at", "at_s", time),
    Column("subscriber", "subscriber"),
    Column("subscription", "subscription"),
    Column("detection", "detection"),
    Column("events", "events", amount),
    Column("latency", "latency_s", time),
)
CLOCKS = (
    Column("host", "host"),
    Column("measurements", "measurements", amount),
    Column("first offset", "first_s", time),
    Column("last offset", "last_s", time),
    Column("error at most", "error_s", time),
)
QUARANTINE = (
    Column("file", "file"),
    Column("offset", "offset", amount),
    Column("bytes", "bytes", amount),
    Column("reason", "reason"),
    Column("text", "text"),
)
MISSING = (Column("what", "what"), Column("host", "host"), Column("process", "process"))
MARKS = (Column("at", "at_s", time), Column("text", "text"))


def run_tables(data: RunData) -> dict[str, Table]:
    """All tables of a run's report that have rows, by name."""
    latency = [row for by in ("class", "subscriber", "publisher", "broker") for row in data.latency(by)]
    faults = [{**row, "what": named(row)} for row in data.rows("faults")]
    downs = [row for row in data.rows("links") if text(row, "state") == "down"]
    late = sorted(data.rows("schedule"), key=lambda row: -abs(number(row, "late_s") or 0.0))[:200]
    late.sort(key=lambda row: not text(row, "error"))
    wanted = (
        table("latency", "Latency by class, subscriber, publisher and broker", LATENCY, latency),
        table(
            "deliveries",
            "The worst cases",
            DELIVERIES,
            data.rows("deliveries"),
            _cut(data, "deliveries"),
            open_=True,
        ),
        verdict_table(data),
        table("faults", "What each fault did", FAULTS, faults, _cut(data, "faults")),
        table("load", "Load of each broker", LOAD, data.rows("load"), _cut(data, "load")),
        table("spread", "How even the load was", SPREAD, data.rows("spread"), open_=True),
        table("schedule", "Steps of the schedule, those with errors and the latest first", SCHEDULE, late),
        table("processes", "Processes", PROCESSES, data.rows("processes"), _cut(data, "processes")),
        table("links", "Links that were down", LINKS, downs, _cut(data, "links")),
        table("marks", "Marks", MARKS, data.rows("marks"), _cut(data, "marks")),
        table(
            "detections",
            "Composite detections",
            DETECTIONS,
            data.rows("detections"),
            _cut(data, "detections"),
        ),
        table("clocks", "Clocks", CLOCKS, clock_rows(data)),
        table(
            "quarantine", "Lines in quarantine", QUARANTINE, data.rows("quarantine"), _cut(data, "quarantine")
        ),
        table("missing", "What did not come home", MISSING, data.rows("missing"), open_=True),
    )
    return {each.name: each for each in wanted if each.rows}


def _cut(data: RunData, name: str) -> str:
    shown = len(data.rows(name))
    return f"The first {shown}; there may be more in the table {name}." if shown >= rows_max(name) else ""


def verdict_table(data: RunData) -> Table:
    """A row for each subscriber and class, a column for each verdict that occurs."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in data.rows("verdicts"):
        verdict = short(text(row, "verdict"), 20)
        pair = found.setdefault((text(row, "subscriber"), text(row, "class")), {})
        pair[verdict] = pair.get(verdict, 0) + count(row, "count")
    verdicts = sorted({verdict for each in found.values() for verdict in each})
    columns = [Column("subscriber", "subscriber"), Column("class", "class")]
    columns += [Column(verdict, f"verdict {verdict}", amount) for verdict in verdicts]
    rows: list[Row] = [
        {
            "subscriber": subscriber,
            "class": class_,
            **{f"verdict {verdict}": amounts.get(verdict, 0) for verdict in verdicts},
        }
        for (subscriber, class_), amounts in sorted(found.items())
    ]
    return table("verdicts", "Verdicts by subscriber and class", columns, rows)


def clock_rows(data: RunData) -> list[Row]:
    hosts: dict[str, list[Row]] = {}
    for row in data.rows("clocks"):
        hosts.setdefault(text(row, "host"), []).append(row)
    return [
        {
            "host": host,
            "measurements": len(rows),
            "first_s": number(rows[0], "offset_s"),
            "last_s": number(rows[-1], "offset_s"),
            "error_s": max((number(row, "error_s") or 0.0 for row in rows), default=None),
        }
        for host, rows in sorted(hosts.items())
    ]


@dataclass(frozen=True, slots=True)
class Entry:
    """A part of the provenance: a line of text, a block of it, or a table."""

    title: str
    line: str = ""
    block: str = ""
    table: Table | None = None


def provenance(given: Mapping[str, object]) -> list[Entry]:
    """Whatever the caller knows, by its shape: texts, pairs and rows."""
    return [
        _entry(str(key).replace("_", " "), f"provenance-{place}", given[key])
        for place, key in enumerate(given)
    ]


def _entry(title: str, name: str, value: object) -> Entry:
    if isinstance(value, Mapping):
        pairs: list[Row] = [{"name": str(key), "value": _flat(value[key])} for key in value]
        shown = table(name, title, (Column("", "name"), Column("", "value")), pairs)
        return Entry(title, table=shown)
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, Mapping) for each in value):
        keys = list(dict.fromkeys(str(key) for each in value for key in each))
        rows: list[Row] = [{str(key): each[key] for key in each} for each in value]
        columns = [Column(key.removesuffix("_s").replace("_", " "), key, _any) for key in keys]
        return Entry(title, table=table(name, title, columns, rows))
    if isinstance(value, str) and "\n" in value.strip():
        return Entry(title, block=value)
    return Entry(title, line=short(_flat(value), 2_000))


def _any(row: Row, column: str) -> Cell:
    value = row.get(column)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = number(row, column)
        return time(row, column) if column.endswith("_s") else Cell(plain(found), found)
    return Cell(short(_flat(value), 2_000))


def _flat(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(str(each) for each in value)
    return "" if value is None else str(value)
