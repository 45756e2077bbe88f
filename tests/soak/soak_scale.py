"""100 brokers on 20 hosts: how long until the gate, cold and warm, and what is sent the second time?"""

from __future__ import annotations

import time
from pathlib import Path

from tests.soak.ground import Options, Part, bed_of, left_on_all, newest_run, panda_on, read_entries
from tests.testbed.bed import BedHost

BROKERS = 100
HOSTS = 20
FAN_OUT = 3
FIRST_PORT = 10_000
GOAL_S = 30.0


def soak(options: Options) -> list[str]:
    brokers = options.count or BROKERS
    wrong = []
    with bed_of(HOSTS, options.folder) as bed:
        panda = panda_on(Part(bed, bed.hosts), options.folder)
        (panda.folder / "topo.txt").write_text(topology(bed.hosts, brokers))
        try:
            for name in ("cold", "warm"):
                begun = time.time()
                ended = panda("deploy", "topo.txt", *panda.inventory, "--yes", "--json")
                sent = sum(ended.data["sent_bytes"].values()) if ended.code == 0 else -1
                stopping = time.time()
                stopped = panda("stop")
                folder = newest_run(panda)
                if ended.code != 0 or stopped.code != 0 or folder is None:
                    return [f"{name}: exit codes {ended.code}, {stopped.code}: {ended.err} {stopped.err}"]
                took_s, said = course(folder, begun)
                print(f"  {brokers} brokers on {HOSTS} hosts, {name}: {said}, {sent} bytes of bundle sent")
                print(f"  stopped, collected and cleaned in {time.time() - stopping:.1f} s")
                if took_s > GOAL_S:
                    wrong.append(f"{name}: {took_s:.1f} s until the gate")
                if name == "warm" and sent:
                    wrong.append(f"{sent} bytes were sent a second time")
                if left := left_on_all(Part(bed, bed.hosts)):
                    wrong.append(f"left behind: {left}")
        finally:
            panda.close()
    return wrong


def topology(hosts: list[BedHost], brokers: int) -> str:
    """A tree; every host has its share of the brokers."""
    places = [f"{hosts[n % len(hosts)].address}:{FIRST_PORT + n // len(hosts)}" for n in range(brokers)]
    lines = []
    for number, place in enumerate(places):
        address, port = place.split(":")
        near = f" -n {places[(number - 1) // FAN_OUT]}" if number else ""
        lines.append(f"0 ADD B{number} {address} startbroker.sh -p {port} -i B{number}{near}")
    return "\n".join(lines) + "\n"


def course(folder: Path, begun: float) -> tuple[float, str]:
    """Seconds until the gate opened, and how they were spent."""
    entries = read_entries(folder / "journal.jsonl")
    go = next(entry["t"] for entry in entries if entry["kind"] == "go")
    phase = next(entry["t"] for entry in entries if entry["kind"] == "told" and entry["about"] == "phase")
    text = f"gate open after {go - begun:.1f} s, phase 1 itself {go - phase:.1f} s"
    return go - begun, text
