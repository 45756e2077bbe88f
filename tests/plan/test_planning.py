"""A plan settles every address and argument, and says what each host does and when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from panda.experiment.folder import RunFolder
from panda.hosts.host import Host
from panda.hosts.sources.resolution import local_hosts
from panda.plan.model import Plan, PlannedStep
from panda.plan.planning import Choices, plan_of_topology
from panda.topology.reading import read_topology

LINES = """
0.0 ADD BrokerA 10.0.1.1 startbroker.sh -p 10000 -i Alice
0.0 ADD BrokerB 10.0.1.2 startbroker.sh -Xms 64 -hostname 10.0.1.2 -p 10000 -i Bob -n 10.0.1.1:10000
0.0 ADD BrokerC 10.0.1.3 bin/startbroker -uri socket://10.0.1.3:10000/Carol -n socket://10.0.1.2:10000/Bob
0.0 ADD S0 10.0.1.3 startSQsubscriber.sh -i S0 -s "[class,eq,'STOCK']" -b 10.0.1.3:10000
1.0 ADD P0 10.0.1.1 startSQpublisher.sh -i P0 -s YHOO -r 600 --count 40 -b 10.0.1.1:10000
1.0 ADD dump 10.0.1.1 tcpdump -i lo host 10.0.1.1
"""


def planned(extra: str = "", *, local: bool = True) -> Plan:
    topology = read_topology(LINES + extra, "topo.txt").accepted()
    if local:
        hosts = local_hosts(topology.hosts, Path("/nowhere"))
    else:
        hosts = {name: Host(name, address="192.0.2.7", user="someone") for name in topology.hosts}
    return plan_of_topology(topology, hosts, Choices(run="r1", log_every=5))


def steps_at(plan: Plan, at_s: float) -> list[PlannedStep]:
    return [step for step in plan.steps if step.at_s == at_s]


def option(plan: Plan, process: str, name: str) -> str:
    arguments = plan.process(process).arguments
    return arguments[arguments.index(name) + 1]


def test_on_this_machine_a_loopback_address_stands_in_wherever_an_address_is_named() -> None:
    plan = planned()
    a, b, c = (host.address for host in plan.hosts)
    assert len({a, b, c}) == 3
    assert option(plan, "BrokerA", "-hostname") == a
    assert option(plan, "BrokerB", "-hostname") == b
    assert option(plan, "BrokerB", "-n") == f"{a}:10000"
    assert option(plan, "BrokerC", "-uri") == f"socket://{c}:10000/Carol"
    assert option(plan, "BrokerC", "-n") == f"socket://{b}:10000/Bob"
    assert option(plan, "S0", "-b") == f"{c}:10000"
    assert option(plan, "S0", "-s") == "[class,eq,'STOCK']"
    assert not any("10.0.1" in each for process in plan.processes[:5] for each in process.arguments)


def test_over_ssh_addresses_stay_as_the_file_has_them_wherever_the_login_is() -> None:
    plan = planned(local=False)
    assert option(plan, "BrokerA", "-hostname") == "10.0.1.1"
    assert option(plan, "BrokerB", "-n") == "10.0.1.1:10000"
    assert option(plan, "P0", "-b") == "10.0.1.1:10000"


def test_a_command_that_is_not_ours_is_left_as_it_is() -> None:
    process = planned().process("dump")
    assert process.kind == "command"
    assert process.arguments == ("tcpdump", "-i", "lo", "host", "10.0.1.1")


def test_processes_of_the_runtime_keep_a_log_of_the_run_unless_their_line_says_otherwise() -> None:
    plan = planned(
        "2 ADD S1 10.0.1.3 startSQsubscriber.sh -i S1 -s [class,eq,x] -b 10.0.1.3:10000 --log my.log"
    )
    assert option(plan, "BrokerA", "--log") == "log.jsonl"
    assert option(plan, "BrokerA", "--run") == "r1"
    assert option(plan, "P0", "--log-every") == "5"
    assert option(plan, "S1", "--log") == "my.log"
    assert plan.process("S1").arguments.count("--log") == 1


@pytest.mark.parametrize(
    ("line", "fault", "value"),
    [
        ("5 CUT BrokerA BrokerB for 1s", "cut", None),
        ("5 DELAY Alice Bob 50ms for 1s", "delay", 0.05),
        ("5 LOSS BrokerA BrokerB 5% for 1s", "loss", 0.05),
        ("5 RATE BrokerA BrokerB 100kB/s for 1s", "rate", 100_000.0),
    ],
)
def test_a_fault_on_a_link_is_done_at_both_ends(line: str, fault: str, value: float | None) -> None:
    steps = steps_at(planned(line), 5.0)
    assert {(step.host, step.process, step.peer) for step in steps} == {
        ("10.0.1.1", "BrokerA", "Bob"),
        ("10.0.1.2", "BrokerB", "Alice"),
    }
    assert {(step.action, step.fault, step.value, step.for_s) for step in steps} == {
        ("fault", fault, value, 1.0)
    }


def test_a_partition_cuts_every_link_and_client_between_its_groups_and_no_other() -> None:
    steps = steps_at(planned("5 PARTITION BrokerA,P0 | BrokerB,BrokerC,S0 for 2s"), 5.0)
    assert {(step.process, step.peer) for step in steps} == {("BrokerA", "Bob"), ("BrokerB", "Alice")}
    steps = steps_at(planned("5 PARTITION P0,BrokerC | BrokerA,BrokerB for 2s"), 5.0)
    assert {(step.process, step.peer) for step in steps} == {
        ("P0", "Alice"),
        ("BrokerA", "P0"),
        ("BrokerB", "Carol"),
        ("BrokerC", "Bob"),
    }


def test_healing_without_names_heals_every_process_of_the_runtime() -> None:
    steps = steps_at(planned("4 CUT BrokerA BrokerB\n5 HEAL"), 5.0)
    assert {step.process for step in steps} == {"BrokerA", "BrokerB", "BrokerC", "S0", "P0"}
    assert {step.peer for step in steps} == {""}


def test_numbers_of_steps_are_unique_and_remember_their_line() -> None:
    plan = planned("5 CUT BrokerA BrokerB for 1s\n6 MARK half")
    assert len({step.number for step in plan.steps}) == len(plan.steps)
    assert {step.line for step in steps_at(plan, 5.0)} == {8}
    assert [(step.text, step.host) for step in steps_at(plan, 6.0)] == [("half", "10.0.1.1")]


def test_the_gate_waits_for_links_of_phase_1_alone() -> None:
    plan = planned(
        "3 ADD BrokerD 10.0.1.1 startbroker.sh -p 10001 -i Dora -n 10.0.1.1:10000",
    )
    assert {str(link) for link in plan.gate_links} == {"BrokerB – BrokerA", "BrokerC – BrokerB"}
    assert len(plan.links) == 3


def test_a_plan_comes_back_from_its_file_as_it_was_but_without_secrets(tmp_path: Path) -> None:
    topology = read_topology(LINES, "topo.txt").accepted()
    secret = {"PANDA_TOKEN": "hush-hush"}
    choices = Choices(run="r1", stop_at_s=9.0, environment=secret)
    plan = plan_of_topology(topology, local_hosts(topology.hosts, tmp_path), choices)
    folder = RunFolder(tmp_path)
    folder.write_plan(plan)
    assert folder.read_plan(secret) == plan
    assert "hush-hush" not in (tmp_path / "plan.json").read_text()
    assert "hush-hush" not in repr(plan)
    assert json.loads((tmp_path / "plan.json").read_text())["environment"] == ["PANDA_TOKEN"]


def test_a_hosts_part_holds_its_own_processes_and_steps_and_its_digest_no_secret() -> None:
    plan = planned("5 CUT BrokerA BrokerB for 1s")
    spec = plan.spec("10.0.1.1")
    assert [each["id"] for each in spec["processes"]] == ["BrokerA", "P0", "dump"]
    assert {each["process"] for each in spec["steps"]} == {"BrokerA", "P0", "dump"}
    assert spec["digest"] == plan.spec("10.0.1.1")["digest"] != plan.spec("10.0.1.2")["digest"]
