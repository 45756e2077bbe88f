"""Decides what a report says in words: the run in a sentence, its headline figures, what each fault did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from panda_spark.report.data import ComparisonData, Row, RunData, count, number, text
from panda_spark.report.words import counted, digits, ident, listed, plain, seconds, share, short, size

EMPTY: Row = {}


def sentence(
    summary: Row,
    *,
    run: Row = EMPTY,
    faults: Sequence[Row] = (),
    subscribers: int | None = None,
    doubts: bool = True,
) -> str:
    """The run in one sentence, of its row of `summary` and, where they are known, `runs` and `faults`.

    `doubts` are what the logs do not tell; a page that says them anyway leaves them out here.
    """
    if not summary:
        return "Nothing is known of this run: its summary is empty."
    said = f"{_carried(summary, run, subscribers)}{_arrived(summary)}{_within(summary)}"
    more = [each for each in (_faults(summary, faults), _doubts(summary) if doubts else "") if each]
    return "; ".join([said, *more]) + "."


def _carried(summary: Row, run: Row, subscribers: int | None) -> str:
    brokers = count(run, "brokers")
    who = counted(brokers, "broker") if brokers else "The network"
    published = count(summary, "published")
    if not published:
        why = ", for there were no clients" if "clients" in run and not count(run, "clients") else ""
        lasted = number(summary, "duration_s")
        ran = f" ran for {seconds(lasted)}" if lasted else " ran"
        return f"{who}{ran}, and nothing was published{why}"
    whom = f" to {counted(subscribers, 'subscriber')}" if subscribers else ""
    verb = "carried" if count(summary, "expected") or arrived(summary) else "took"
    return f"{who} {verb} {counted(published, 'publication')}{whom}"


def arrived(summary: Row) -> int:
    """Deliveries that were asked for and came: every pair has exactly one verdict."""
    return sum(count(summary, each) for each in ("delivered", "late", "twice", "out_of_order"))


def _arrived(summary: Row) -> str:
    if not count(summary, "published"):
        return ""
    came, expected = arrived(summary), count(summary, "expected")
    judged = came + count(summary, "lost")
    if not expected and not judged:
        extra = count(summary, "unexpected")
        return f", which nobody asked for{f', yet {digits(extra)} arrived' if extra else ''}"
    flaws = [
        f"{digits(count(summary, column))} {words}"
        for column, words in (
            ("late", "late"),
            ("twice", "more than once"),
            ("out_of_order", "out of order"),
        )
        if count(summary, column)
    ]
    how = f", {listed(flaws)}" if flaws else ", once and in order"
    lost = count(summary, "lost")
    if not judged:
        told = ": whether any delivery arrived is not known"
    elif not came:
        told = f": none of {counted(judged, 'delivery', 'deliveries')} arrived"
    elif lost:
        told = f": {digits(lost)} of {counted(judged, 'delivery', 'deliveries')} got lost"
        told += f", the other {digits(came)} arrived{how}"
    elif came == 1:
        told = f": the one delivery arrived{how}"
    else:
        told = f": all {digits(came)} deliveries arrived{how}"
    extra = count(summary, "unexpected")
    return told + (f", and {digits(extra)} came that nobody asked for" if extra else "")


def _within(summary: Row) -> str:
    half, most = number(summary, "latency_p50_s"), number(summary, "latency_p99_s")
    if half is None or not arrived(summary):
        return ""
    return f", half of them within {seconds(half)}" + (f", 99 % within {seconds(most)}" if most else "")


def _faults(summary: Row, faults: Sequence[Row]) -> str:
    amount = max(len(faults), count(summary, "faults"))
    if not amount:
        return ""
    if not faults:
        return f"there {'was one fault' if amount == 1 else f'were {amount} faults'}"
    known = len(faults) == amount  # of very many not all are at hand, and the worst may be among the others
    gaps = [gap for each in faults if known and (gap := number(each, "gap_s")) is not None]
    longest = f" kept somebody waiting for {seconds(max(gaps))}" if gaps else ""
    if amount == 1:
        return f"one fault ({named(faults[0])}){longest}"
    return f"{amount} faults" + (f", the worst of which{longest}" if gaps else "")


def _doubts(summary: Row) -> str:
    doubts = [
        f"{digits(amount)} {words}"
        for column, words in (("unknown", "cannot be told"), ("unsettled", "can be judged either way"))
        if (amount := count(summary, column))
    ]
    missing, quarantined = count(summary, "missing"), count(summary, "quarantined")
    if missing:
        doubts.append(f"{counted(missing, 'log')} did not come home")
    if quarantined:
        doubts.append(f"{counted(quarantined, 'line')} could not be read")
    failed = count(summary, "failed")
    if failed:
        doubts.append(f"{counted(failed, 'process', 'processes')} ended unexpectedly")
    return listed(doubts)


def run_sentence(data: RunData) -> str:
    subscribers = {text(row, "subscriber") for row in data.rows("verdicts")} - {""}
    return sentence(
        data.first("summary"),
        run=data.first("runs"),
        faults=data.rows("faults"),
        subscribers=len(subscribers) or None,
        doubts=False,
    )


def named(fault: Row) -> str:
    """cut Bob–Carol, delay 50 ms Bob–Carol, kill Dave."""
    kind, value = text(fault, "fault") or "fault", number(fault, "value")
    much = ""
    if value is not None:
        shown = {"delay": seconds(value), "loss": share(value), "rate": f"{size(value)}/s"}
        much = f" {shown.get(kind, plain(value))}"
    ends = "–".join(ident(each, 24) for each in (text(fault, "a"), text(fault, "b")) if each)
    return f"{short(kind, 20)}{much}{f' {ends}' if ends else ''}"


def fault_sentence(fault: Row) -> str:
    """What a fault did, as far as the deliveries tell."""
    published = count(fault, "published")
    gap, recover = number(fault, "gap_s"), number(fault, "recover_s")
    said = []
    if published:
        lost, late = count(fault, "lost"), count(fault, "late")
        fate = [f"{digits(n)} {word}" for n, word in ((lost, "lost"), (late, "late")) if n]
        told = listed(fate) if fate else "none lost, none late"
        said.append(f"{counted(published, 'publication')} meanwhile: {told}")
    else:
        said.append("nothing was published meanwhile")
    if gap is not None:
        said.append(f"longest silence for somebody concerned {seconds(gap)}")
    if recover is not None:
        said.append(f"deliveries flowed as before {seconds(recover)} after its end")
    before, during = number(fault, "p50_before_s"), number(fault, "p50_during_s")
    if before is not None and during is not None:
        said.append(f"median latency {seconds(before)} before, {seconds(during)} during")
    return "; ".join(said) + "."


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure at the top. `state` is good, bad or plain; the page writes the word beside the colour."""

    label: str
    value: str
    note: str
    state: str = "plain"


def headlines(data: RunData) -> list[Headline]:
    summary = data.first("summary")
    if not summary:
        return []
    found = [_delivery(summary), _order(summary)]
    if number(summary, "latency_p50_s") is not None:
        error = number(summary, "latency_error_s")
        note = f"99 % within {seconds(number(summary, 'latency_p99_s'))}"
        note += f"; clocks ± {seconds(error)}" if error else ""
        found.append(Headline("Median latency", seconds(number(summary, "latency_p50_s")), note))
    if count(summary, "published"):
        rate = number(summary, "published_per_s")
        note = f"published; {plain(number(summary, 'delivered_per_s'))} delivered per s"
        found.append(Headline("Rate", f"{plain(rate)} /s", note))
    faults = len(data.rows("faults")) or count(summary, "faults")
    gaps = [gap for row in data.rows("faults") if (gap := number(row, "gap_s")) is not None]
    note = f"longest silence {seconds(max(gaps))}" if gaps else "of links and processes"
    found.append(Headline("Faults injected", digits(faults), note))
    late = number(summary, "schedule_max_s")
    if late is not None:
        note = f"late at worst; half within {seconds(number(summary, 'schedule_p50_s'))}"
        found.append(Headline("Schedule", seconds(late), note, "good" if abs(late) <= 0.1 else "bad"))
    failed = count(summary, "failed")
    if failed:
        found.append(Headline("Processes", digits(failed), "ended unexpectedly", "bad"))
    else:
        found.append(Headline("Processes", "all well", "none ended unexpectedly", "good"))
    return found


def _delivery(summary: Row) -> Headline:
    came, lost = arrived(summary), count(summary, "lost")
    if not came + lost:
        return Headline("Delivered", "–", "nothing that could be judged")
    note = f"{digits(came)} of {digits(came + lost)}" + (f"; {digits(lost)} lost" if lost else "; none lost")
    return Headline("Delivered", share(came / (came + lost)), note, "bad" if lost else "good")


def _order(summary: Row) -> Headline:
    flaws = [
        f"{digits(count(summary, column))} {word}"
        for column, word in (
            ("late", "late"),
            ("twice", "twice"),
            ("out_of_order", "out of order"),
            ("unexpected", "unexpected"),
        )
        if count(summary, column)
    ]
    came = arrived(summary) + count(summary, "unexpected")
    if not came:
        return Headline("Flawless", "–", "no deliveries")
    right = count(summary, "delivered") / came
    return Headline(
        "Flawless",
        share(right),
        ", ".join(flaws) or "each once, in order, in time",
        "bad" if flaws else "good",
    )


def problems(data: RunData) -> list[str]:
    """What a reader must know before he believes the rest."""
    summary = data.first("summary")
    missing = data.rows("missing")
    found = []
    if missing or count(summary, "missing"):
        names = [short(text(row, "process") or text(row, "host"), 30) for row in missing[:6]]
        amount = max(len(missing), count(summary, "missing"))
        more = f": {', '.join(names)}{' …' if amount > len(names) else ''}" if names else ""
        found.append(
            f"{counted(amount, 'log or host', 'logs or hosts')} did not come home{more}. "
            "What only they would tell is counted as unknown."
        )
    quarantined = count(summary, "quarantined") or len(data.rows("quarantine"))
    if quarantined:
        found.append(f"{counted(quarantined, 'line')} of the logs could not be read and stand in quarantine.")
    if count(summary, "unknown"):
        found.append(f"Of {counted(count(summary, 'unknown'), 'delivery', 'deliveries')} nothing is known.")
    if count(summary, "failed"):
        found.append(f"{counted(count(summary, 'failed'), 'process', 'processes')} ended unexpectedly.")
    return found


def comparison_sentence(data: ComparisonData) -> str:
    """What differs, in one sentence, where the caller has none of his own."""
    if data.sentence:
        return data.sentence
    if not data.metrics:
        return "There is nothing to compare: no metric is known of both groups."
    crossed = [short(text(row, "metric"), 40) for row in data.metrics if row.get("crossed") is True]
    told = [
        f"{short(text(row, 'metric'), 40)} {'+' if (part or 0) > 0 else ''}{plain((part or 0) * 100)} %"
        for row in data.metrics
        if row.get("significant") is True and (part := number(row, "difference_share")) is not None
    ]
    if told:
        rest = f" and {len(told) - 5} more" if len(told) > 5 else ""
        said = f"B differs from A by more than chance explains in {listed(told[:5])}{rest}"
    else:
        said = "No metric differs between A and B by more than chance explains"
    limits = f"; {counted(len(crossed), 'threshold')} crossed: {listed(crossed)}" if crossed else ""
    return f"{said}{limits}."
