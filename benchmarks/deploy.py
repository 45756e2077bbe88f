"""How long until 100 brokers on 20 hosts are up: `panda deploy` against an Ansible playbook for the same.

Both have the same hosts of the test bed, the same archive and the same brokers, one after the other. The
playbook is content when every broker listens; panda also waits until every link is up at both ends. The
playbook runs with Ansible's defaults, and again tuned: as many forks as hosts, pipelining, no facts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from panda.hosts.bundle import build
from tests.deployment.panda import Panda
from tests.soak.ground import Part, bed_of, newest_run, panda_on, read_entries
from tests.soak.soak_scale import FAN_OUT, FIRST_PORT, topology
from tests.testbed.bed import Bed, BedHost

PLAYBOOK = Path(__file__).with_name("deploy.yml")
THERE = "bench"  # the playbook's folder, in the login's home
PLAYBOOK_TIMEOUT_S = 900.0
GOAL = 5.0


@dataclass(frozen=True, slots=True)
class Time:
    name: str
    seconds: float
    gate_s: float | None = None  # until every broker was ready and every link up
    sent_bytes: int | None = None


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks deploy", description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="10 brokers on 4 hosts")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    options = parser.parse_args(argv)
    brokers, hosts = (10, 4) if options.quick else (options.brokers, options.hosts)
    with tempfile.TemporaryDirectory(prefix="pb-") as name, bed_of(hosts, Path(name)) as bed:
        load = os.getloadavg()[0]
        times = measure(bed, Path(name), brokers)
    report(times, brokers, hosts, load)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(time) for time in times], indent=1))
    return 0


def measure(bed: Bed, folder: Path, brokers: int) -> list[Time]:
    panda = panda_on(Part(bed, bed.hosts), folder / "panda")
    (panda.folder / "topo.txt").write_text(topology(bed.hosts, brokers))
    times = []
    try:
        archive = build(Path(panda.environment["XDG_CACHE_HOME"]) / "panda").path  # for both, and not timed
        times += [by_panda(panda, f"panda deploy, {state}") for state in ("cold", "warm")]
        for manner, state in (("", "cold"), ("", "warm"), (" tuned", "cold"), (" tuned", "warm")):
            name = f"ansible-playbook{manner}, {state}"
            try:
                times.append(by_playbook(bed, folder, archive, brokers, name, tuned=bool(manner)))
            finally:
                end_brokers(bed, forget=state == "warm")
    finally:
        panda.close()
    return times


def by_panda(panda: Panda, name: str) -> Time:
    begun = time.time()
    ended = panda("deploy", "topo.txt", *panda.inventory, "--yes", "--json")
    took_s = time.time() - begun
    stopped = panda("stop")
    folder = newest_run(panda)
    if ended.code or stopped.code or folder is None:
        raise SystemExit(f"{name}: {ended.code} {ended.err}\n{stopped.code} {stopped.err}")
    go = next(entry["t"] for entry in read_entries(folder / "journal.jsonl") if entry["kind"] == "go")
    return Time(name, took_s, go - begun, sum(ended.data["sent_bytes"].values()))


def by_playbook(bed: Bed, folder: Path, archive: Path, brokers: int, name: str, *, tuned: bool) -> Time:
    variables = folder / "variables.json"
    told = {"facts": not tuned, "archive": str(archive), "folder": f"/home/{bed.hosts[0].user}/{THERE}"}
    variables.write_text(json.dumps({**told, "brokers": brokers_of(bed.hosts, brokers)}))
    environment = {
        **os.environ,
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_PIPELINING": str(tuned),
        "ANSIBLE_SSH_COMMON_ARGS": f"-F {bed.ssh_config}",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    command = [str(Path(sys.executable).with_name("ansible-playbook"))]
    command += ["--forks", str(len(bed.hosts))] if tuned else []
    command += ["--inventory", str(bed.inventory_file), "--extra-vars", f"@{variables}", str(PLAYBOOK)]
    begun = time.time()
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PLAYBOOK_TIMEOUT_S,
        check=False,
    )
    took_s = time.time() - begun
    if done.returncode:
        raise SystemExit(f"{name}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}")
    return Time(name, took_s)


def brokers_of(hosts: Sequence[BedHost], brokers: int) -> dict[str, list[dict[str, object]]]:
    """The brokers of `topology`, by host."""
    found: dict[str, list[dict[str, object]]] = {host.name: [] for host in hosts}
    for number in range(brokers):
        host, port = hosts[number % len(hosts)], FIRST_PORT + number // len(hosts)
        arguments = f"-hostname {host.address} -p {port} -i B{number}"
        if number:
            near = (number - 1) // FAN_OUT
            arguments += f" -n {hosts[near % len(hosts)].address}:{FIRST_PORT + near // len(hosts)}"
        found[host.name].append({"id": f"B{number}", "port": port, "arguments": arguments})
    return found


def end_brokers(bed: Bed, *, forget: bool) -> None:
    """Those of the playbook, by the pids that it wrote down; and all that it brought, to begin anew."""
    for host in bed.hosts:
        script = f"cd /home/{host.user}/{THERE} && kill $(cat *.pid) && rm -f *.pid"
        script += f"; cd && rm -rf {THERE}" if forget else ""
        host.run_inside(["sh", "-c", script], as_user=True, check=False)


def report(times: Sequence[Time], brokers: int, hosts: int, load: float) -> None:
    print(f"{brokers} brokers on {hosts} hosts, {os.cpu_count()} cores, load {load:.1f} before\n")
    print(f"{'':30}{'seconds':>9}{'gate, s':>9}{'MB sent':>9}")
    for each in times:
        gate = "" if each.gate_s is None else f"{each.gate_s:.1f}"
        sent = "" if each.sent_bytes is None else f"{each.sent_bytes / 1e6:.1f}"
        print(f"{each.name:30}{each.seconds:9.1f}{gate:>9}{sent:>9}")
    by_name = {each.name: each.seconds for each in times}
    print()
    for manner in ("", " tuned"):
        for state in ("cold", "warm"):
            ratio = by_name[f"ansible-playbook{manner}, {state}"] / by_name[f"panda deploy, {state}"]
            said = f"goal {GOAL:.0f}   {'reached' if ratio >= GOAL else 'NOT REACHED'}" if not manner else ""
            print(f"{state + ', playbook' + manner:24}{ratio:6.1f} times as long   {said}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
