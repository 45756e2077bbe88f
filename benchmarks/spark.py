"""How long until logs are tables: the analysis on this machine against a plain Python program, by size.

Both read the same generated runs. The plain program makes the tables of publications, subscriptions,
deliveries, verdicts and latency; the analysis makes all of its tables. Whether verdicts and latencies agree
row by row is checked at every size. The crossover is where the line through the analysis' times, start of
Spark included, meets the plain program's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.spark.generator import generate, large

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
QUICK = (20_000, 100_000)
INGEST = ("starting", "looking", "bronze", "events", "quarantine")
TIMEOUT_S = 3600.0
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Took:
    events: int
    analysis_s: float
    ingest_s: float
    gold_s: float
    analysis_peak_mb: float
    plain_s: float
    plain_peak_mb: float
    disagreeing: list[str] = field(default_factory=list)


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks spark", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", help=f"sizes; {', '.join(map(str, SIZES))}")
    parser.add_argument("--quick", action="store_true", help=f"{' and '.join(map(str, QUICK))} events")
    parser.add_argument("--memory", default="", help="of Spark's driver; a third of the machine's")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    told = parser.parse_args(argv)
    taken = []
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before\n")
    head = f"{'events':>12}{'analysis, s':>13}{'ingest':>9}{'tables':>9}{'peak MB':>9}"
    print(f"{head}{'plain, s':>10}{'peak MB':>9}")
    for events in told.events or (QUICK if told.quick else SIZES):
        took = measured(events, told.memory)
        taken.append(took)
        print(
            f"{took.events:12,}{took.analysis_s:13.1f}{took.ingest_s:9.1f}{took.gold_s:9.1f}"
            f"{took.analysis_peak_mb:9.0f}{took.plain_s:10.1f}{took.plain_peak_mb:9.0f}",
            flush=True,
        )
        for text in took.disagreeing[:5]:
            print(f"  DISAGREES {text}")
    report(taken)
    if told.json:
        Path(told.json).write_text(json.dumps([asdict(each) for each in taken], indent=1))
    return 1 if any(each.disagreeing for each in taken) else 0


def measured(events: int, memory: str) -> Took:
    with tempfile.TemporaryDirectory(prefix="panda-bench-") as name:
        folder = Path(name)
        run = Path(generate(large(events), folder).folder)
        lake, plain = folder / "tables", folder / "plain.jsonl"
        words = ["analyze", "--lake", str(lake), *(["--memory", memory] if memory else []), str(run)]
        analysis_s, analysis_mb, out = timed([sys.executable, "-m", "panda_spark", *words])
        answer = json.loads(out)
        took = answer["took_s"]
        width_s = query(lake, "SELECT width_s FROM runs")[0][0]
        script = (
            f"from pathlib import Path; from tests.spark.plain import *; write(analyze([Path({str(run)!r})]"
        )
        script += f", bucket_s={width_s}), Path({str(plain)!r}))"
        plain_s, plain_mb, _ = timed([sys.executable, "-c", script])
        ingest_s = sum(took.get(stage, 0.0) for stage in INGEST)
        return Took(
            events,
            analysis_s,
            ingest_s,
            analysis_s - ingest_s,
            analysis_mb,
            plain_s,
            plain_mb,
            list(differences(lake, plain)),
        )


def timed(command: Sequence[str]) -> tuple[float, float, str]:
    """Seconds, the most memory that the process and its children held at once, and what it said."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak_kb = 0
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak_kb
        while not ended.wait(LOOK_S):
            peak_kb = max(peak_kb, sum(resident_kb(pid) for pid in family(process.pid)))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        out, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        ended.set()
        process.kill()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])}: exit code {process.returncode}\n{out[-2000:]}")
    return time.monotonic() - begun, peak_kb / 1024, out


def family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def resident_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def query(lake: Path, sql: str, rows_max: int = 1_000_000) -> list[list[Any]]:
    words = ["query", "--lake", str(lake), "--limit", str(rows_max), "--", sql]
    _, _, out = timed([sys.executable, "-m", "panda_spark", *words])
    rows: list[list[Any]] = json.loads(out)["rows"]
    return rows


def differences(lake: Path, plain: Path) -> Iterator[str]:
    """Rows of verdicts and latencies that the two do not tell alike."""
    wanted: dict[tuple[object, ...], Mapping[str, Any]] = {}
    with plain.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith(('{"table": "verdicts"', '{"table": "latency"')):
                row = json.loads(line)
                wanted[_key(row)] = row
    columns = "count, mean_s, min_s, p50_s, p90_s, p95_s, p99_s, max_s"
    verdicts = query(lake, "SELECT subscriber, class, verdict, count FROM verdicts")
    latency = query(lake, f"SELECT by, key, bucket_s, {columns} FROM latency")
    found = {
        ("verdicts", subscriber, class_, verdict): {"count": count}
        for subscriber, class_, verdict, count in verdicts
    }
    found |= {
        _key({"table": "latency", "by": by, "key": key, "bucket_s": at}): dict(
            zip(columns.split(", "), rest, strict=True)
        )
        for by, key, at, *rest in latency
    }
    for key in wanted.keys() ^ found.keys():
        yield f"{key} is in one only"
    for key in wanted.keys() & found.keys():
        for name, value in found[key].items():
            if not math.isclose(value, wanted[key][name], rel_tol=1e-9, abs_tol=2e-6):
                yield f"{key} {name}: {value} {wanted[key][name]}"


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    if row["table"] == "verdicts":
        return ("verdicts", row["subscriber"], row["class"], row["verdict"])
    at = row["bucket_s"]
    return ("latency", row["by"], row["key"], None if at is None else round(at, 3))


def report(taken: Sequence[Took]) -> None:
    """How the costs grow from each size to the next, and where the two lines meet."""
    print()
    for before, after in pairwise(taken):
        size, cost = after.events / before.events, after.analysis_s / before.analysis_s
        worse = "no worse than linearly" if cost <= size else "WORSE THAN LINEARLY"
        grown = f"{cost:.1f} times as long for {size:.1f} times as much"
        print(f"{before.events:,} to {after.events:,}: {grown}, {worse}")
    for before, after in pairwise(taken):
        ahead = before.plain_s - before.analysis_s, after.plain_s - after.analysis_s
        if ahead[0] <= 0 < ahead[1]:
            share = -ahead[0] / (ahead[1] - ahead[0])
            crossing = before.events + share * (after.events - before.events)
            print(f"the analysis is ahead from about {crossing:,.0f} events on")
            return
    who = "analysis" if taken[-1].plain_s > taken[-1].analysis_s else "plain program"
    print(f"the {who} is ahead at every size measured")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
