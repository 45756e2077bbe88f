"""Decides delivery and latency of runs in plain Python: the yardstick that the Spark analysis is held to.

    python -m tests.spark.plain RUNFOLDER… --out FILE      a JSON line for every row, with its `table`

It computes `publications`, `subscriptions`, `deliveries`, `verdicts` and `latency` of docs/tables.md.
Exactly:

Lines. All `hosts/*/processes/*/log.jsonl` and `.gz`, in the order of their paths. A line is passed over
when it has more than LINE_MAX_BYTES, is no UTF-8 or no JSON object, has another version than 1, lacks a
field that every line or its kind must have, or has one of another type. Fields and kinds that are not known
do not matter.

Clocks. A host's measurements in clocks.jsonl are points: at `at` + `offset_s` by its own clock it was
`offset_s` ahead. Between two of them the offset is interpolated linearly and the error is the larger one;
outside the nearest holds; a host without any has offset 0 and an error of null. A time of a host is
corrected by subtracting its offset at that time. T0 is `t0` of the journal's `go`; without one it is the
earliest corrected `t` of a line.

Publications. One for each id of a `publish` line; the line with `ack_s` is the client's own, the others are
brokers'. It was made at `time`, corrected by the clock of its host: where plan.json has the process that
`speaks` as the client; else where the client's own line came from; else the broker's. `broker` is who wrote
the first broker's line, else the first that the client says it is `connected` to.

Subscriptions. One for each client and id of a `subscribe` line, however often it is issued. It holds from
the first of its client's own lines, else of the brokers', until the earliest of: an `unsubscribe` line, a
`disconnected` line of the client with the reason `closed`, an `exited` event of its process in the
controller's journal, each only when not before its beginning; and the last line of any log. It is not
judged when a predicate has an operator that is not built in, or no operand (a variable), or one that JSON
could not write.

Matching. As broker_runtime/language/predicates.py has it: kinds never mix, integers and floats are one
kind, null is present and compares with nothing, `class` is a text.

Deliveries. Arrivals are the `deliver` lines with `latency_s`, one for each id in `to`; a line without `to`
is for each judged subscription of the client that matches, and when there is none, for the subscription
null. A pair of publication and subscription has a row when it was expected (it matches, and from ≤
published ≤ until) or arrived. The first arrival gives `delivered_s`, `latency_s`, `error_s` and `hops`,
which are null when nothing arrived. Latency is the difference of the corrected times, and its error the sum
of both errors; on one host it is the difference of the times as written, and the error is 0. It is rounded
to microseconds. `late`: more than `late_s`. `in_order` is false when an earlier first arrival of the same
source for the same subscription had a higher number. What never arrived is not late, and in order. `broker`
is that of the subscription. Where no log has the publication, all that comes from it is null, latency too.

Verdicts, the first that applies:
- nothing arrived: `unknown` when no good line of the subscriber came home; `lost` when from + settle ≤
  published ≤ until − settle; else `unsettled`
- no log has the publication: `unknown` when no good line of its publisher came home, else `unexpected`
- it does not match, or was made before from − settle or after until + settle, or the subscription is null:
  `unexpected` (one that is not judged, or of which no log tells, always matches and always holds)
- it came more than once: `twice`; not `in_order`: `out of order`; `late`: `late`; else `delivered`

Latency. Of all rows that have one, grouped `by` all, class, subscriber, publisher, broker, and by time in
buckets of `bucket_s` of `published_s`; `key` is empty for all and time, and where it is not known.
Percentiles are interpolated linearly between the closest ranks; `error_s` is the largest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.spark.plain.rows import Tables, latency_of, verdicts_of
from tests.spark.plain.run import Run

LATE_S = 1.0
SETTLE_S = 1.0
BUCKET_S = 1.0


def analyze(
    folders: Iterable[Path], late_s: float = LATE_S, settle_s: float = SETTLE_S, bucket_s: float = BUCKET_S
) -> Tables:
    tables = Tables([], [], [], [], [])
    for folder in folders:
        run = Run(folder, late_s, settle_s)
        run.read()
        tables.publications.extend(run.publications())
        tables.subscriptions.extend(run.subscriptions())
        tables.deliveries.extend(run.deliveries())
    tables.verdicts.extend(verdicts_of(tables.deliveries))
    tables.latency.extend(latency_of(tables.deliveries, bucket_s))
    return tables


def write(tables: Tables, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for table, rows in tables._asdict().items():
            for row in rows:
                fields = {name.rstrip("_"): value for name, value in row._asdict().items()}
                file.write(json.dumps({"table": table, **fields}, ensure_ascii=False) + "\n")
