"""Decides how one snapshot is made of what agents and brokers have told; asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from panda.deploy.view import ProcessView, RunView, missing
from panda.experiment.looking import state_of
from panda.plan.model import Plan, PlannedProcess, PlannedStep
from panda_tui.model import HostRow, Process, Snapshot, StepRow
from panda_tui.network import STATES, overlay_of

if TYPE_CHECKING:
    from panda_tui.agents import AgentFeed, Facts
    from panda_tui.brokers import BrokerFeed

SILENT_MIN_S = 3.0
SILENT_PACES = 4


def snapshot_of(agents: AgentFeed | None, brokers: BrokerFeed, now: float) -> Snapshot:
    silent_s = max(SILENT_MIN_S, SILENT_PACES * brokers.every_s)
    alone = Snapshot(
        at=now,
        state="watching a broker",
        connection=brokers.connection,
        connected_to=brokers.connected_to,
        why=brokers.why,
    )
    if agents is None:
        overlay = overlay_of(None, brokers.heard, brokers.is_ours, now, silent_s)
        return replace(alone, overlay=overlay)
    with agents.lock:
        view = agents.view
        state = state_of(view, agents.t0, present=agents.present)
        lacking = missing(view) if agents.t0 is None and agents.present else []
        return replace(
            alone,
            run=agents.folder.id,
            state=state,
            t0=agents.t0,
            holder=agents.holder,
            hosts=tuple(
                _host(host.name, host.where, agents.facts[host.name], view) for host in view.plan.hosts
            ),
            processes=tuple(_process(each) for each in view.processes.values()),
            steps=steps_of(view.plan, view, agents.t0, _offsets(agents.facts)),
            marks=_marks(view, agents.t0),
            missing=tuple(map(str, lacking)),
            overlay=overlay_of(view, brokers.heard, brokers.is_ours, now, silent_s),
        )


def _offsets(facts: Mapping[str, Facts]) -> dict[str, float]:
    return {name: each.offset.offset_s for name, each in facts.items() if each.offset is not None}


def _host(name: str, where: str, facts: Facts, view: RunView) -> HostRow:
    known, measured, offset = view.hosts[name], facts.measured, facts.offset
    load = measured.get("load")
    return HostRow(
        name=name,
        where=where,
        present=facts.present,
        why=facts.why,
        offset_s=offset.offset_s if offset else None,
        error_s=offset.error_s if offset else None,
        drift=facts.drift,
        load=float(load) if isinstance(load, int | float) else None,
        cpus=int(measured.get("cpus") or 0),
        disk_free_bytes=int(measured.get("disk_free_bytes") or 0),
        memory_free_bytes=int(measured.get("memory_free_bytes") or 0),
        faults=tuple(" ".join(filter(None, key)) for key in known.faults),
        troubles=tuple(known.troubles[-5:]),
    )


def _process(each: ProcessView) -> Process:
    planned = each.planned
    return Process(
        id=planned.id,
        host=planned.host,
        state=STATES[each.stage],
        kind=kind_of(planned),
        speaks=planned.speaks,
        pid=each.pid,
        starts=each.starts,
        address=planned.address,
        ended=each.ended,
        last=each.last,
        links=tuple(sorted(peer for peer, up in each.links.items() if up)),
    )


def kind_of(planned: PlannedProcess) -> str:
    if planned.kind == "command":
        return "command"
    return "broker" if planned.is_broker else "client"


# The schedule


def steps_of(
    plan: Plan, view: RunView, t0: float | None, offsets: Mapping[str, float]
) -> tuple[StepRow, ...]:
    rows = []
    for step in plan.steps:
        done = view.steps.get(step.number)
        actual_s = None
        if done is not None and done.actual is not None and t0 is not None:
            theirs = view.hosts[step.host].t0
            # By the host's own clock if it knows T0, so that an offset that was measured later moves nothing.
            zero = theirs if theirs is not None else t0 + offsets.get(step.host, 0.0)
            actual_s = done.actual - zero
        rows.append(
            StepRow(
                number=step.number,
                at_s=step.at_s,
                action=step.action,
                text=words_of(step),
                ends=tuple(sorted((_speaks(plan, step.process), step.peer))) if step.peer else (),
                host=step.host,
                process=step.process,
                for_s=step.for_s,
                actual_s=actual_s,
                error=done.error if done is not None else "",
                line=step.line,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.at_s, row.number)))


def _speaks(plan: Plan, process: str) -> str:
    return next((each.speaks for each in plan.processes if each.id == process), process)


def words_of(step: PlannedStep) -> str:
    if step.action == "mark":
        return f"MARK {step.text}"
    if step.action == "fault":
        value = "" if step.value is None else f" {step.value:g}"
        lease = f" for {step.for_s:g} s" if step.for_s else ""
        return f"{step.fault} {step.process} – {step.peer}{value}{lease}"
    if step.action == "heal":
        return f"heal {step.process} {step.peer}".rstrip()
    lease = f" for {step.for_s:g} s" if step.for_s else ""
    return f"{step.action} {step.process}{lease}"


def _marks(view: RunView, t0: float | None) -> tuple[tuple[float, str], ...]:
    return tuple((at - t0, text) for at, text in view.marks) if t0 is not None else ()
