"""Rows such as the analysis gives them: a rich run, a poor one, a hostile one, one of a hundred brokers."""

# ruff: noqa: E501 -- a row of a table stands on a line

from __future__ import annotations

import math
import random

from panda_spark.report import ComparisonData, RunData

Rows = list[dict[str, object]]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&{{7*7}}=cmd|' /C calc'!A0"


def quantiles(values: list[float]) -> dict[str, object]:
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        "count": len(ordered),
        "mean_s": sum(ordered) / len(ordered),
        "min_s": ordered[0],
        "p50_s": at(0.5),
        "p90_s": at(0.9),
        "p95_s": at(0.95),
        "p99_s": at(0.99),
        "max_s": ordered[-1],
        "error_s": 0.0004,
    }


def rich(brokers: int = 7, seconds: int = 120, seed: int = 7) -> RunData:
    """A tree of brokers with a link cut, a broker killed and started again, and a slow link."""
    luck = random.Random(seed)
    names = [f"B{place}" for place in range(1, brokers + 1)]
    links = [(names[(place - 1) // 2], names[place]) for place in range(1, brokers)]
    classes = ["STOCK", "ALARM", "METER"]
    subscribers = [f"S{place}" for place in range(10)]
    latencies: dict[tuple[str, str], list[float]] = {}
    times: dict[int, list[float]] = {}
    throughput: Rows = []
    for bucket in range(seconds):
        published = round(40 + 12 * math.sin(bucket / 9) + luck.random() * 6)
        slow = 45 <= bucket < 60
        cut = 22 <= bucket < 27
        delivered = 0 if cut else published * 4 + (published * 12 if bucket == 27 else 0)
        throughput.append({"bucket_s": bucket, "width_s": 1, "published": published, "delivered": delivered})
        for place in range(0 if cut else published * 4):
            latency = luck.lognormvariate(-5.6, 0.5) * (9 if slow else 1)
            if bucket in {27, 28}:
                latency += luck.random() * 4
            pair = (subscribers[place % 10], classes[place % 3])
            latencies.setdefault(pair, []).append(latency)
            times.setdefault(bucket, []).append(latency)
    latency: Rows = [{"by": "all", "key": None, **quantiles([v for some in times.values() for v in some])}]
    latency += [
        {"by": "time", "key": None, "bucket_s": at, **quantiles(some)} for at, some in sorted(times.items())
    ]
    for by, place in (("subscriber", 0), ("class", 1)):
        groups: dict[str, list[float]] = {}
        for pair, some in latencies.items():
            groups.setdefault(pair[place], []).extend(some)
        latency += [{"by": by, "key": key, **quantiles(some)} for key, some in sorted(groups.items())]
    for place, broker in enumerate(names[:20]):
        some = [luck.lognormvariate(-5.4, 0.4) * (1 + place / 5) for _ in range(200)]
        latency.append({"by": "broker", "key": broker, **quantiles(some)})
    for place in range(4):
        some = [luck.lognormvariate(-5.4, 0.4) * (1 + place / 5) for _ in range(200)]
        latency.append({"by": "publisher", "key": f"P{place}", **quantiles(some)})
    everything = [v for some in times.values() for v in some]
    bins: dict[int, int] = {}
    for value in everything:
        bins[math.floor(10 * math.log10(value))] = bins.get(math.floor(10 * math.log10(value)), 0) + 1
    weights = {
        broker: 40_000 / (1 + place) * (0.8 + 0.4 * luck.random()) for place, broker in enumerate(names)
    }
    total = sum(weights.values())
    load: Rows = [
        {
            "broker": broker,
            "host": f"10.0.1.{1 + place % 50}",
            "publications": round(weights[broker] / 3),
            "unwanted": round(weights[broker] / 90),
            "records_in": round(weights[broker] / 2),
            "records_out": round(weights[broker] / 2),
            "bytes_in": round(weights[broker] * 140),
            "bytes_out": round(weights[broker] * 150),
            "matching_us": 8 + 4 * luck.random(),
            "queueing_ms": 0.3 + luck.random(),
            "subscriptions_max": 30 + place,
            "advertisements_max": 6,
            "memory_max_bytes": 31_000_000 + place * 400_000,
            "cpu_s": weights[broker] / 9000,
            "share": weights[broker] / total,
        }
        for place, broker in enumerate(names)
    ]
    traffic: Rows = []
    for a, b in links:
        amount = round(min(weights[a], weights[b]) / 2)
        for broker, peer in ((a, b), (b, a)):
            traffic.append(
                {
                    "broker": broker,
                    "peer": peer,
                    "role": "broker",
                    "sessions": 1,
                    "records_in": amount // 3,
                    "records_out": amount - amount // 3,
                    "bytes_in": amount * 50,
                    "bytes_out": amount * 90,
                    "dropped": 0,
                }
            )
    clients = [*subscribers, "P0", "P1", "P2", "P3"]
    for place, client in enumerate(clients):
        traffic.append(
            {
                "broker": names[-1 - place % min(brokers, 40)],
                "peer": client,
                "role": "client",
                "sessions": 1,
                "records_in": 40,
                "records_out": 1900,
                "bytes_in": 4000,
                "bytes_out": 200000,
                "dropped": 0,
            }
        )
    samples: Rows = [
        {
            "broker": broker,
            "at_s": at,
            "publications_per_s": weights[broker] / 300,
            "subscriptions": min(30, at * 2) + place,
            "advertisements": 6,
            "queue_length": 3,
            "queueing_ms": (0.3 + luck.random() * 0.3) * (14 if 45 <= at < 60 and place < 2 else 1),
            "matching_us": 8 + 3 * luck.random() + place,
            "memory_bytes": 30_000_000 + at * 20_000 + place * 500_000,
            "cpu_share": 0.2,
        }
        for place, broker in enumerate(names)
        for at in range(0, seconds, 5)
    ]
    processes: Rows = []
    for place, broker in enumerate(names):
        processes.append(
            {
                "process": broker,
                "speaks": broker,
                "host": f"10.0.1.{1 + place % 50}",
                "role": "broker",
                "life": 1,
                "started_s": -3.2 + place * 0.05,
                "ready_s": -2.9,
                "ended_s": 80.0 if place == 3 else seconds + 0.4,
                "code": None if place == 3 else 0,
                "signal": "SIGKILL" if place == 3 else None,
                "expected": place != 3,
                "logged": place != 3,
            }
        )
    if brokers > 3:
        processes.append(
            {
                **processes[3],
                "life": 2,
                "started_s": 84.0,
                "ready_s": 84.4,
                "ended_s": seconds + 0.4,
                "code": 0,
                "signal": None,
                "expected": True,
                "logged": True,
            }
        )
    for place, client in enumerate(clients):
        processes.append(
            {
                "process": client,
                "speaks": client,
                "host": f"10.0.1.{1 + place % 7}",
                "role": "client",
                "life": 1,
                "started_s": 1.0 + 0.1 * place,
                "ended_s": seconds - 1,
                "code": 0,
                "expected": True,
                "logged": True,
            }
        )
    link_rows: Rows = []
    for place, (a, b) in enumerate(links):
        if place == 1:
            link_rows += [
                {"a": a, "b": b, "from_s": -2.5, "until_s": 22.0, "state": "up", "reason": None},
                {
                    "a": a,
                    "b": b,
                    "from_s": 22.0,
                    "until_s": 27.1,
                    "state": "down",
                    "reason": "cut by the agent",
                },
                {"a": a, "b": b, "from_s": 27.1, "until_s": seconds, "state": "up", "reason": None},
            ]
        else:
            link_rows.append({"a": a, "b": b, "from_s": -2.5, "until_s": seconds, "state": "up"})
    faults: Rows = [
        {"fault": "cut", "a": names[0], "b": names[2 % brokers], "value": None, "from_s": 22.0, "until_s": 27.0, "gap_s": 5.31, "recover_s": 0.42, "published": 214, "delivered": 798, "late": 58, "lost": 0, "p50_before_s": 0.0037, "p50_during_s": 2.4},
        {"fault": "delay", "a": names[0], "b": names[1 % brokers], "value": 0.05, "from_s": 45.0, "until_s": 60.0, "gap_s": 0.4, "recover_s": 0.0, "published": 640, "delivered": 2560, "late": 0, "lost": 0, "p50_before_s": 0.0037, "p50_during_s": 0.033},
        {"fault": "kill", "a": names[3 % brokers], "b": None, "value": None, "from_s": 80.0, "until_s": 84.0, "gap_s": 5.9, "recover_s": 1.6, "published": 190, "delivered": 720, "late": 12, "lost": 37, "p50_before_s": 0.0036, "p50_during_s": 0.0041},
    ]  # fmt: skip
    verdicts: Rows = [
        {"subscriber": subscriber, "class": class_, "verdict": "delivered", "count": len(some)}
        for (subscriber, class_), some in sorted(latencies.items())
    ]
    verdicts += [
        {"subscriber": "S3", "class": "STOCK", "verdict": "lost", "count": 37},
        {"subscriber": "S3", "class": "STOCK", "verdict": "late", "count": 41},
        {"subscriber": "S4", "class": "ALARM", "verdict": "late", "count": 29},
        {"subscriber": "S5", "class": "METER", "verdict": "twice", "count": 3},
        {"subscriber": "S6", "class": "METER", "verdict": "out of order", "count": 5},
        {"subscriber": "S7", "class": "STOCK", "verdict": "unsettled", "count": 4},
    ]
    came = len(everything)
    schedule: Rows = [
        {
            "number": place,
            "line": 12 + place,
            "action": action,
            "process": process,
            "host": f"10.0.1.{1 + place % 7}",
            "text": f"{at} {action.upper()} {process}",
            "planned_s": at,
            "actual_s": at + late,
            "late_s": late,
            "error_s": 0.0005,
            "error": None,
        }
        for place, (at, action, process) in enumerate(
            [(1.0 + 0.1 * n, "add", client) for n, client in enumerate(clients)]
            + [
                (22.0, "cut", "B1 B3"),
                (45.0, "delay", "B1 B2"),
                (80.0, "kill", "B4"),
                (seconds - 1, "remove", "S0"),
            ]
        )
        for late in (luck.lognormvariate(-6.3, 0.6),)
    ]
    clocks: Rows = [
        {
            "host": f"10.0.1.{host}",
            "t": 1794990800.0 + at,
            "at_s": at,
            "offset_s": 0.002 * host - 0.005 + at * host * 2e-6,
            "error_s": 0.0002 + 0.0003 * luck.random(),
            "drift": host * 2e-6,
        }
        for host in range(1, 5)
        for at in range(-3, seconds, 15)
    ]
    summary: dict[str, object] = {
        "run": "demo",
        "published": 4880,
        "expected": came + 119,
        "delivered": came - 78,
        "late": 70,
        "lost": 37,
        "twice": 3,
        "out_of_order": 5,
        "unexpected": 0,
        "unsettled": 4,
        "unknown": 0,
        **{
            f"latency_{name}": quantiles(everything)[name]
            for name in ("mean_s", "p50_s", "p95_s", "p99_s", "max_s")
        },
        "latency_error_s": 0.0004,
        "published_per_s": 40.7,
        "delivered_per_s": 161.2,
        "hops_mean": 2.9,
        "records": round(total),
        "bytes": round(total * 290),
        "schedule_p50_s": 0.0017,
        "schedule_p99_s": 0.0062,
        "schedule_max_s": 0.0074,
        "faults": 3,
        "failed": 1,
        "quarantined": 2,
        "missing": 1,
        "duration_s": seconds + 3.2,
    }
    tables: dict[str, Rows] = {
        "summary": [summary],
        "runs": [{"run": "demo", "name": "demo", "brokers": brokers, "clients": 14, "links": len(links), "hosts": 7, "t0": 1794990800.0, "first_s": -3.2, "last_s": seconds + 0.4}],
        "latency": latency,
        "histogram": [{"lower_s": 10 ** (at / 10), "upper_s": 10 ** ((at + 1) / 10), "count": n} for at, n in sorted(bins.items())],
        "throughput": throughput,
        "marks": [{"at_s": 22.0, "text": "the link breaks"}, {"at_s": 45.0, "text": "slow link begins"}, {"at_s": 80.0, "text": "B4 dies"}, {"at_s": 84.0, "text": "B4 is back"}, {"at_s": 110.0, "text": "steady state, take figures from here"}],
        "faults": faults,
        "verdicts": verdicts,
        "deliveries": [
            {"publication": f"P0:6f2c4f05:{n}", "subscription": f"S3:91ab:{1 + n % 2}", "subscriber": "S3", "publisher": "P0", "class": "STOCK", "broker": "B4", "published_s": 80.1 + n / 9, "delivered_s": None if n < 37 else 83 + n / 9, "latency_s": None if n < 37 else 1.1 + n / 50, "error_s": 0.0005, "hops": None if n < 37 else 3, "times": 0 if n < 37 else 1, "late": n >= 37, "in_order": True, "verdict": "lost" if n < 37 else "late"}
            for n in range(115)
        ],
        "processes": processes,
        "links": link_rows,
        "traffic": traffic,
        "load": load,
        "samples": samples,
        "spread": [
            {"metric": "records", "brokers": brokers, "mean": total / brokers, "min": min(weights.values()), "max": max(weights.values()), "cv": 0.71, "peak": max(weights.values()) / total * brokers, "gini": 0.34},
            {"metric": "cpu_s", "brokers": brokers, "mean": 1.8, "min": 0.6, "max": 4.4, "cv": 0.7, "peak": 2.44, "gini": 0.33},
        ],
        "hops": [{"subscriber": s, "hops": hops, "count": 400 // hops} for s in subscribers for hops in (1, 2, 3, 4)],
        "schedule": schedule,
        "detections": [{"detection": f"D{n}", "subscription": "S8:c1", "subscriber": f"S{8 + n % 2}", "at_s": 4.0 + 7.3 * n, "events": 2, "latency_s": 0.02} for n in range(15)],
        "clocks": clocks,
        "quarantine": [{"file": "10.0.1.4/B4.log", "offset": 88123, "bytes": 41, "reason": "truncated", "text": '{"v":1,"t":1794990880.01,"host":"10.0'}, {"file": "10.0.1.2/B2.log", "offset": 12, "bytes": 9, "reason": "not JSON", "text": "Killed"}],
        "missing": [{"what": "log", "host": "10.0.1.4", "process": "B4"}],
    }  # fmt: skip
    provenance: dict[str, object] = {
        "versions": {"panda": "0.1.0", "python": "3.11.2", "spark": "4.3.0"},
        "hosts": [
            {"host": f"10.0.1.{n}", "offset_s": 0.002 * n - 0.005, "error_s": 0.0004} for n in range(1, 8)
        ],
        "seeds": {"workload": 4711},
        "commands": [
            {"process": f"B{n}", "command": f"broker -i B{n} -p 10000 -Xmx 128"} for n in range(1, 8)
        ],
        "options": {"late": "1 s", "settle": "1 s"},
        "topology": "# a tree\n"
        + "\n".join(f"0.0 ADD {b} 10.0.1.1 startbroker.sh -i {b} -n {a}" for a, b in links),
    }
    return RunData("2026-11-18T13-30-demo", tables, provenance)


def poor() -> RunData:
    """Brokers that ran and did nothing."""
    summary: dict[str, object] = dict.fromkeys(
        (
            "published",
            "expected",
            "delivered",
            "late",
            "lost",
            "twice",
            "out_of_order",
            "unexpected",
            "unknown",
        ),
        0,
    )
    runs: Rows = [{"brokers": 3, "clients": 0, "first_s": 0.0, "last_s": 9.0}]
    tables: dict[str, Rows] = {
        "summary": [{**summary, "duration_s": 9.0, "latency_p50_s": None}],
        "runs": runs,
    }
    return RunData("idle", tables)


def hostile() -> RunData:
    """The rich run with every text replaced by one that tries to break out, and numbers that are none."""
    given = rich(4, 30)

    def spoiled(row: dict[str, object]) -> dict[str, object]:
        keep = {"by", "verdict", "role", "state", "metric"}
        return {
            key: f"{HOSTILE}{value}" if isinstance(value, str) and key not in keep else value
            for key, value in row.items()
        }

    tables = {name: [spoiled(dict(row)) for row in rows] for name, rows in given.tables.items()}
    tables["marks"].append({"at_s": 3.0, "text": HOSTILE * 400})
    tables["marks"].append({"at_s": float("nan"), "text": None})
    tables["latency"].append({"by": "time", "bucket_s": 31.0, "p50_s": float("inf"), "p99_s": "many"})
    tables["latency"].append(
        {"by": "class", "key": HOSTILE, "p50_s": -0.5, "p95_s": 0, "p99_s": 1e300, "count": -1}
    )
    provenance: dict[str, object] = {
        HOSTILE: HOSTILE,
        "topology": f"{HOSTILE}\n{HOSTILE}",
        "hosts": [{HOSTILE: HOSTILE}],
    }
    return RunData(HOSTILE, tables, provenance)


def comparison() -> ComparisonData:
    luck = random.Random(3)
    runs: Rows = []
    latencies: Rows = []
    for group, factor in (("a", 1.0), ("b", 1.25)):
        for place in range(6):
            run = f"{group}-{place}"
            median = 0.004 * factor * (0.95 + 0.1 * luck.random())
            runs.append(
                {
                    "group": group,
                    "run": run,
                    "published": 4000,
                    "delivered": 16000 - place,
                    "late": place,
                    "lost": 0,
                    "latency_p50_s": median,
                    "latency_p95_s": median * 3,
                    "latency_p99_s": median * 7,
                    "delivered_per_s": 160 + luck.random(),
                    "records": 90_000 + 1000 * luck.random(),
                    "bytes": 9_000_000,
                    "duration_s": 120.0,
                }
            )
            latencies += [
                {
                    "group": group,
                    "run": run,
                    "quantile": q / 100,
                    "latency_s": median * math.exp(1.2 * (q - 50) / 50),
                }
                for q in (1, 5, *range(10, 100, 10), 95, 99)
            ]

    def metric(
        name: str, unit: str, better: str, a: float, share: float, wide: float, **more: object
    ) -> dict[str, object]:
        return {
            "metric": name,
            "unit": unit,
            "better": better,
            "a_runs": 6,
            "b_runs": 6,
            "a_mean": a,
            "a_low": a * (1 - wide),
            "a_high": a * (1 + wide),
            "a_median": a,
            "b_mean": a * (1 + share),
            "b_low": a * (1 + share - wide),
            "b_high": a * (1 + share + wide),
            "b_median": a * (1 + share),
            "difference": a * share,
            "difference_share": share,
            "difference_low": a * (share - wide),
            "difference_high": a * (share + wide),
            "p_value": 0.001 if abs(share) > wide else 0.4,
            "significant": abs(share) > wide,
            "threshold": None,
            "crossed": None,
            "method": "Welch",
            **more,
        }

    metrics = [
        metric(
            "latency_p50_s", "s", "lower", 0.004, 0.25, 0.04, threshold="latency_p50_s +10%", crossed=True
        ),
        metric("latency_p99_s", "s", "lower", 0.03, 0.22, 0.12),
        metric("delivered_per_s", "per s", "higher", 160.0, 0.001, 0.006),
        metric("records", "", "lower", 90_500.0, -0.07, 0.02),
        metric("bytes", "bytes", "lower", 9e6, 0.0, 0.03),
        metric("duration_s", "s", "", 120.0, 0.03, 0.01),
        {**metric("lost", "", "lower", 0.0, 0.0, 0.0), "difference_share": None},
    ]
    return ComparisonData(
        "covering off against on", metrics, runs, latencies, provenance={"a": "config 1f", "b": "config 2c"}
    )
