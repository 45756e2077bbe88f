"""Decides which rows a report is made of and how a cell is read; knows no Spark and writes nothing.

Rows come from logs, and logs are not trusted: a cell may be missing, null, NaN or of another type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Row = Mapping[str, object]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a table that the report shows: at most so many, in this order. All texts are SQL."""

    table: str
    rows_max: int
    order: tuple[str, ...]  # columns or expressions; those that end in DESC have what is null last
    where: str = "true"
    per: str = ""  # so many for each value of this column, of which there are few
    evenly: bool = False  # of too many rows take every n-th, not the first


# Everything of one table that is wanted comes into RunData.tables[table], one slice after the other.
WANTED: tuple[Wanted, ...] = (
    Wanted("summary", 1, ("run",)),
    Wanted("runs", 1, ("run",)),
    Wanted("latency", 2_000, ("bucket_s",), "by = 'time'"),
    Wanted("latency", 200, ("p99_s DESC", "key"), "by <> 'time'", per="by"),
    Wanted("histogram", 200, ("lower_s",)),
    Wanted("throughput", 2_000, ("bucket_s",)),
    Wanted("marks", 100, ("at_s", "text")),
    Wanted("faults", 200, ("from_s", "fault", "a", "b")),
    Wanted("verdicts", 2_000, ("verdict = 'delivered'", "count DESC", "subscriber", "class", "verdict")),
    Wanted(
        "deliveries",
        300,
        (
            "array_position(array('lost', 'twice', 'out of order', 'unexpected', 'unknown', 'unsettled',"
            " 'late'), verdict)",
            "latency_s DESC",
            "publication",
            "subscription",
        ),
        "verdict <> 'delivered'",
    ),
    Wanted("processes", 500, ("code = 0 OR expected", "started_s", "process", "life")),
    Wanted("links", 2_000, ("state", "from_s", "a", "b")),
    Wanted("traffic", 5_000, ("records_in + records_out DESC", "broker", "peer")),
    Wanted("load", 500, ("records_in + records_out DESC", "broker")),
    Wanted("samples", 4_000, ("broker", "at_s"), evenly=True),
    Wanted("spread", 10, ("metric",)),
    Wanted("hops", 2_000, ("subscriber", "hops")),
    Wanted("schedule", 2_000, ("error IS NULL", "abs(late_s) DESC", "number")),
    Wanted("detections", 500, ("at_s", "detection")),
    Wanted("clocks", 2_000, ("host", "t"), evenly=True),
    Wanted("quarantine", 200, ("file", "offset")),
    Wanted("missing", 500, ("host", "process")),
)


def rows_max(table: str) -> int:
    """How many rows of a table the report asks for: with so many there may be more in the table."""
    return sum(each.rows_max for each in WANTED if each.table == table)


@dataclass(frozen=True, slots=True)
class RunData:
    """A run as its report sees it. `provenance` is shown as it is: any keys, values as JSON has them."""

    run: str
    tables: Mapping[str, Rows]
    provenance: Mapping[str, object] = field(default_factory=dict)

    def rows(self, table: str) -> Rows:
        return self.tables.get(table, ())

    def first(self, table: str) -> Row:
        rows = self.rows(table)
        return rows[0] if rows else {}

    def latency(self, by: str) -> list[Row]:
        return [row for row in self.rows("latency") if row.get("by") == by]


@dataclass(frozen=True, slots=True)
class ComparisonData:
    """Two groups of runs, with the metrics that differ or not.

    `runs` are rows of `summary`, `latencies` of `run`, `quantile` (0 to 1) and `latency_s`; both have
    `group`, which is `a` or `b`.
    """

    name: str
    metrics: Rows
    runs: Rows = ()
    latencies: Rows = ()
    sentence: str = ""
    notes: Sequence[str] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)


def number(row: Row, column: str) -> float | None:
    """The cell as a finite number, or None."""
    value = row.get(column)
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def count(row: Row, column: str) -> int:
    """The cell as a number of things; what is not there is none."""
    return int(number(row, column) or 0)


def text(row: Row, column: str) -> str:
    """The cell as text; empty when it is missing."""
    value = row.get(column)
    return "" if value is None else str(value)
