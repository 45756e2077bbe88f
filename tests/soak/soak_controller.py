"""The controller killed at 100 points of its course: does another take up the same run, and end all of it?

While it goes on, 50 processes that look like ours stand on one host of each part, and must stand at the end.
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
    journals,
    left_after,
    left_on_all,
    living_look_alikes,
    look_alikes,
    newest_run,
    panda_on,
    quantiles_s,
    read_entries,
    rules,
    side_by_side,
    timed,
)

POINTS = 100
HOSTS = 3
PORT = 10_000
BEFORE_S = 0.05
RIVAL_EVERY = 5
CLEAN_EVERY = 4
AGAIN_EVERY = 3  # the second controller is killed too, and a third takes over
STOP_KILLED_EVERY = 7  # the first `panda stop` is killed as well
STOP_S = 30.0
LOOK_ALIKES = 50


def topology(part: Part) -> str:
    a, b, c = (host.address for host in part.hosts)
    stocks = "-s \"[class,eq,'STOCK']\""
    return (
        f"0 ADD BrokerA {a} startbroker.sh -p {PORT} -i BrokerA\n"
        f"0 ADD BrokerB {b} startbroker.sh -p {PORT} -i BrokerB -n {a}:{PORT}\n"
        f"0 ADD BrokerC {c} startbroker.sh -p {PORT} -i BrokerC -n {b}:{PORT}\n"
        f"0 ADD S0 {c} startSQsubscriber.sh -i S0 {stocks} -b {c}:{PORT} --quiet\n"
        f"0.3 ADD P0 {a} startSQpublisher.sh -i P0 -s YHOO -r 6000 --duration 60 -b {a}:{PORT}\n"
        f"0.6 ADD other {b} sleep 600\n"
        f"0.8 CUT BrokerA BrokerB for 0.2s\n"
        f"1.0 ADD S1 {a} startSQsubscriber.sh -i S1 {stocks} -b {a}:{PORT} --quiet\n"
        f"1.2 MARK halfway\n"
        f"1.4 REMOVE S1 {a}\n"
        f"1.6 RESTART other {b}\n"
        f"1.8 REMOVE BrokerC {c}\n"
        f"2.0 MARK the end\n"
    )


@dataclass(slots=True)
class Tally:
    ends: Counter[str] = field(default_factory=Counter)
    attach_s: list[float] = field(default_factory=list)
    stop_s: list[float] = field(default_factory=list)
    rivals: int = 0
    stages: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Course:
    """From shortly before the run is recorded until the controller is done, in seconds from its start."""

    first_s: float
    last_s: float

    def point(self, share: float) -> float:
        return self.first_s + share * (self.last_s - self.first_s)


@dataclass(slots=True)
class Standing:
    """What was on a part before the first run."""

    strangers: set[int]
    rules: list[str]


def soak(options: Options) -> list[str]:
    count = options.count or POINTS
    tally, lock = Tally(), threading.Lock()
    standing: dict[str, Standing] = {}
    course: list[Course] = []

    def settle(part: Part) -> Standing:
        key = part.hosts[0].name
        if key not in standing:
            strangers = look_alikes(part.hosts[0], LOOK_ALIKES)
            standing[key] = Standing(strangers, [rules(host) for host in part.hosts])
        return standing[key]

    def one(part: Part, number: int) -> list[str]:
        found = settle(part)
        with lock:
            if not course:
                course.append(_course(options, part))
        dice = random.Random(f"{options.seed} {number}")
        offset_s = course[0].point((number + dice.random()) / count)
        wrong = _killed(options, part, number, offset_s, tally, lock, dice)
        if living_look_alikes(part.hosts[0]) != found.strangers:
            wrong.append("somebody who only looked like ours is gone")
        for host, before in zip(part.hosts, found.rules, strict=True):
            if rules(host) != before:
                wrong.append(f"the rules of {host.name} have changed: {rules(host)}")
        return [f"killed after {offset_s:.3f} s: {text}" for text in wrong]

    wrong = side_by_side(options, HOSTS, range(count), one)
    span = f"{course[0].first_s:.1f} s to {course[0].last_s:.1f} s" if course else "nothing"
    print(f"  {count} points from {span}, seed {options.seed}: {dict(sorted(tally.stages.items()))}")
    print(f"  ended {dict(sorted(tally.ends.items()))}; {tally.rivals} rivals were refused")
    print(f"  attach took {quantiles_s(tally.attach_s)}; stop {quantiles_s(tally.stop_s)}")
    print(f"  {LOOK_ALIKES} look-alikes on each of {len(standing)} hosts lived through it")
    return wrong


def _course(options: Options, part: Part) -> Course:
    """What a controller needs that nobody kills, once the hosts have the bundle."""
    panda = _panda(options, part, "unhurt")
    course = Course(0.0, 0.0)
    try:
        for _ in range(2):
            begun = time.time()
            ended = panda("deploy", "topo.txt", *panda.inventory, "--yes")
            ended_s = time.time() - begun
            stopped = panda("stop")
            folder = newest_run(panda)
            assert (ended.code, stopped.code) == (0, 0), f"{ended.err} {stopped.err}"
            assert folder is not None
            course = Course((folder / "plan.json").stat().st_mtime - begun - BEFORE_S, ended_s)
    finally:
        panda.close()
    return course


def _panda(options: Options, part: Part, name: str) -> Panda:
    panda = panda_on(part, options.folder / name)
    (panda.folder / "topo.txt").write_text(topology(part))
    return panda


def _killed(
    options: Options,
    part: Part,
    number: int,
    offset_s: float,
    tally: Tally,
    lock: threading.Lock,
    dice: random.Random,
) -> list[str]:
    panda = _panda(options, part, str(number))
    try:
        process = panda.start("deploy", "topo.txt", *panda.inventory, "--yes")
        rival = None
        if number % RIVAL_EVERY == 0:
            rival = _rival(panda, offset_s)
        else:
            Follower().pause(offset_s)
        alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
        first = panda.end(process)
        folder = newest_run(panda)
        stage = _stage(folder) if alive else "it had ended"
        wrong = []
        if rival is not None and alive and rival.code != 6:
            wrong.append(f"a rival was not refused: {rival.code} {rival.err[-300:]}")
        if folder is None or not (folder / "plan.json").is_file():
            left = left_on_all(part)
            with lock:
                tally.stages["before the run was recorded"] += 1
            return [*wrong, *([f"left behind: {left}"] if left else [])]
        if not alive and first.code != 0:
            wrong.append(f"the first ended by itself: {first.code} {first.err[-300:]}")
        if number % AGAIN_EVERY == 0:
            _kill_after(panda, dice.uniform(0.3, 2.5), "attach")
        took = timed()
        second = panda("attach", "--json")
        attach_s = took()
        wrong += [f"{stage}: {text}" for text in _same_run(part, folder, second)]
        clean = number % CLEAN_EVERY == 0
        before = journals(folder, part)
        if number % STOP_KILLED_EVERY == 0:
            _kill_after(panda, dice.uniform(0.3, 1.2), "stop")
        took = timed()
        last = panda("clean", "--yes") if clean else panda("stop")
        left = left_after(part, STOP_S - took())
        stop_s = took()
        if last.code != 0:
            wrong.append(f"{stage}: {'clean' if clean else 'stop'}: {last.code} {last.err[-300:]}")
        if stop_s > STOP_S:
            wrong.append(f"{stage}: stop took {stop_s:.1f} s")
        if left:
            wrong.append(f"{stage}: left behind: {left}")
        if not clean:
            home = journals(folder, part)
            short = [address for address, entries in before.items() if len(home[address]) < len(entries)]
            wrong += [f"{stage}: not all of the journal of {address} came home" for address in short]
        with lock:
            tally.stages[stage] += 1
            tally.ends[f"attach {second.code}"] += 1
            tally.rivals += rival is not None and rival.code == 6
            tally.attach_s.append(attach_s)
            tally.stop_s.append(stop_s)
        return wrong
    finally:
        panda.close()


def _kill_after(panda: Panda, seconds: float, *words: str) -> None:
    process = panda.start(*words)
    Follower().pause(seconds)
    process.send_signal(signal.SIGKILL)
    panda.end(process)


def _rival(panda: Panda, offset_s: float) -> Ended | None:
    """Another controller that comes while the first is at work; it must be through before the kill."""
    begun = time.monotonic()
    while newest_run(panda) is None or not list((panda.folder / "runs").glob("*/lock")):
        if not Follower().pause(0.01) or time.monotonic() - begun > offset_s:
            return None
    rival = panda("attach")
    Follower().pause(max(0.0, offset_s - (time.monotonic() - begun)))
    return rival


def _stage(folder: Path | None) -> str:
    """How far the controller had come."""
    if folder is None:
        return "before the run was recorded"
    entries = read_entries(folder / "journal.jsonl")
    if any(entry["kind"] == "finish" for entry in entries):
        return "5 finished"
    if any(entry["kind"] == "go" for entry in entries):
        return "4 phase 2"
    if any(entry["kind"] == "told" and entry["about"] == "phase" for entry in entries):
        return "3 phase 1"
    return "2 loading" if entries else "1 reaching hosts"


def _same_run(part: Part, folder: Path, second: Ended) -> list[str]:
    """The second controller saw the run to its end, and nothing in it happened twice."""
    wrong = [] if second.code == 0 else [f"attach: {second.code} {second.out[-300:]} {second.err[-300:]}"]
    told = read_entries(folder / "journal.jsonl")
    gos = [entry["t0"] for entry in told if entry["kind"] == "go"]
    if len(set(gos)) > 1:
        wrong.append(f"GO was given for {len(set(gos))} different times")
    for address, entries in journals(folder, part).items():
        wrong += [f"{address}: {text}" for text in _once(entries)]
    return wrong


def _once(entries: list[Entry]) -> list[str]:
    wrong = []
    starts = Counter((entry["process"], entry["by"]) for entry in entries if entry["kind"] == "started")
    steps = Counter(
        entry["number"] for entry in entries if entry["kind"] == "done" and not entry.get("lease")
    )
    wrong += [
        f"{who} was started {count} times by step {by}" for (who, by), count in starts.items() if count > 1
    ]
    wrong += [f"step {number} was done {count} times" for number, count in steps.items() if count > 1]
    for kind in ("go", "loaded", "opened"):
        count = sum(entry["kind"] == kind for entry in entries)
        if count != 1:
            wrong.append(f"{count} entries of kind {kind}")
    wrong += [
        f"step {entry['number']} failed: {entry['error']}"
        for entry in entries
        if entry["kind"] == "done" and entry.get("error")
    ]
    planned = {entry["number"] for entry in entries if entry["kind"] == "intent"}
    wrong += [f"step {number} was never done" for number in planned - set(steps)]
    return wrong
