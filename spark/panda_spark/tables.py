"""Decides which tables there are and what their columns are: docs/tables.md in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from panda_spark.schema import (
    AS_READ,
    BRONZE,
    EVENTS,
    FLAG,
    INTEGER,
    LINES,
    NUMBER,
    PREDICATE,
    QUARANTINE,
    TEXT,
)

_TYPES: Final[dict[str, DataType]] = {"text": TEXT, "number": NUMBER, "integer": INTEGER, "flag": FLAG}


def _table(**columns: str) -> StructType:
    """Columns by type; `run` is the last, because tables are partitioned by it."""
    typed = [StructField(name, _TYPES[type_]) for type_, names in columns.items() for name in names.split()]
    return StructType([*typed, StructField("run", TEXT)])


def _last_run(schema: StructType) -> StructType:
    return StructType([*(each for each in schema.fields if each.name != "run"), StructField("run", TEXT)])


_VERDICT_COUNTS = "late lost twice out_of_order unexpected unsettled unknown"

GOLD: Final[dict[str, StructType]] = {
    "runs": _table(
        text="name config panda python",
        number="t0 first_s last_s width_s",
        integer="hosts brokers clients links",
    ),
    "processes": _table(
        text="process speaks host role word",
        integer="life code signal",
        number="started_s ready_s ended_s",
        flag="expected logged",
    ),
    "links": _table(text="a b state reason", number="from_s until_s"),
    "clocks": _table(text="host", number="t at_s offset_s error_s drift"),
    "schedule": _table(
        integer="number line",
        text="action process host text error",
        flag="lease",
        number="planned_s actual_s late_s error_s",
    ),
    "marks": _table(number="at_s", text="text"),
    "publications": _table(
        text="publication publisher source class broker host",
        integer="number",
        number="t published_s error_s ack_s",
    ),
    "subscriptions": StructType(
        [
            StructField("filter", ArrayType(PREDICATE)),
            *_table(
                text="subscription subscriber broker host class text why",
                number="from_s until_s from_t until_t",
                flag="judged logged",
            ).fields,
        ]
    ),
    "deliveries": _table(
        text="publication subscription subscriber publisher class broker verdict",
        number="published_s delivered_s latency_s error_s",
        integer="hops times",
        flag="late in_order",
    ),
    "verdicts": _table(text="subscriber class verdict", integer="count"),
    "latency": _table(
        text="by key",
        integer="count",
        number="bucket_s mean_s min_s p50_s p90_s p95_s p99_s max_s error_s",
    ),
    "histogram": _table(number="lower_s upper_s", integer="count"),
    "hops": _table(text="subscriber", integer="hops count"),
    "throughput": _table(number="bucket_s width_s", integer="published delivered"),
    "traffic": _table(
        text="broker peer role", integer="sessions records_in records_out bytes_in bytes_out dropped"
    ),
    "load": _table(
        text="broker host",
        integer="publications unwanted records_in records_out bytes_in bytes_out"
        " subscriptions_max advertisements_max memory_max_bytes",
        number="matching_us queueing_ms cpu_s share",
    ),
    "samples": _table(
        text="broker",
        number="at_s publications_per_s unwanted_per_s queueing_ms matching_us cpu_share",
        integer="subscriptions advertisements queue_length memory_bytes",
    ),
    "spread": _table(text="metric", integer="brokers", number="mean min max cv peak gini"),
    "faults": _table(
        text="fault a b",
        number="value from_s until_s gap_s recover_s p50_before_s p50_during_s",
        integer="published delivered late lost",
    ),
    "detections": _table(text="detection subscription subscriber", number="at_s latency_s", integer="events"),
    "missing": _table(text="what host process"),
    "summary": _table(
        integer=f"published expected delivered {_VERDICT_COUNTS} records bytes"
        " faults failed quarantined missing",
        number="latency_mean_s latency_p50_s latency_p95_s latency_p99_s latency_max_s latency_error_s"
        " published_per_s delivered_per_s hops_mean schedule_p50_s schedule_p99_s schedule_max_s duration_s",
    ),
}

TABLES: Final[dict[str, StructType]] = {
    "bronze": _last_run(BRONZE),
    "quarantine": _last_run(QUARANTINE),
    "events": EVENTS,
    **GOLD,
}
# Two tables are the good ones among the same lines: as they were read, and with their times corrected.
LINES_TABLE: Final = "lines"
VIEWS: Final[Mapping[str, Mapping[str, str]]] = {
    "bronze": {new: old for old, new in AS_READ.items()},
    "events": {},
}
STORED: Final[dict[str, StructType]] = {
    LINES_TABLE: LINES,
    **{name: schema for name, schema in TABLES.items() if name not in VIEWS},
}
LARGE: Final = frozenset((LINES_TABLE, "publications", "deliveries"))  # as many rows as there were events
