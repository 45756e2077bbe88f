"""Decides how the truth about a generated run is written down; finds none of it out."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Pair:
    """What the analysis must say of one publication and one subscription."""

    publication: str
    subscription: str | None
    subscriber: str
    publisher: str
    class_: str | None
    verdict: str
    times: int
    latency_s: float | None = None  # the true one, of the first arrival; None when it cannot be known
    hops: int | None = None
    in_order: bool = True
    late: bool = False


@dataclass(slots=True)
class BadLine:
    """A line for the quarantine; `offset` counts bytes of the log's text, compressed or not."""

    file: str
    offset: int
    reason: str


@dataclass(slots=True)
class FaultInterval:
    fault: str  # cut, pause, kill
    a: str
    b: str  # empty but for links
    from_s: float
    until_s: float


@dataclass(slots=True)
class Truth:
    """Facts of one run. Times ending in `_s` count from T0, by a clock that is right.

    A loss, duplicate, … is planted where it makes a difference to the verdict of every subscription that it
    concerns, so that the list of it is also the list of verdicts that come of it.
    """

    run: str
    folder: str
    t0: float
    settle_s: float
    late_s: float
    log_lines: int = 0  # good ones, of all processes, in files that came home
    publications: int = 0  # of which some log knows
    subscriptions: int = 0  # likewise
    pairs: list[Pair] = field(default_factory=list)  # empty in a truth of counts only
    verdicts: Counter[tuple[str, str | None, str]] = field(
        default_factory=Counter
    )  # subscriber, class, verdict
    hops: Counter[tuple[str, int]] = field(default_factory=Counter)  # of what arrived, each pair once
    latency_sum_s: float = 0.0
    latency_max_s: float = 0.0
    latencies: int = 0
    clock_error_s: float = 0.0  # nobody can tell a latency between two hosts better than this
    planted: dict[str, list[tuple[str, str]]] = field(
        default_factory=dict
    )  # kind → (publication, subscriber)
    quarantine: list[BadLine] = field(default_factory=list)
    faults: list[FaultInterval] = field(default_factory=list)
    detections: list[dict[str, Any]] = field(default_factory=list)
    missing: list[tuple[str, str, str]] = field(default_factory=list)  # what, host, process
    traffic: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # "broker peer" → totals, as far as logged
    load: dict[str, dict[str, int]] = field(default_factory=dict)  # broker → totals, as far as logged

    def counts(self) -> Counter[str]:
        """How often each verdict is due."""
        found: Counter[str] = Counter()
        for (_, _, verdict), count in self.verdicts.items():
            found[verdict] += count
        return found

    def write(self, path: Path) -> None:
        data = asdict(self)
        data["verdicts"] = [[*key, count] for key, count in sorted(self.verdicts.items(), key=repr)]
        data["hops"] = [[*key, count] for key, count in sorted(self.hops.items())]
        path.write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")


def read_truth(path: Path) -> Truth:
    data = json.loads(path.read_text(encoding="utf-8"))
    data["pairs"] = [Pair(**each) for each in data["pairs"]]
    data["quarantine"] = [BadLine(**each) for each in data["quarantine"]]
    data["faults"] = [FaultInterval(**each) for each in data["faults"]]
    data["verdicts"] = Counter({tuple(key): count for *key, count in data["verdicts"]})
    data["hops"] = Counter({tuple(key): count for *key, count in data["hops"]})
    data["planted"] = {kind: [tuple(each) for each in facts] for kind, facts in data["planted"].items()}
    data["missing"] = [tuple(each) for each in data["missing"]]
    return Truth(**data)
