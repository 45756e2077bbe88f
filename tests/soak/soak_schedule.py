"""100 steps on 5 hosts: how far is each start from its planned time, by the agents and by the kernel?"""

from __future__ import annotations

import os
import time

from tests.soak.ground import (
    Options,
    Part,
    journals,
    left_on_all,
    newest_run,
    panda_on,
    quantiles_ms,
    read_entries,
    side_by_side,
)

STEPS = 100
HOSTS = 5
PORT = 10_000
EVERY_S = 0.1
GOAL_S = 0.020
CLOCKS_S = 0.002
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def soak(options: Options) -> list[str]:
    steps = options.count or STEPS
    alone = Options(options.count, options.seed, 1, options.folder)
    return side_by_side(alone, HOSTS, [options.seed], lambda part, seed: _measure(options, part, steps))


def topology(part: Part, steps: int) -> str:
    """Brokers first; then clients and other programs by turns, every host having its share."""
    lines = []
    for number, host in enumerate(part.hosts):
        near = f" -n {part.hosts[0].address}:{PORT}" if number else ""
        lines.append(f"0 ADD B{number} {host.address} startbroker.sh -p {PORT} -i B{number}{near}")
    for step in range(steps):
        address = part.hosts[step % HOSTS].address
        at = f"{1 + EVERY_S * step:.2f}"
        if not is_client(step):
            lines.append(f"{at} ADD X{step} {address} sleep 600")
        else:
            wish = f"\"[class,eq,'STOCK'],[symbol,eq,'S{step}']\""
            lines.append(
                f"{at} ADD X{step} {address} startSQsubscriber.sh -i X{step} -s {wish} -b {address}:{PORT}"
            )
    return "\n".join(lines) + "\n"


def is_client(step: int) -> bool:
    return (step // HOSTS) % 2 == 0


def _measure(options: Options, part: Part, steps: int) -> list[str]:
    panda = panda_on(part, options.folder)
    (panda.folder / "topo.txt").write_text(topology(part, steps))
    try:
        ended = panda("deploy", "topo.txt", *panda.inventory, "--yes")
        stopped = panda("stop")
    finally:
        panda.close()
    folder = newest_run(panda)
    if ended.code != 0 or stopped.code != 0 or folder is None:
        return [f"exit codes {ended.code}, {stopped.code}: {ended.err[-500:]} {stopped.err[-500:]}"]
    late_s, by_kernel_s, wrong = [], [], []
    born = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found = journals(folder, part)
    for entries in found.values():
        ticks = {entry["by"]: entry["ticks"] for entry in entries if entry["kind"] == "started"}
        for entry in entries:
            if entry["kind"] == "done" and entry["action"] == "add" and entry["process"].startswith("X"):
                late_s.append(entry["actual"] - entry["planned"])
                if not is_client(int(entry["process"][1:])):  # those are forked ahead of their time
                    by_kernel_s.append(born + ticks[entry["number"]] * TICK_S - entry["planned"])
    go = next(entry for entry in read_entries(folder / "journal.jsonl") if entry["kind"] == "go")
    apart_s = max(go["theirs"].values()) - min(go["theirs"].values())
    print(f"  {len(late_s)} starts on {HOSTS} hosts, late by {quantiles_ms(late_s)}")
    print(f"  other programs by the kernel, in ticks of {1e3 * TICK_S:.0f} ms: {quantiles_ms(by_kernel_s)}")
    print(f"  T0 of the hosts, which share one clock, {1e3 * apart_s:.2f} ms apart at most")
    if len(late_s) != steps:
        wrong.append(f"{len(late_s)} of {steps} steps were done")
    if sorted(late_s)[int(0.99 * (len(late_s) - 1))] > GOAL_S:
        wrong.append(f"p99 is over {1e3 * GOAL_S:.0f} ms")
    if min(by_kernel_s, default=0) < -TICK_S - CLOCKS_S:
        wrong.append(f"a start was {-min(by_kernel_s):.3f} s early")
    left = left_on_all(part)
    return [*wrong, *([f"left behind: {left}"] if left else [])]
