"""Decides what a run's logs say at a glance: who published, who was notified, how long it took, how punctual.

It reads what the processes and agents wrote and nothing else; the thorough answers are the analysis' matter.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from panda.deploy.view import RunView, Stage
from panda.experiment.folder import RunFolder, read_lines


@dataclass(slots=True)
class Summary:
    published: dict[str, int] = field(default_factory=dict)  # by client
    delivered: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    late_p50_s: float | None = None
    late_p99_s: float | None = None
    late_max_s: float | None = None
    steps: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        told = [f"{who} published {count}" for who, count in self.published.items()]
        told += [f"{who} was notified {count} times" for who, count in self.delivered.items()]
        if self.latency_p50_s is not None and self.latency_p99_s is not None:
            told.append(
                f"from publisher to subscriber: p50 {_ms(self.latency_p50_s)}, p99 {_ms(self.latency_p99_s)}"
            )
        if self.repeated:
            told.append(f"{self.repeated} notifications came twice")
        if self.late_p50_s is not None and self.late_max_s is not None and self.late_p99_s is not None:
            late = f"p50 {_ms(self.late_p50_s)}, p99 {_ms(self.late_p99_s)}, at most {_ms(self.late_max_s)}"
            told.append(f"{self.steps} timed step{'s' * (self.steps != 1)}, late by {late}")
        told += [f"{who} failed: {why}" for who, why in self.failed.items()]
        return told


def summary_of(folder: RunFolder, view: RunView) -> Summary:
    summary = Summary()
    latencies: list[float] = []
    offsets = {str(entry["host"]): float(entry["offset_s"]) for entry in folder.clocks()}
    speaks = {each.speaks: each for each in view.plan.processes if each.speaks}
    published_on: dict[str, str] = {each.speaks: each.host for each in speaks.values()}
    for planned in view.plan.processes:
        if planned.kind != "runtime" or planned.is_broker:
            continue
        seen: set[str] = set()
        for event in _log(folder, planned.host, planned.id):
            kind = event.get("kind")
            if kind == "publish" and "ack_s" in event:
                summary.published[planned.id] = summary.published.get(planned.id, 0) + 1
            elif kind == "deliver" and "latency_s" in event:
                summary.delivered[planned.id] = summary.delivered.get(planned.id, 0) + 1
                id_ = str(event.get("id"))
                summary.repeated += id_ in seen
                seen.add(id_)
                there = offsets.get(published_on.get(id_.partition(":")[0], planned.host), 0.0)
                here = offsets.get(planned.host, 0.0)
                latencies.append(float(event["latency_s"]) + there - here)
    if latencies:
        summary.latency_p50_s, summary.latency_p99_s = quantile(latencies, 0.5), quantile(latencies, 0.99)
    _punctuality(summary, view)
    for process in view.processes.values():
        if process.stage is Stage.FAILED:
            summary.failed[process.planned.id] = process.ended
    return summary


def _punctuality(summary: Summary, view: RunView) -> None:
    late = [step.late_s for step in view.timed_steps if step.late_s is not None and not step.error]
    summary.steps = len(late)
    if late:
        summary.late_p50_s, summary.late_p99_s = quantile(late, 0.5), quantile(late, 0.99)
        summary.late_max_s = max(late)


def quantile(values: list[float], share: float) -> float:
    if len(values) == 1:
        return values[0]
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return cuts[min(98, max(0, round(share * 100) - 1))]


def _log(folder: RunFolder, host: str, process: str) -> Iterator[Mapping[str, Any]]:
    path: Path = folder.collected(host) / "processes" / process / "log.jsonl"
    return read_lines(path)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
