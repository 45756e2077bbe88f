"""200 deployments with delayed, crashing and partitioned brokers: does the gate open early, late or never?

A run is decided by its seed. Afterwards the journals of controller and agents and the logs of the brokers,
which share one clock here, are held against each other and against when the mischief was done.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.deployment.panda import Ended, Panda
from tests.soak.ground import (
    Entry,
    Follower,
    Options,
    Part,
    forget_neighbours,
    journals,
    left_after,
    left_on_all,
    newest_run,
    panda_on,
    part_silently,
    process_log,
    quantiles_s,
    read_entries,
    send,
    side_by_side,
)

RUNS = 200
BROKERS_MAX = 4
PORT = 10_000
SQUATTER = (
    f"import socket, time; s = socket.create_server((str(), {PORT})); print(1, flush=True); time.sleep(60)"
)
RUN_FOR_S = 0.8
AT_S = 0.2
LATE_S = 1.0  # how long after its time-out a gate may be given up, on a busy machine
ON_THE_WAY_S = 0.25  # an event this young may not have reached the controller when it gave its GO
EARLY_S = 0.002  # a process's clock is read before it is asked what it did
LEAVING_S = 5.0  # in which the agents of a deployment that was taken back end themselves
KINDS = ("nothing", "delay", "delay", "crash", "crash", "taken", "partition", "partition", "cable", "cable")


@dataclass(frozen=True, slots=True)
class Case:
    seed: int
    kind: str
    brokers: int
    victim: int
    after_s: float  # after the victim was started
    for_s: float
    gate_timeout_s: float

    @classmethod
    def of(cls, seed: int) -> Case:
        dice = random.Random(seed)
        brokers = dice.randint(2, BROKERS_MAX)
        return cls(
            seed,
            KINDS[seed % len(KINDS)],
            brokers,
            dice.randrange(brokers),
            dice.choice((0.0, 0.0, dice.uniform(0, 0.1), dice.uniform(0, 0.6))),
            dice.uniform(0.3, 5.0),
            dice.choice((2.0, 3.0)),
        )

    @property
    def links(self) -> list[tuple[int, int]]:
        return [(number, number - 1) for number in range(1, self.brokers)]

    def topology(self, part: Part) -> str:
        lines = []
        for number in range(self.brokers):
            address = part.hosts[number].address
            near = f" -n {part.hosts[number - 1].address}:{PORT}" if number else ""
            lines.append(f"0 ADD B{number} {address} startbroker.sh -p {PORT} -i B{number}{near}")
            lines.append(f"{AT_S} ADD late{number} {address} sleep 60")
        last, first = part.hosts[self.brokers - 1].address, part.hosts[0].address
        lines.append(
            f"0 ADD S0 {last} startSQsubscriber.sh -i S0 -s \"[class,eq,'STOCK']\" -b {last}:{PORT} --quiet"
        )
        lines.append(
            f"{AT_S} ADD P0 {first} startSQpublisher.sh -i P0 -s YHOO -r 6000 --count 20 -b {first}:{PORT}"
        )
        return "\n".join(lines) + "\n"

    @property
    def first_phase(self) -> dict[str, int]:
        return {**{f"B{number}": number for number in range(self.brokers)}, "S0": self.brokers - 1}

    @property
    def second_phase(self) -> dict[str, int]:
        return {**{f"late{number}": number for number in range(self.brokers)}, "P0": 0}


@dataclass(slots=True)
class Mischief:
    """Does what the case says, while the deployment runs, and notes when it did."""

    case: Case
    part: Part
    runs: Path
    begun: float | None = None
    ended: float | None = None
    follower: Follower = field(default_factory=Follower)

    def prepare(self) -> None:
        """What has to be there before the deployment begins."""
        host = self.part.hosts[self.case.victim]
        if self.case.kind == "taken":
            squat = f"python3 -c '{SQUATTER}' >/tmp/taken 2>/dev/null & echo $! >/tmp/squatter"
            ready = "while ! [ -s /tmp/taken ]; do sleep 0.02; done"
            host.run_inside(["sh", "-c", f"rm -f /tmp/taken; {squat}; {ready}"], as_user=True)
            self.begun = time.time()
        elif self.case.kind == "partition":
            a, b = self.case.links[self.case.victim % len(self.case.links)]
            part_silently(self.part.hosts[a], self.part.hosts[b])
            self.begun = time.time()

    def act(self) -> None:
        case, host = self.case, self.part.hosts[self.case.victim]
        if case.kind in ("nothing", "taken"):
            return
        name = f"B{case.victim}"
        started = self.follower.wait_for(
            host, self.runs, lambda entry: entry["kind"] == "started" and entry["process"] == name
        )
        if started is None or not self.follower.pause(case.after_s):
            return
        if case.kind == "crash":
            if send(host, started["pid"], signal.SIGKILL):
                self.begun = time.time()
            return
        if case.kind == "delay":
            send(host, started["pid"], signal.SIGSTOP)
        elif case.kind == "cable":
            host.vanish()
        self.begun = self.begun or time.time()
        self.follower.pause(case.for_s)
        self.ended = time.time()
        if case.kind == "delay":
            send(host, started["pid"], signal.SIGCONT)
        elif case.kind == "cable":
            host.reappear()
        else:
            for each in self.part.hosts:
                forget_neighbours(each)

    def end(self) -> None:
        if self.case.kind == "taken":
            host = self.part.hosts[self.case.victim]
            host.run_inside(["sh", "-c", "kill $(cat /tmp/squatter); rm /tmp/squatter"], check=False)


@dataclass(slots=True)
class Tally:
    ends: Counter[str] = field(default_factory=Counter)
    close: int = 0  # something broke while the GO was on its way
    overtime_s: list[float] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)


def soak(options: Options) -> list[str]:
    tally, lock = Tally(), threading.Lock()

    def one(part: Part, seed: int) -> list[str]:
        case = Case.of(seed)
        panda = panda_on(part, options.folder / str(seed))
        (panda.folder / "topo.txt").write_text(case.topology(part))
        mischief = Mischief(case, part, panda.folder / "runs")
        mischief.prepare()
        doing = threading.Thread(target=mischief.act)
        begun = time.time()
        try:
            process = panda.start(
                "deploy", "topo.txt", *panda.inventory, "--yes",
                "--for", str(RUN_FOR_S), "--gate-timeout", str(case.gate_timeout_s),
            )  # fmt: skip
            doing.start()
            ended = panda.end(process)
            took_s = time.time() - begun
        finally:
            mischief.follower.ended.set()
            doing.join()
            mischief.end()
            panda.close()
        with lock:
            tally.took_s.append(took_s)
            return [
                f"{case.kind}: {text} ({case})" for text in judge(case, part, panda, mischief, ended, tally)
            ]

    seeds = range(options.seed, options.seed + (options.count or RUNS))
    wrong = side_by_side(options, BROKERS_MAX, seeds, one)
    print(f"  {len(seeds)} runs, seeds {seeds[0]} to {seeds[-1]}: {dict(sorted(tally.ends.items()))}")
    print(f"  a run took {quantiles_s(tally.took_s)}; GO was on its way when something broke: {tally.close}")
    print(f"  shut gates were given up after their time-out by {quantiles_s(tally.overtime_s)}")
    return wrong


def judge(case: Case, part: Part, panda: Panda, mischief: Mischief, ended: Ended, tally: Tally) -> list[str]:
    part.heal()
    folder = newest_run(panda)
    if folder is None:
        return [f"no run was made: {ended.code} {ended.err[-300:]}"]
    told = read_entries(folder / "journal.jsonl")
    found = journals(folder, part)
    gos = [entry for entry in told if entry["kind"] == "go"]
    tally.ends[f"{case.kind} {'opened' if gos else 'shut'} {ended.code}"] += 1
    wrong = _second_phase(case, part, folder, found, gos)
    wrong += _delay(case, told, gos, tally)
    if gos:
        wrong += _opened(case, part, folder, found, gos, mischief, tally)
        if ended.code not in (0, 1):
            wrong.append(f"exit code {ended.code} after GO: {ended.err[-300:]}")
    elif ended.code != 4:
        wrong.append(f"exit code {ended.code} without GO: {ended.out[-200:]} {ended.err[-300:]}")
    if case.kind == "nothing" and not gos:
        wrong.append(f"the gate stayed shut for no reason: {ended.out}")
    if case.kind in ("crash", "taken") and not gos and f"B{case.victim}" not in ended.out:
        wrong.append(f"B{case.victim} is not named: {ended.out}")
    if left_after(part, LEAVING_S):
        stopped = panda("stop")
        if stopped.code != 0:
            wrong.append(f"stop: {stopped.code} {stopped.err[-300:]}")
        if case.kind != "cable":
            wrong.append("the deployment left something for stop to do")
    left = left_on_all(part)
    return [*wrong, *([f"left behind: {left}"] if left else [])]


def _second_phase(
    case: Case, part: Part, folder: Path, found: dict[str, list[Entry]], gos: list[Entry]
) -> list[str]:
    """Nobody of phase 2 before GO reached its agent, nor before its time."""
    wrong = []
    for process, number in case.second_phase.items():
        host = part.hosts[number]
        went: float | None = None
        for entry in found[host.address]:
            if entry["kind"] == "go":
                went = entry["t0"]
            elif entry["kind"] == "started" and entry["process"] == process:
                if went is None or not gos:
                    wrong.append(f"{process} was started before the gate")
                elif entry["t"] < went + AT_S - EARLY_S:
                    wrong.append(f"{process} was started {went + AT_S - entry['t']:.4f} s early")
        log = process_log(folder, part, host, process)
        if log and (not gos or log[0]["t"] < gos[0]["t"]):
            wrong.append(f"{process} ran before the gate, by its own log")
    return wrong


def _delay(case: Case, told: list[Entry], gos: list[Entry], tally: Tally) -> list[str]:
    """The gate is opened or given up within its time-out."""
    begun = [entry["t"] for entry in told if entry["kind"] == "told" and entry["about"] == "phase"]
    settled = [entry["t"] for entry in told if entry["kind"] == "told" and entry["about"] == "stop"]
    settled = [entry["t"] for entry in gos] or settled
    if not begun or not settled:
        return [] if settled else ["the gate was neither opened nor given up"]
    over_s = settled[0] - begun[0] - case.gate_timeout_s
    if not gos and over_s > 0:
        tally.overtime_s.append(over_s)
    return [f"the gate was settled {over_s:.2f} s after its time-out"] if over_s > LATE_S else []


def _opened(
    case: Case,
    part: Part,
    folder: Path,
    found: dict[str, list[Entry]],
    gos: list[Entry],
    mischief: Mischief,
    tally: Tally,
) -> list[str]:
    """When GO was given everything was there: as the agents saw it, as the brokers saw it, as we know it."""
    at = gos[0]["t"]
    wrong = [f"GO was given {len(gos)} times"] if len(gos) > 1 else []
    lacking = missing(case, part, found, at)
    if lacking and _was_whole(case, part, found, at):
        tally.close += 1
    else:
        wrong += [f"GO was given although {text}" for text in lacking]
    for a, b in case.links:
        for here, there in ((a, b), (b, a)):
            if not _saw_link(case, part, folder, here, there, at):
                wrong.append(f"GO was given before B{here} logged its link with B{there}")
    return wrong + _known(case, mischief, at)


def _saw_link(case: Case, part: Part, folder: Path, here: int, there: int, at: float) -> bool:
    """Whether a broker itself has written so; one that was killed did not get to write all of its log."""
    log = process_log(folder, part, part.hosts[here], f"B{here}")
    if any(entry["kind"] == "link_up" and entry["peer"] == f"B{there}" and entry["t"] <= at for entry in log):
        return True
    said = folder / "hosts" / part.hosts[here].address / "processes" / f"B{here}" / "stderr"
    killed = case.kind == "crash" and here == case.victim
    return killed and said.is_file() and f"link with B{there} is up" in said.read_text()


def _known(case: Case, mischief: Mischief, at: float) -> list[str]:
    began, ended = mischief.begun, mischief.ended
    if began is None:
        return []
    if case.kind == "taken":
        return ["GO was given although a port was taken"]
    if case.kind == "crash" and at > began + ON_THE_WAY_S:
        return [f"GO was given {at - began:.3f} s after a broker was killed"]
    if case.kind == "partition" and (ended is None or at < ended):
        return ["GO was given across a partition"]
    if case.kind == "cable" and began + ON_THE_WAY_S < at and (ended is None or at < ended):
        return [f"GO was given {at - began:.3f} s after a host was cut off"]
    return []


def missing(case: Case, part: Part, found: dict[str, list[Entry]], at: float) -> list[str]:
    """What phase 1 lacked at a time, by the agents' journals."""
    lacking = []
    ups: set[tuple[str, str]] = set()
    for process, number in case.first_phase.items():
        ready = False
        for entry in found[part.hosts[number].address]:
            if entry["t"] > at or entry.get("process") != process:
                continue
            if entry["kind"] in ("started", "exited"):
                ready = False
                ups = {up for up in ups if up[0] != process}
            elif entry["kind"] == "ready":
                ready = True
            elif entry["kind"] == "link":
                (ups.add if entry["up"] else ups.discard)((process, entry["peer"]))
        if not ready:
            lacking.append(f"{process} was not ready")
    for a, b in case.links:
        for here, there in ((f"B{a}", f"B{b}"), (f"B{b}", f"B{a}")):
            if (here, there) not in ups:
                lacking.append(f"{here} had no link with {there}")
    return lacking


def _was_whole(case: Case, part: Part, found: dict[str, list[Entry]], at: float) -> bool:
    """Whether nothing lacked so shortly before that nobody could have known of what broke since."""
    times = [entry["t"] for entries in found.values() for entry in entries]
    moments = [at - ON_THE_WAY_S, *(t for t in times if at - ON_THE_WAY_S <= t <= at)]
    return any(not missing(case, part, found, moment) for moment in moments)
