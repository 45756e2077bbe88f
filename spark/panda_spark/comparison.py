"""Decides what is different between two groups of runs and whether chance explains it; reads no table.

A group is the repetitions of one configuration: a row of `summary` for each run. Every metric is one value a
run, so that runs, and not deliveries, are what the statistics count: those of one run are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda_spark.metrics import METRICS, Metric
from panda_spark.refusal import Refused
from panda_spark.statistics import ALPHA, Difference, Estimate, difference, estimate, holm
from panda_spark.thresholds import Threshold, thresholds_of

TOLD_MAX = 5  # significant metrics that the sentence names; the rows have all
MEDIAN_RUNS_MIN = 6  # with fewer, even smallest and greatest enclose the median less often than in 95 %

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that are taken together, with what they were configured by."""

    name: str  # A or B
    rows: Sequence[Mapping[str, Any]]
    configs: Sequence[str | None]  # of each run; None when it is not known

    @property
    def runs(self) -> list[str]:
        return [str(row["run"]) for row in self.rows]

    @property
    def one_config(self) -> bool:
        """Whether its runs are known to be repetitions of one configuration."""
        return len(set(self.configs)) == 1 and None not in self.configs

    def values(self, metric: Metric) -> list[float | None]:
        return [_number(row.get(metric.name)) for row in self.rows]

    def data(self) -> Row:
        return {"runs": self.runs, "configs": list(self.configs), "one_config": self.one_config}


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Group
    b: Group
    rows: list[Row]  # one for each metric that at least one run has
    notes: list[str]
    sentence: str

    @property
    def crossed(self) -> list[str]:
        """The thresholds that are crossed, or that nothing can be said about: neither may pass unseen."""
        return [row["threshold"] for row in self.rows if row["threshold"] and row["crossed"] is not False]

    def data(self) -> Row:
        return {
            "a": self.a.data(),
            "b": self.b.data(),
            "metrics": self.rows,
            "crossed": self.crossed,
            "notes": self.notes,
            "sentence": self.sentence,
        }


def compare(
    a: Sequence[Mapping[str, Any]],
    b: Sequence[Mapping[str, Any]],
    *,
    configs: Mapping[str, str | None] | None = None,
    thresholds: Sequence[str] = (),
) -> Comparison:
    """B against A, from their rows of `summary`; `configs` is the column of `runs`, by run."""
    limits = {limit.metric.name: limit for limit in thresholds_of(thresholds)}
    group_a, group_b = _groups(a, b, configs or {})
    rows = [_row(metric, group_a, group_b, limits.get(metric.name)) for metric in METRICS]
    rows = [row for row in rows if row["a_runs"] or row["b_runs"] or row["threshold"]]
    for row, corrected in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_corrected"] = corrected
        row["significant"] = corrected is not None and corrected <= ALPHA
    return Comparison(group_a, group_b, rows, _notes(group_a, group_b), _sentence(group_a, group_b, rows))


def _groups(
    a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], configs: Mapping[str, str | None]
) -> tuple[Group, Group]:
    groups = [
        Group(name, rows, [configs.get(str(row["run"])) for row in rows])
        for name, rows in (("A", a), ("B", b))
    ]
    seen: dict[str, str] = {}
    for group in groups:
        if not group.rows:
            raise Refused(f"group {group.name} has no run", "name at least one run for each group")
        for run in group.runs:
            if run in seen:
                where = f"twice in {group.name}" if seen[run] == group.name else "in both groups"
                raise Refused(f"the run {run} is {where}", "a run counts once: leave one of them out")
            seen[run] = group.name
    return groups[0], groups[1]


def _row(metric: Metric, a: Group, b: Group, limit: Threshold | None) -> Row:
    values_a, values_b = a.values(metric), b.values(metric)
    of_a, of_b = estimate(values_a), estimate(values_b)
    apart = difference(values_a, values_b)
    low, high = apart.interval or (None, None)
    share_low, share_high = apart.share_interval or (None, None)
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        **_estimated("a", of_a),
        **_estimated("b", of_b),
        "difference": apart.difference,
        "difference_low": low,
        "difference_high": high,
        "difference_share": apart.share,
        "difference_share_low": share_low,
        "difference_share_high": share_high,
        "p_value": apart.p_value,
        "p_corrected": None,
        "significant": False,
        "threshold": limit.text if limit else None,
        "crossed": limit.crossed(of_a.mean, of_b.mean) if limit else None,
        "method": _method(apart, of_a, of_b),
    }


def _estimated(prefix: str, of: Estimate) -> Row:
    low, high = of.mean_interval or (None, None)
    median_low, median_high = of.median_interval or (None, None)
    return {
        f"{prefix}_runs": of.runs,
        f"{prefix}_missing": of.missing,
        f"{prefix}_mean": of.mean,
        f"{prefix}_low": low,
        f"{prefix}_high": high,
        f"{prefix}_median": of.median,
        f"{prefix}_median_low": median_low,
        f"{prefix}_median_high": median_high,
    }


def _method(apart: Difference, of_a: Estimate, of_b: Estimate) -> str:
    medians = [
        f"{of.median_method} bootstrap of {name}'s median"
        for name, of in (("A", of_a), ("B", of_b))
        if of.median_method
    ]
    return "; ".join([apart.method, *medians])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _notes(a: Group, b: Group) -> list[str]:
    """What a reader must know before believing a row."""
    notes = []
    for group in (a, b):
        known = sorted({config for config in group.configs if config is not None})
        if len(group.rows) == 1:
            notes.append(f"{group.name} is one run: no interval, and nothing can be called significant")
        elif len(group.rows) < MEDIAN_RUNS_MIN:
            notes.append(
                f"{group.name} has {len(group.rows)} runs: too few for an interval of the median "
                f"that holds in 95 % of cases; it takes {MEDIAN_RUNS_MIN}"
            )
        if len(known) > 1:
            notes.append(
                f"the runs of {group.name} are not repetitions of one experiment, but of {len(known)}: "
                "what differs between those counts as chance here"
            )
        elif None in group.configs:
            notes.append(f"the configuration of some runs of {group.name} is not known")
    if a.one_config and b.one_config and a.configs[0] == b.configs[0]:
        notes.append("A and B are repetitions of the same experiment: only chance or the machines differ")
    return notes


def _sentence(a: Group, b: Group, rows: list[Row]) -> str:
    """What differs, by how much, and whether chance explains it."""
    who = f"B ({_count(len(b.rows), 'run')}) against A ({_count(len(a.rows), 'run')})"
    told = [row for row in rows if row["significant"]]
    told.sort(key=lambda row: (_verdict(row) != "worse", row["p_corrected"]))
    tested = sum(row["p_value"] is not None for row in rows)
    if told:
        named = "; ".join(_told(row) for row in told[:TOLD_MAX])
        more = f"; and {len(told) - TOLD_MAX} more" if len(told) > TOLD_MAX else ""
        said = f"{who}: {named}{more}. {len(told)} of {_count(tested, 'metric')} that could be tested differ"
        said += f"{'s' * (len(told) == 1)} significantly (Holm, 5 %)."
    elif tested:
        said = f"{who}: none of {_count(tested, 'metric')} that could be tested differs significantly."
    elif any(row["difference"] for row in rows):
        said = f"{who}: {_largest(rows)}, but too few runs to tell a difference from chance."
    else:
        said = f"{who}: every metric that both have is the same."
    return said + _crossed(rows)


def _told(row: Row) -> str:
    metric = next(metric for metric in METRICS if metric.name == row["metric"])
    change, share = row["difference"], row["difference_share"]
    size = metric.show(abs(change))
    if share is not None:
        size += f" ({share:+.1%})".replace("%", " %")
    verdict = _verdict(row)
    text = f"{row['metric']} is {'higher' if change > 0 else 'lower'} by {size}"
    if row["p_corrected"] is not None:
        text += f", p = {row['p_corrected']:.2g}"
    return f"{text}, {verdict}" if verdict else text


def _verdict(row: Row) -> str:
    if not row["better"] or not row["difference"]:
        return ""
    return "better" if (row["difference"] > 0) == (row["better"] == "higher") else "worse"


def _largest(rows: list[Row]) -> str:
    differing = [row for row in rows if row["difference"]]
    return _told(max(differing, key=lambda row: (_verdict(row) != "", abs(row["difference_share"] or 0.0))))


def _crossed(rows: list[Row]) -> str:
    crossed = [row["threshold"] for row in rows if row["crossed"]]
    unknown = [row["threshold"] for row in rows if row["threshold"] and row["crossed"] is None]
    held = [row["threshold"] for row in rows if row["crossed"] is False]
    parts = [
        f" {word}: {', '.join(texts)}."
        for word, texts in (("Crossed", crossed), ("Cannot be judged", unknown), ("Held", held))
        if texts
    ]
    return "".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
