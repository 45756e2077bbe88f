"""Decides how run folders with a known truth are made, as `panda run` leaves them; analyses nothing.

truth = generate(everything(seed=3), tmp_path)
truth.folder, truth.counts(), truth.pairs
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from panda.experiment.folder import RunFolder
from panda.hosts.sources.resolution import local_hosts
from panda.plan.model import Plan
from panda.plan.planning import Choices, plan_of_topology
from panda.topology.reading import read_topology
from panda.topology.writing import write_text
from tests.spark.generator.files import LogFile
from tests.spark.generator.journals import Journals
from tests.spark.generator.options import REASONS, Options, everything, large
from tests.spark.generator.publishing import Publishing
from tests.spark.generator.story import VERSION, Story, topology_text
from tests.spark.generator.traffic import Traffic
from tests.spark.generator.truth import BadLine, FaultInterval, Pair, Truth, read_truth
from tests.spark.generator.world import World

__all__ = [
    "REASONS",
    "BadLine",
    "FaultInterval",
    "Options",
    "Pair",
    "Truth",
    "everything",
    "generate",
    "large",
    "read_truth",
]


def generate(options: Options, runs: Path) -> Truth:
    """Write a run folder into `runs` and tell the truth about it."""
    world = World(options)
    folder = runs / options.run
    folder.mkdir(parents=True)
    truth = Truth(options.run, str(folder), world.t0, options.settle_s, options.late_s)
    truth.clock_error_s = 2 * options.clock_error_s
    plan = _record(folder, world)
    logs = _logs(folder, world, plan)
    _plant(logs, world)
    traffic = Traffic(world, logs, truth)
    journals = Journals(world, plan)
    story = Story(world, logs, traffic, journals, truth)
    story.begin()
    publishing = Publishing(world, logs, traffic, truth)
    last = publishing.run(story.happenings())
    end = max(last, world.changed_until) + options.settle_s + 2.0
    story.end(end)
    journals.write(folder, end)
    for log in logs.values():
        log.close()
    _conclude(truth, world, plan, logs)
    return truth


def _record(folder: Path, world: World) -> Plan:
    topology = read_topology(topology_text(world), f"{world.options.name}.txt").accepted()
    hosts = local_hosts(topology.hosts, Path("local"))
    plan = plan_of_topology(
        topology, hosts, Choices(run=world.options.run, log_every=world.options.log_every)
    )
    record = RunFolder(folder)
    record.write_text("topology.txt", topology.source)
    record.write_text("lines.txt", write_text(topology))
    record.write_plan(plan)
    record.write_text("versions.json", json.dumps({"panda": VERSION, "python": "3.11.7"}) + "\n")
    return plan


def _logs(folder: Path, world: World, plan: Plan) -> dict[str, LogFile]:
    logs = {}
    for n, process in enumerate(plan.processes):
        if not world.there(process.host):
            continue
        suffix = ".gz" if world.options.compressed and n % 2 else ""
        name = f"hosts/{process.host}/processes/{process.id}/log.jsonl{suffix}"
        common = {"host": process.host, "run": world.options.run, "proc": process.speaks}
        logs[process.speaks] = LogFile(folder, name, world.clocks[process.host], common)
        for stream in ("stdout", "stderr"):
            (folder / name).with_name(stream).touch()
        (folder / "hosts" / process.host / "agent.log").touch()
    return logs


def _plant(logs: dict[str, LogFile], world: World) -> None:
    random = Random(world.options.seed + 3)
    killed = {each.id for each in world.clients if each.killed}
    whole = [log for id_, log in logs.items() if id_ not in killed]
    for reason in world.options.bad_lines:
        fitting = [log for log in whole if reason != "truncated" or not log.truncated]
        if fitting:
            random.choice(fitting).plant(reason, world.options.gigantic_bytes)
    for _ in range(world.options.foreign_lines if whole else 0):
        log = random.choice(whole)
        t = random.uniform(world.t0 + 1, world.publish_until)
        log.add(t, random.choice(("moved", "stored")), what={"deep": [1, None]}, why="nobody knows")


def _conclude(truth: Truth, world: World, plan: Plan, logs: dict[str, LogFile]) -> None:
    truth.log_lines = sum(log.written for log in logs.values())
    truth.subscriptions = sum(world.known(each) for each in world.subscriptions)
    truth.quarantine = [bad for log in logs.values() for bad in log.quarantined]
    hosts = [host.name for host in plan.hosts if not world.there(host.name)]
    truth.missing = [("host", host, "") for host in hosts]
