"""Decides whether clients were answered as they were promised: acknowledged, refused, confirmed, or told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from broker_runtime.client_core import Acknowledged, Confirmed, Connected, Disconnected, Lost, Refused
from broker_runtime.language.messages import Advertisement, Content
from broker_runtime.sim import history as past
from broker_runtime.sim.history import Call, History


def every_call_answered(history: History) -> Iterator[str]:
    """In a quiet network each publication has one answer, and each unsubscription its confirmation."""
    if history.problems:
        return  # it never became quiet
    answers: dict[str, list[str]] = defaultdict(list)
    confirmed: set[str] = set()
    for h in history.happened:
        if isinstance(h.happening, Acknowledged | Refused | Lost):
            answers[h.happening.id].append(type(h.happening).__name__)
        elif isinstance(h.happening, Confirmed):
            confirmed.add(h.happening.id)
    gone = {client for _, client in history.departures}
    for call in history.calls:
        if call.kind == past.PUBLISH:
            told = answers[call.id]
            if len(told) > 1 or (not told and call.client not in gone):
                yield f"{call.id} was answered {told}"
        elif call.kind == past.UNSUBSCRIBE and call.id not in confirmed and call.client not in gone:
            yield f"the unsubscription of {call.id} was not confirmed"


def refused_as_promised(history: History) -> Iterator[str]:
    """Refused is what no own advertisement allows, and nothing else."""
    refused = {h.happening.id: h.happening for h in history.happened if isinstance(h.happening, Refused)}
    refused_at = {h.happening.id: h.order for h in history.happened if isinstance(h.happening, Refused)}
    acknowledged = {
        h.happening.id: h.order for h in history.happened if isinstance(h.happening, Acknowledged)
    }
    ends = {call.id: call.order for call in history.calls if call.kind == past.UNADVERTISE}
    promises: dict[str, list[tuple[Call, Advertisement]]] = defaultdict(list)
    for call in history.calls:
        if isinstance(call.body, Advertisement):
            promises[call.client].append((call, call.body))
    for call in history.calls:
        if call.kind != past.PUBLISH:
            if call.id in refused:
                yield f"{call.kind} {call.id} was refused: {refused[call.id].message}"
            continue
        content: Content = call.body  # type: ignore[assignment]
        if call.urgent:  # another lane: advertisements are not before it or after it
            if call.id in acknowledged and not any(
                each.induces(content) for _, each in promises[call.client]
            ):
                yield f"{call.id} {content} was taken although it was never advertised"
            continue
        made = [
            (promise.order, ends.get(promise.id, 1 << 60))
            for promise, advertisement in promises[call.client]
            if advertisement.induces(content)
        ]
        if call.id in refused:
            if refused[call.id].code != "NOT_ADVERTISED":
                yield f"{call.id} was refused with {refused[call.id].code}"
            until = call.order if call.with_session else refused_at[call.id]  # else they are made again first
            if any(start < call.order and end > until for start, end in made):
                yield f"{call.id} {content} was refused although it was advertised"
        elif call.id in acknowledged and not _allowed(call, made, acknowledged[call.id]):
            yield f"{call.id} {content} was taken although it was not advertised"


def _allowed(call: Call, made: list[tuple[int, int]], acknowledged: int) -> bool:
    """With a session the call's own moment counts; without, advertisements made meanwhile go first."""
    until = call.order if call.with_session else acknowledged
    return any(start < until and end > call.order for start, end in made)


def confirmed_when_gone(history: History) -> Iterator[str]:
    """When a client hears that its unsubscription is done, no broker has the subscription any more."""
    lost = {window for window, _, _ in (*history.links_ended, *history.links_opened)}
    lost |= {window for window, _ in history.restarts}
    fresh = _windows_with_lost_sessions(history)
    for each in history.confirmations:
        if each.holders and each.window not in lost and (each.client, each.window) not in fresh:
            yield f"{each.id} was confirmed while {', '.join(each.holders)} had it"


def _windows_with_lost_sessions(history: History) -> set[tuple[str, int]]:
    return {
        (h.client, h.window)
        for h in history.happened
        if (isinstance(h.happening, Connected) and not h.happening.resumed)
        or (isinstance(h.happening, Disconnected) and h.happening.reason == "expired")
    }
