"""50 hosts with sshd as it comes: all of them at once, and then with one that hangs."""

from __future__ import annotations

import json

from tests.deployment.panda import Panda, wait_until
from tests.soak.ground import (
    Entry,
    Options,
    Part,
    bed_of,
    journals,
    left_on_all,
    newest_run,
    panda_on,
    quantiles_ms,
    timed,
)

HOSTS = 50
PORT = 10_000
HANG_S = 15.0
MORE_S = 5.0  # what the others need anyway, on a busy machine
FIVE = 5
STEPS = 100
STEP_EVERY_S = 0.2
STEP_LATE_S = 0.1


def soak(options: Options) -> list[str]:
    count = options.count or HOSTS
    with bed_of(count, options.folder) as bed:
        part = Part(bed, bed.hosts)
        panda = panda_on(part, options.folder)
        (panda.folder / "topo.txt").write_text(topology(part))
        try:
            wrong = _all_well(panda, part)
            wrong += _one_hangs_from_the_start(panda, part)
            bed.heal()
            wrong += _one_hangs_on_the_way(panda, part)
        finally:
            panda.close()
            bed.heal()
    return wrong


def topology(part: Part) -> str:
    lines = []
    for number, host in enumerate(part.hosts):
        near = f" -n {part.hosts[(number - 1) // 3].address}:{PORT}" if number else ""
        lines.append(f"0 ADD B{number} {host.address} startbroker.sh -p {PORT} -i B{number}{near}")
    return "\n".join(lines) + "\n"


def _all_well(panda: Panda, part: Part) -> list[str]:
    wrong = []
    took = timed()
    doctor = panda("doctor", "topo.txt", *panda.inventory, "--json")
    print(f"  doctor looked at {len(part.hosts)} hosts in {took():.1f} s: exit code {doctor.code}")
    if doctor.code != 0:
        wrong.append(f"doctor: {doctor.code} {doctor.out[-600:]} {doctor.err[-300:]}")
    took = timed()
    ended = panda("deploy", "topo.txt", *panda.inventory, "--yes")
    print(
        f"  a broker on each of {len(part.hosts)} hosts, deployed in {took():.1f} s: exit code {ended.code}"
    )
    if ended.code != 0:
        wrong.append(f"deploy: {ended.code} {ended.out[-600:]} {ended.err[-600:]}")
    took = timed()
    stopped = panda("stop")
    print(f"  stopped, collected and cleaned in {took():.1f} s")
    if stopped.code != 0:
        wrong.append(f"stop: {stopped.code} {stopped.err[-600:]}")
    left = left_on_all(part)
    return [*wrong, *([f"left behind: {left}"] if left else [])]


def _one_hangs_from_the_start(panda: Panda, part: Part) -> list[str]:
    wrong = []
    frozen = part.hosts[len(part.hosts) // 2]
    frozen.freeze()
    took = timed()
    doctor = panda("doctor", "topo.txt", *panda.inventory, "--json")
    doctor_s = took()
    named = [host["host"] for host in doctor.data["hosts"] if not host["fit"]]
    took = timed()
    ended = panda("deploy", "topo.txt", *panda.inventory, "--yes")
    deploy_s = took()
    print(f"  with one that hangs: doctor {doctor_s:.1f} s, deploy {deploy_s:.1f} s, exit code {ended.code}")
    if max(doctor_s, deploy_s) > HANG_S + MORE_S:
        wrong.append(f"a host that hangs cost doctor {doctor_s:.1f} s and deploy {deploy_s:.1f} s")
    if named != [frozen.address]:
        wrong.append(f"doctor names {named}, not {frozen.address}")
    if ended.code != 3 or frozen.address not in ended.err:
        wrong.append(f"deploy does not name {frozen.address}: {ended.code} {ended.err[-500:]}")
    others = [host.address for host in part.hosts if host is not frozen]
    wrong += [f"deploy names {address} as well" for address in others if f"{address}:" in ended.err]
    frozen.thaw()
    left = left_on_all(part)
    return [*wrong, *([f"left behind: {left}"] if left else [])]


def _one_hangs_on_the_way(panda: Panda, part: Part) -> list[str]:
    """Five hosts have steps to do; one of them stops answering, and no step may notice."""
    five = part.some(FIVE)
    frozen = five.hosts[-1]
    lines = topology(five)
    for number in range(STEPS):
        address = five.hosts[number % FIVE].address
        lines += f"{1 + STEP_EVERY_S * number:.1f} ADD X{number} {address} sleep 600\n"
    (panda.folder / "steps.txt").write_text(lines)
    wrong = []
    ended = panda("deploy", "steps.txt", *panda.inventory, "--yes", "--detach")
    folder = newest_run(panda)
    if ended.code != 5 or folder is None:
        return [f"deploy: {ended.code} {ended.err[-500:]}"]
    frozen.freeze()
    took = timed()
    status = panda("status", "--json")
    status_s = took()
    if status_s > HANG_S + MORE_S or frozen.address not in _absent(status.out):
        wrong.append(f"status took {status_s:.1f} s and says {status.out[-300:]} {status.err[-300:]}")
    done = [host.address for host in five.hosts]
    wait_until(lambda: all(_ended(journals(folder, five)[address]) for address in done), "the schedule ends")
    late_s = [
        entry["actual"] - entry["planned"]
        for entries in journals(folder, five).values()
        for entry in entries
        if entry["kind"] == "done" and entry["action"] == "add" and entry["process"].startswith("X")
    ]
    print(
        f"  one hangs on the way: status {status_s:.1f} s; {len(late_s)} steps late by {quantiles_ms(late_s)}"
    )
    if len(late_s) != STEPS or max(late_s) > STEP_LATE_S:
        wrong.append("steps were lost or late while a host hung")
    frozen.thaw()
    stopped = panda("stop")
    if stopped.code != 0:
        wrong.append(f"stop: {stopped.code} {stopped.err[-500:]}")
    left = left_on_all(part)
    return [*wrong, *([f"left behind: {left}"] if left else [])]


def _absent(out: str) -> list[str]:
    return [name for name, host in json.loads(out)["hosts"].items() if host["why"]] if out else []


def _ended(entries: list[Entry]) -> bool:
    return any(entry["kind"] == "ended" for entry in entries)
