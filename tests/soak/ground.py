"""What the long runs stand on: parts of a bed, what agents wrote there, what was left; decides nothing."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deployment.panda import Panda
from tests.testbed.bed import Bed, BedHost
from tests.testbed.keeper import descendants

Entry = dict[str, Any]
LOOK_S = 0.005
LOOK_ALIKE = "python3 -m broker_runtime broker -i BrokerA"


@dataclass(frozen=True, slots=True)
class Options:
    count: int
    seed: int
    jobs: int
    folder: Path


class Part:
    """Some hosts of a bed, as if they were all of it."""

    def __init__(self, bed: Bed, hosts: Sequence[BedHost]) -> None:
        self._bed = bed
        self.hosts = list(hosts)
        self.folder = bed.folder
        self.inventory_file = bed.inventory_file
        self.environment = bed.environment

    def some(self, count: int) -> Part:
        return Part(self._bed, self.hosts[:count])

    def heal(self) -> None:
        for host in self.hosts:
            host.thaw()
            host.reappear()
            forget_neighbours(host)


def panda_on(part: Part, folder: Path) -> Panda:
    folder.mkdir(parents=True, exist_ok=True)
    return Panda(folder, part)  # type: ignore[arg-type]  # as if it were all of a bed


@contextlib.contextmanager
def bed_of(count: int, folder: Path) -> Iterator[Bed]:
    with Bed(count, folder / "bed") as bed:
        assert bed.kind == "namespaces", "the long runs need network namespaces, and so root"
        yield bed


def side_by_side(
    options: Options, hosts_each: int, runs: Sequence[int], act: Callable[[Part, int], list[str]]
) -> list[str]:
    """Every run on a part of a bed that nobody else uses meanwhile; what was wrong, with the run's number."""
    free: queue.SimpleQueue[Part] = queue.SimpleQueue()

    def one(number: int) -> list[str]:
        part = free.get()
        try:
            return [f"{number}: {text}" for text in act(part, number)]
        except Exception as error:
            return [f"{number}: {type(error).__name__}: {error}"]
        finally:
            part.heal()
            end_all(part)
            free.put(part)

    with bed_of(hosts_each * options.jobs, options.folder) as bed:
        for job in range(options.jobs):
            free.put(Part(bed, bed.hosts[job * hosts_each : (job + 1) * hosts_each]))
        with ThreadPoolExecutor(options.jobs) as pool:
            return [text for found in pool.map(one, runs) for text in found]


# What agents and processes wrote


def home_of(host: BedHost) -> Path:
    """The host's folder of ours, seen from outside."""
    return Path(f"/proc/{descendants(host.place.pid)[0]}/root/home/{host.user}/{host.place.root}")


def read_entries(path: Path) -> list[Entry]:
    found = []
    with contextlib.suppress(OSError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


def living_journal(host: BedHost, run: str) -> list[Entry]:
    return read_entries(home_of(host) / "runs" / run / "journal.jsonl")


def journals(folder: Path, part: Part) -> dict[str, list[Entry]]:
    """Of every agent of a run, by address: brought home, or still on its host."""
    found = {}
    for host in part.hosts:
        brought = read_entries(folder / "hosts" / host.address / "journal.jsonl")
        there = living_journal(host, folder.name)
        found[host.address] = max(brought, there, key=len)
    return found


def process_log(folder: Path, part: Part, host: BedHost, process: str) -> list[Entry]:
    inner = Path("processes") / process / "log.jsonl"
    brought = read_entries(folder / "hosts" / host.address / inner)
    there = read_entries(home_of(host) / "runs" / folder.name / inner)
    return max(brought, there, key=len)


# Mischief


def outer_pid(host: BedHost, inner: int) -> int | None:
    """As this machine numbers a process that the host numbers so."""
    for pid in host.processes():
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("NSpid:") and int(line.split()[-1]) == inner:
                    return pid
    return None


def send(host: BedHost, inner: int, number: signal.Signals) -> bool:
    pid = outer_pid(host, inner)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
    return False


def part_silently(a: BedHost, b: BedHost) -> None:
    """What the two send to each other reaches nobody; the rest of the world notices nothing."""
    for here, there in ((a, b), (b, a)):
        lost = ["lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent"]
        here.run_inside(["ip", "neigh", "replace", there.address, *lost])


def forget_neighbours(host: BedHost) -> None:
    host.run_inside(["ip", "neigh", "flush", "dev", "eth0", "nud", "permanent"], check=False)


def rules(host: BedHost) -> str:
    """Everything that steers or shapes the host's packets."""
    shown = "ip rule; ip route; tc qdisc show; ip neigh show nud permanent; nft list ruleset; iptables-save"
    return host.run_inside(["sh", "-c", f"({shown}) 2>/dev/null"], check=False).stdout


# What was left


def look_alikes(host: BedHost, count: int = 50) -> set[int]:
    """Processes that only look like ours, by pid on the host."""
    script = f"(for i in $(seq {count}); do exec -a '{LOOK_ALIKE}' sleep 7200 & done) >/dev/null 2>&1"
    host.run_inside(["bash", "-c", script], as_user=True)
    return living_look_alikes(host)


def living_look_alikes(host: BedHost) -> set[int]:
    return {int(line.split()[0]) for line in _listed(host) if line.endswith(f"{LOOK_ALIKE} 7200")}


def left_on(host: BedHost) -> list[str]:
    """Processes and run folders of ours."""
    ours = [line for line in _listed(host) if _is_ours(host, line)]
    runs = home_of(host) / "runs"
    return ours + [str(path.name) for path in (runs.iterdir() if runs.is_dir() else ())]


def _is_ours(host: BedHost, line: str) -> bool:
    """An agent, or whatever carries the mark that agents give to what they start."""
    if "broker_runtime" in line:
        return LOOK_ALIKE not in line
    with contextlib.suppress(OSError):
        inside = (
            Path(f"/proc/{descendants(host.place.pid)[0]}/root/proc") / line.split(maxsplit=1)[0] / "environ"
        )
        return b"PANDA_PROCESS=" in inside.read_bytes()
    return False


def left_on_all(part: Part) -> dict[str, list[str]]:
    return {host.name: found for host in part.hosts if (found := left_on(host))}


def left_after(part: Part, seconds: float) -> dict[str, list[str]]:
    """What is still there after so long; an agent that is just leaving is not."""
    took = timed()
    while (found := left_on_all(part)) and took() < seconds:
        Follower().pause(LOOK_S)
    return found


def end_all(part: Part) -> None:
    """What a failed run left: by pid, so that the next one begins on clean ground."""
    for host in part.hosts:
        for line in left_on(host):
            if line.split()[0].isdigit() and " " in line:
                host.run_inside(["kill", "-KILL", line.split()[0]], check=False)
        host.run_inside(["rm", "-rf", f"/home/{host.user}/{host.place.root}/runs"], check=False)


def _listed(host: BedHost) -> list[str]:
    return [line.strip() for line in host.run_inside(["ps", "-eo", "pid=,args="]).stdout.splitlines()]


# Waiting and counting


@dataclass
class Follower:
    """Waits for what an agent writes, until told that nothing more is wanted."""

    ended: threading.Event = field(default_factory=threading.Event)

    def wait_for(self, host: BedHost, runs: Path, wanted: Callable[[Entry], bool]) -> Entry | None:
        """The first entry of this kind of the newest run in the folder."""
        while not self.ended.wait(LOOK_S):
            for run in sorted(runs.iterdir())[-1:] if runs.is_dir() else ():
                for entry in living_journal(host, run.name):
                    if wanted(entry):
                        return entry
        return None

    def pause(self, seconds: float) -> bool:
        """False if the end came first."""
        return not self.ended.wait(seconds)


def newest_run(panda: Panda) -> Path | None:
    runs = panda.folder / "runs"
    return max(runs.iterdir(), default=None) if runs.is_dir() else None


def quantiles_ms(values: Sequence[float]) -> str:
    if not values:
        return "no figures"
    cuts = statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else [*values] * 99
    return f"p50 {1e3 * cuts[49]:.1f} ms, p99 {1e3 * cuts[98]:.1f} ms, max {1e3 * max(values):.1f} ms"


def quantiles_s(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"median {statistics.median(ordered):.1f} s, longest {ordered[-1]:.1f} s" if ordered else "none"


def timed() -> Callable[[], float]:
    begun = time.monotonic()
    return lambda: time.monotonic() - begun
