"""Decides what the controller and the agents of a generated run wrote down about it."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Final

from panda.plan.model import Plan
from tests.spark.generator.world import EXIT_S, World

HOLDER: Final = "somebody@controller (pid 4711)"
AHEAD_S: Final = 0.25  # an intent is written before its time
PUNCTUAL_S: Final = 0.002


class Journals:
    """Collects events with true times; writes them as each host's clock showed them."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        self.random = Random(world.options.seed + 2)
        self.events: dict[str, list[tuple[float, str, dict[str, Any]]]] = {
            host.name: [] for host in plan.hosts
        }
        self.started: dict[str, int] = {}

    def event(self, host: str, t: float, kind: str, **fields: Any) -> None:
        """Fields with a time in them, as a pair ("t", true time), become the host's."""
        self.events[host].append((t, kind, fields))

    # What every run has

    def begin(self) -> None:
        began, t0 = self.world.options.began, self.world.t0
        for n, host in enumerate(self.events):
            self.event(host, began + 0.2, "opened", pid=100 + n, boot="b0", ticks=1000 + n, nonce=f"{n:016x}")
            self.event(host, began + 0.21, "controller", name=HOLDER, epoch=1, present=True)
            self.event(host, began + 0.22, "loaded", digest=f"{n:064x}")
            self.event(host, began + 0.4, "phase", number=1)
            self.event(host, t0 - 0.3, "go", t0=("t", t0))
            self.event(host, t0 - 0.3, "phase", number=2)

    def steps(self) -> None:
        """Everything that the plan says, as it was done."""
        for step in self.plan.steps:
            planned = self.plan.process(step.process) if step.process else None
            first = step.action == "add" and planned is not None and planned.phase == 1
            due = self.world.options.began + 0.5 if first else self.world.t0 + step.at_s
            done = due + PUNCTUAL_S * (0.1 + self.random.random()) / 2
            about = {"number": step.number, "action": step.action}
            if step.process:
                about["process"] = step.process
            self.event(step.host, due - (0.0 if first else AHEAD_S), "intent", **about, planned=("t", due))
            self.event(step.host, done, "done", **about, planned=("t", due), actual=("t", done))
            if step.action in ("add", "restart"):
                self._started(step.host, step.process, step.number, done)
            if step.for_s is not None and step.action == "pause":
                end = due + step.for_s
                self.event(step.host, end - AHEAD_S, "intent", **about, planned=("t", end), lease=True)
                self.event(step.host, end, "done", **about, planned=("t", end), actual=("t", end), lease=True)

    def _started(self, host: str, process: str, number: int, t: float) -> None:
        self.started[process] = self.started.get(process, 0) + 1
        pid = 1000 + len(self.started)
        self.event(host, t, "started", process=process, pid=pid, ticks=int(t) % 10**6, by=number, life=number)
        address = self.plan.process(process).address
        self.event(host, t + 0.05, "ready", process=process, **({"address": address} if address else {}))

    def link(self, host: str, t: float, process: str, peer: str, up: bool, reason: str = "") -> None:
        why = {"reason": reason} if reason else {}
        self.event(host, t, "link", process=process, peer=peer, up=up, **why)

    def exited(self, host: str, last_line: float, process: str, signal: int | None = None) -> None:
        how = {"code": 0} if signal is None else {"signal": signal}
        self.event(host, last_line + EXIT_S, "exited", process=process, **how, expected=True, last="")

    def end(self, t: float) -> None:
        for host in self.events:
            self.event(host, t - 0.6, "ended")
            self.event(host, t - 0.5, "intent", number=0, action="stop", planned=("t", t - 0.5))
            self.event(
                host, t - 0.5, "done", number=0, action="stop", planned=("t", t - 0.5), actual=("t", t - 0.5)
            )
            self.event(host, t + 0.1, "stopped")

    # Files

    def write(self, folder: Path, end: float) -> None:
        entries: list[tuple[float, dict[str, Any]]] = self._controllers(end)
        for host, events in self.events.items():
            events.sort(key=itemgetter(0))
            shows = self.world.clocks[host].shows
            written = []
            for seq, (t, kind, fields) in enumerate(events, 1):
                said = {
                    name: round(shows(value[1]), 6) if isinstance(value, tuple) else value
                    for name, value in fields.items()
                }
                event = {"seq": seq, "t": round(shows(t), 6), "kind": kind, **said}
                written.append(event)
                entries.append((t + 0.001, {"kind": "agent", "host": host, "event": event}))
            if self.world.there(host):
                text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in written)
                (folder / "hosts" / host).mkdir(parents=True, exist_ok=True)
                (folder / "hosts" / host / "journal.jsonl").write_text(text, encoding="utf-8")
        entries.sort(key=itemgetter(0))
        text = "".join(json.dumps({"t": round(t, 6), **entry}) + "\n" for t, entry in entries)
        (folder / "journal.jsonl").write_text(text, encoding="utf-8")
        self._write_clocks(folder, end)

    def _controllers(self, end: float) -> list[tuple[float, dict[str, Any]]]:
        began, t0 = self.world.options.began, self.world.t0
        theirs = {host: clock.shows(t0) for host, clock in self.world.clocks.items() if host in self.events}
        said = [
            (began + 0.35, "phase", "phase 1: starting"),
            (t0 - 0.32, "gate", "phase 1 is complete: every broker is ready and every link is up"),
            (t0 - 0.25, "phase", "phase 2: running by the agents' clocks"),
            (end - 0.55, "stop", "stopping: the work is done"),
        ]
        entries: list[tuple[float, dict[str, Any]]] = [
            (t, {"kind": "told", "about": about, "text": text, "host": ""}) for t, about, text in said
        ]
        entries.append((began, {"kind": "begun", "ending": "work", "who": HOLDER}))
        entries.append((t0 - 0.31, {"kind": "go", "t0": t0, "theirs": theirs}))
        entries.append((end + 0.2, {"kind": "finish", "result": "stopped", "why": "the work is done"}))
        for host in self.events:
            there = self.world.there(host)
            problems = [] if there else ["connection lost"]
            closed = {"kind": "closed", "host": host, "cleaned": there, "problems": problems}
            entries.append((end + 0.3, closed))
        return entries

    def _write_clocks(self, folder: Path, end: float) -> None:
        found = [
            (at, {"host": host, "at": at, "offset_s": offset_s, "error_s": error_s})
            for host in self.events
            for at, offset_s, error_s in self.world.clocks[host].measured(end + 0.2, self.random)
        ]
        found.sort(key=itemgetter(0))
        text = "".join(json.dumps(each) + "\n" for _, each in found)
        (folder / "clocks.jsonl").write_text(text, encoding="utf-8")
