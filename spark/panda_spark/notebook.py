"""Decides what a first notebook on the tables asks, in cells that run as they are; answers nothing itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDTH, HEIGHT = 720, 240  # of a picture, in pixels

_INTRODUCTION: Final = """\
# What happened{of_run}

Every cell runs as it is, from top to bottom. A table of the analysis is a view that SQL can ask;
docs/tables.md says what each holds. Times that end in `_s` are seconds; `at_s`, `from_s` and `bucket_s` count
from T0.

Set `SPARK_REMOTE` before starting Jupyter to use a Spark Connect server instead of this machine."""

_OPENING: Final = """\
from panda_spark.notebook import line_picture, open_tables

LAKE = {lake!r}
spark = open_tables(LAKE)"""

_CHOOSING: Final = """\
RUN = {run}


def ask(sql):
    return spark.sql(sql, args={{"run": RUN}}).toPandas()


ask("SELECT * FROM runs WHERE run = :run")"""

_NEWEST: Final = 'spark.sql("SELECT max(run) AS run FROM runs").first()["run"]  # names begin with the time'

_QUESTIONS: Final = (
    (
        "## Was everything delivered?\n\n"
        "`lost` never came, `twice` came more than once; `unsettled` cannot be blamed on anybody.",
        """\
ask(\"\"\"
    SELECT verdict, sum(count) AS deliveries, count(DISTINCT subscriber) AS subscribers
    FROM verdicts WHERE run = :run
    GROUP BY verdict ORDER BY deliveries DESC
\"\"\")""",
    ),
    (
        "## Who missed something?",
        """\
ask(\"\"\"
    SELECT subscriber, class, verdict, count
    FROM verdicts WHERE run = :run AND verdict <> 'delivered'
    ORDER BY count DESC LIMIT 20
\"\"\")""",
    ),
    (
        "## Which subscribers wait longest?",
        """\
ask(\"\"\"
    SELECT key AS subscriber, count, 1000 * p50_s AS p50_ms, 1000 * p99_s AS p99_ms, 1000 * max_s AS max_ms
    FROM latency WHERE run = :run AND `by` = 'subscriber'
    ORDER BY p99_s DESC LIMIT 10
\"\"\")""",
    ),
    (
        "## Latency over time",
        """\
over_time = ask(\"\"\"
    SELECT bucket_s, 1000 * p50_s AS p50_ms, 1000 * p99_s AS p99_ms
    FROM latency WHERE run = :run AND `by` = 'time'
    ORDER BY bucket_s
\"\"\")
line_picture(over_time, x="bucket_s", ys=["p50_ms", "p99_ms"], title="latency, ms")""",
    ),
    (
        "## Published and delivered over time",
        """\
throughput = ask(\"\"\"
    SELECT bucket_s, published / width_s AS published_per_s, delivered / width_s AS delivered_per_s
    FROM throughput WHERE run = :run
    ORDER BY bucket_s
\"\"\")
line_picture(throughput, x="bucket_s", ys=["published_per_s", "delivered_per_s"], title="per second")""",
    ),
    (
        "## What did each fault do?\n\n"
        "`gap_s` is the longest silence for somebody whom it concerned, `recover_s` what it took afterwards.",
        """\
ask(\"\"\"
    SELECT fault, a, b, value, from_s, until_s, gap_s, recover_s, published, delivered, late, lost,
           1000 * p50_before_s AS p50_before_ms, 1000 * p50_during_s AS p50_during_ms
    FROM faults WHERE run = :run
    ORDER BY from_s
\"\"\")""",
    ),
    (
        "## Which brokers carry the load?",
        """\
ask(\"\"\"
    SELECT broker, host, publications, records_in, records_out, share, matching_us, queueing_ms, cpu_s
    FROM load WHERE run = :run
    ORDER BY share DESC
\"\"\")""",
    ),
    (
        "## The slowest deliveries, one by one",
        """\
ask(\"\"\"
    SELECT publication, publisher, subscriber, published_s, 1000 * latency_s AS latency_ms, hops, verdict
    FROM deliveries WHERE run = :run AND latency_s IS NOT NULL
    ORDER BY latency_s DESC LIMIT 10
\"\"\")""",
    ),
    (
        "## All runs of the lake, repetitions together\n\n"
        "`panda compare` says whether a difference is more than chance.",
        """\
ask(\"\"\"
    SELECT r.name, r.config, count(*) AS runs, sum(s.lost) AS lost,
           1000 * avg(s.latency_p50_s) AS p50_ms, 1000 * avg(s.latency_p99_s) AS p99_ms
    FROM summary s JOIN runs r USING (run)
    GROUP BY r.name, r.config ORDER BY r.name, r.config
\"\"\")""",
    ),
    (
        "## And now your own question",
        """\
ask("SHOW TABLES")[["tableName"]]""",
    ),
)


def notebook(lake: str, run: str = "") -> dict[str, list[dict[str, str]]]:
    """Its `cells`, each with `kind`, markdown or code, and `text`. Without a run it is about the newest."""
    place = lake if "://" in lake else str(Path(lake).absolute())
    named = " in " + " ".join(run.split()) if run else ""
    made = [
        _cell("markdown", _INTRODUCTION.format(of_run=named)),
        _cell("code", _OPENING.format(lake=place)),
        _cell("code", _CHOOSING.format(run=repr(run) if run else _NEWEST)),
    ]
    for question, code in _QUESTIONS:
        made += [_cell("markdown", question), _cell("code", code)]
    return {"cells": made}


def _cell(kind: str, text: str) -> dict[str, str]:
    return {"kind": kind, "text": text}


# What the cells call


def open_tables(lake: str) -> SparkSession:
    """A session in which every table of the lake is a view."""
    from panda_spark.asking import known_runs, open_views
    from panda_spark.lake import Lake
    from panda_spark.session import Place, open_session

    spark = open_session(Place())
    opened = Lake(spark, lake)
    open_views(opened, known_runs(opened))
    return spark


class Picture:
    """An SVG that Jupyter shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def line_picture(rows: Any, *, x: str, ys: list[str], title: str) -> Picture:
    """Columns of a pandas table as lines over another."""
    import vl_convert

    long = rows.melt(id_vars=[x], value_vars=ys).dropna()
    spec = {
        "data": {"values": json.loads(long.to_json(orient="records"))},
        "width": WIDTH,
        "height": HEIGHT,
        "mark": {"type": "line", "interpolate": "linear"},
        "encoding": {
            "x": {"field": x, "type": "quantitative"},
            "y": {"field": "value", "type": "quantitative", "title": title},
            "color": {"field": "variable", "type": "nominal", "title": None},
        },
    }
    return Picture(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
