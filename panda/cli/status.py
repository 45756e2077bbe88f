"""`panda status` and `panda ls`: what a run does, and which runs there are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from panda.cli import ground, printing

if TYPE_CHECKING:
    from panda.experiment.folder import RunFolder
    from panda.experiment.looking import Look


def status(
    wanted: ground.RunArgument = "",
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Show a run: processes, links, clocks, times.

    Watching needs no lock, so it works while a controller steers.

    Example: panda status
    """
    with ground.failing():
        from panda.experiment.looking import look

        folder = ground.find_run(runs, wanted)
        crew = ground.crew_of(folder.id)
        found = look(folder, folder.read_plan(), crew)
        try:
            data = status_data(folder, found)
            printing.result(data, status_text(data), as_json=as_json)
        finally:
            found.close()
            crew.close()


def status_data(folder: RunFolder, found: Look) -> dict[str, Any]:
    from panda.experiment.looking import state_of

    view = found.view
    failures = {error.host: error.reason for error in found.failures}
    return {
        "run": folder.id,
        "state": state_of(view, found.t0, present=bool(found.sessions)),
        "controller": folder.held,
        "t0": found.t0,
        "since_t0_s": round(time.time() - found.t0, 3) if found.t0 and found.sessions else None,
        "hosts": {
            name: {
                "present": host.present,
                "why": failures.get(name, "nothing of it is left here" if name in found.cleaned else ""),
                "offset_s": found.offsets[name].offset_s if name in found.offsets else None,
                "error_s": found.offsets[name].error_s if name in found.offsets else None,
                "troubles": host.troubles[-5:],
                "faults": [" ".join(filter(None, key)) for key in host.faults],
            }
            for name, host in view.hosts.items()
        },
        "processes": [
            {
                "id": each.planned.id,
                "host": each.planned.host,
                "stage": str(each.stage),
                "pid": each.pid,
                "ended": each.ended,
                "address": each.planned.address,
                "links": dict(each.links),
            }
            for each in view.processes.values()
        ],
        "links": [
            {"a": link.a, "b": link.b, "up": list(view.link_up(link.a, link.b))} for link in view.plan.links
        ],
        "steps_planned": sum(step.at_s > 0 for step in view.plan.steps),
        "steps": [
            {
                "number": step.number,
                "action": step.action,
                "process": step.process,
                "host": step.host,
                "planned": step.planned,
                "actual": step.actual,
                "late_s": step.late_s,
                "error": step.error,
            }
            for step in sorted(view.timed_steps, key=lambda step: (step.planned, step.number))
        ],
    }


def status_text(data: dict[str, Any]) -> str:
    after = f", {data['since_t0_s']:.1f} s after phase 2 began" if data["since_t0_s"] is not None else ""
    lines = [f"{data['run']}: {data['state']}{after}"]
    for name, host in data["hosts"].items():
        if host["offset_s"] is None:
            lines.append(f"  {name:<18} {host['why'] or 'no agent'}")
        else:
            clock = f"clock {1000 * host['offset_s']:+.2f} ms ± {1000 * host['error_s']:.2f}"
            faults = f", faults: {', '.join(host['faults'])}" if host["faults"] else ""
            lines.append(f"  {name:<18} {clock}{faults}")
        lines += [f"    {text}" for text in host["troubles"]]
    for each in data["processes"]:
        up = [peer for peer, there in each["links"].items() if there]
        about = f"pid {each['pid']}" if each["stage"] in ("starting", "ready", "paused") else each["ended"]
        linked = f", linked with {', '.join(up)}" if up else ""
        lines.append(f"  {each['id']:<18} {each['stage']:<9} on {each['host']} {about}{linked}")
    broken = [link for link in data["links"] if not all(link["up"])]
    lines += [f"  link {link['a']} – {link['b']} is not up" for link in broken if data["state"] == "running"]
    late = [step["late_s"] for step in data["steps"] if step["late_s"] is not None]
    if late:
        done = f"{len(late)} of {data['steps_planned']} timed steps done"
        lines.append(f"  {done}, at most {1000 * max(late):.1f} ms late")
    return "\n".join(lines)


def ls(runs: ground.RunsOption = ground.RUNS, as_json: printing.JsonOption = False) -> None:
    """List the runs, the newest last.

    Example: panda ls
    """
    from panda.experiment.folder import RunFolder

    with ground.failing():
        rows = [_row(folder) for folder in RunFolder.all(runs)]
    if as_json:
        for row in rows:
            printing.result(row, "", as_json=True)
    elif not rows:
        printing.note(f"there are no runs in {runs}/")
    else:
        width = max(len(row["run"]) for row in rows)
        for row in rows:
            hosts = printing.counted(row["hosts"], "host")
            size = f"{printing.counted(row['processes'], 'process', 'processes')}, {hosts}"
            printing.result(row, f"{row['run']:<{width}}  {row['state']:<14} {size}")


def _row(folder: RunFolder) -> dict[str, Any]:
    state = "steered" if folder.held else ""
    went, finish, cleaned = False, "", folder.cleaned()
    for entry in folder.journal():
        kind = entry.get("kind")
        went = went or kind == "go"
        finish = str(entry.get("result")) if kind == "finish" else finish
        finish = "unreached" if kind == "unreached" else finish
    plan = folder.read_plan()
    if not state:
        state = finish or ("left alone" if went else "not begun")
        if cleaned and finish in ("running", "stopped", ""):
            state = "stopped" if folder.over else "partly stopped"
    return {
        "run": folder.id,
        "state": state,
        "name": plan.name,
        "processes": len(plan.processes),
        "hosts": len(plan.hosts),
        "folder": str(folder.path),
    }
