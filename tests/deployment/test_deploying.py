"""`panda deploy topo.txt` on real hosts over SSH: it delivers, in two phases, and leaves nothing behind."""

from __future__ import annotations

import signal

import pytest

from tests.deployment.panda import CLIENTS, DIALECTS, PORT, Panda, end_all, left_behind, ours, wait_until
from tests.testbed.bed import Bed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_three_brokers_and_two_clients_deploy_deliver_and_stop(panda: Panda, bed: Bed, dialect: str) -> None:
    topology = panda.topology(DIALECTS[dialect] + CLIENTS)
    ended = panda("run", "--no-analyze", topology, *panda.inventory, "--json")
    assert ended.code == 0, ended.err
    assert ended.data["summary"]["published"] == {"P0": 100}
    assert ended.data["summary"]["delivered"] == {"S0": 100}
    assert ended.data["summary"]["repeated"] == 0
    assert left_behind(bed) == {}
    logs = panda.run_folder() / "hosts"
    assert {path.parent.name for path in logs.glob("*/processes/*/log.jsonl")} == {
        "BrokerA",
        "BrokerB",
        "BrokerC",
        "S0",
        "P0",
    }


def test_the_papers_own_line_deploys_and_the_second_time_nothing_is_sent(panda: Panda, bed: Bed) -> None:
    topology = panda.topology(
        "0.0 ADD BrokerA {0} startbroker.sh -p 10000 -i Alice\n1.0 REMOVE BrokerA {0}\n"
    )
    for _ in range(2):
        ended = panda("run", "--no-analyze", topology, *panda.inventory, "--json")
        assert ended.code == 0, ended.err
    assert set(ended.data["sent_bytes"].values()) == {0}
    removed = [event for event in panda.agent_events("done") if event["action"] == "remove"]
    assert len(removed) == 1
    assert left_behind(bed) == {}


def test_phase_2_begins_after_every_broker_and_link_of_phase_1_is_up(panda: Panda) -> None:
    topology = panda.topology(DIALECTS["options"] + CLIENTS)
    assert panda("run", "--no-analyze", topology, *panda.inventory).code == 0
    entries = panda.journal()
    go = next(n for n, entry in enumerate(entries) if entry["kind"] == "go")
    before = [entry["event"] for entry in entries[:go] if entry["kind"] == "agent"]
    assert {event["process"] for event in before if event["kind"] == "ready"} == {
        "BrokerA",
        "BrokerB",
        "BrokerC",
        "S0",
    }
    ups = {(event["process"], event["peer"]) for event in before if event["kind"] == "link" and event["up"]}
    assert ups == {
        ("BrokerA", "BrokerB"),
        ("BrokerB", "BrokerA"),
        ("BrokerB", "BrokerC"),
        ("BrokerC", "BrokerB"),
    }
    assert "P0" not in {event["process"] for event in before if event["kind"] == "started"}
    assert {event["process"] for event in panda.agent_events("started")} >= {"P0"}


def test_a_gate_that_is_not_met_says_what_is_missing_and_rolls_back(panda: Panda, bed: Bed) -> None:
    taken = bed.hosts[1]
    listen = f"import socket, time; s = socket.create_server(('{taken.address}', {PORT})); time.sleep(60)"
    squatter = taken.run_inside(
        ["sh", "-c", f'python3 -c "{listen}" >/dev/null 2>&1 & echo $!'], as_user=True
    )
    pid = squatter.stdout.strip()
    try:
        wait_until(
            lambda: (
                str(PORT) in taken.run_inside(["sh", "-c", "cat /proc/net/tcp | head -50"]).stdout
                or f":{PORT:04X}" in taken.run_inside(["cat", "/proc/net/tcp"]).stdout
            ),
            "the port is taken",
        )
        ended = panda("deploy", panda.topology(DIALECTS["options"] + CLIENTS), *panda.inventory, "--yes")
    finally:
        taken.run_inside(["kill", pid], check=False)
    assert ended.code == 4, ended.err
    assert "BrokerB" in ended.out
    assert "the port is taken" in ended.out
    assert panda.agent_events("go") == []
    assert "P0" not in {event["process"] for event in panda.agent_events("started")}
    assert left_behind(bed) == {}


def test_a_gate_that_waits_in_vain_names_the_link_at_its_time_out(panda: Panda, bed: Bed) -> None:
    # BrokerC has a token and the others have none, so its link is refused for ever.
    lines = DIALECTS["options"].replace("-n {1}:{port}", "-n {1}:{port} --token-file /etc/hostname")
    topology = panda.topology(lines)
    ended = panda("deploy", topology, *panda.inventory, "--yes", "--gate-timeout", "3")
    assert ended.code == 4, ended.err
    assert "link BrokerC – BrokerB: not up at BrokerC and BrokerB" in ended.out
    assert "does not know the token" in ended.out, "the last words of those concerned are shown"
    assert left_behind(bed) == {}


def test_a_host_that_hangs_is_named_and_costs_no_more_than_its_time_out(panda: Panda, bed: Bed) -> None:
    bed.hosts[2].freeze()
    ended = panda("deploy", panda.topology(DIALECTS["options"] + CLIENTS), *panda.inventory, "--yes")
    assert ended.code == 3, ended.out
    assert bed.hosts[2].address in ended.err
    assert bed.hosts[0].address not in ended.err
    bed.heal()
    assert left_behind(bed) == {}


def test_detached_a_run_goes_on_and_can_be_watched_steered_and_stopped(panda: Panda, bed: Bed) -> None:
    lines = DIALECTS["options"] + CLIENTS.replace("--count {count}", "--duration 300")
    ended = panda("deploy", panda.topology(lines), *panda.inventory, "--yes", "--detach")
    assert ended.code == 5, ended.err
    wait_until(
        lambda: "P0" in {each["id"] for each in panda("status", "--json").data["processes"] if each["pid"]},
        "P0 runs",
    )
    shown = panda("status", "--json").data
    assert shown["state"] in ("running", "schedule done")
    assert all(all(link["up"]) for link in shown["links"])
    step = panda("step", "0 CUT BrokerA BrokerB for 1s")
    assert step.code == 0, step.err
    downs = wait_until(lambda: _downs(panda), "the link is cut")
    assert downs >= {("BrokerA", "BrokerB"), ("BrokerB", "BrokerA")}
    stopped = panda("stop", "--process", "P0")
    assert stopped.code == 0, stopped.err
    wait_until(lambda: _stage(panda, "P0") == "removed", "P0 is stopped")
    assert "S0" in panda("logs", "S0", "--stream", "log", "-n", "2").out
    stopped = panda("stop", "--json")
    assert stopped.code == 0, stopped.err
    assert stopped.data["files"] > 10
    assert left_behind(bed) == {}


def _stage(panda: Panda, process: str) -> str:
    found = panda("status", "--json").data["processes"]
    return next(str(each["stage"]) for each in found if each["id"] == process)


def _downs(panda: Panda) -> set[tuple[str, str]] | None:
    """Links that were ever reported down; read from what the hosts have logged so far."""
    assert panda("collect").code == 0
    found = set()
    for process in ("BrokerA", "BrokerB"):
        for path in (panda.run_folder() / "hosts").glob(f"*/processes/{process}/log.jsonl"):
            for line in path.read_text().splitlines():
                if '"kind":"link_down"' in line:
                    found.add((process, "BrokerB" if process == "BrokerA" else "BrokerA"))
    return found if len(found) == 2 else None


def test_a_killed_controller_is_followed_by_another_that_goes_on(panda: Panda, bed: Bed) -> None:
    topology = panda.topology(DIALECTS["options"] + CLIENTS + "9 MARK the end\n")
    first = panda.start("deploy", topology, *panda.inventory, "--yes")
    wait_until(lambda: (panda.folder / "runs").is_dir() and _went(panda), "GO was given")
    refused = panda("attach")
    assert refused.code == 6, refused.err
    assert "another controller" in refused.err
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = panda("attach", "--json")
    assert second.code == 0, second.err
    starts = [event["process"] for event in panda.agent_events("started")]
    assert sorted(starts) == ["BrokerA", "BrokerB", "BrokerC", "P0", "S0"], "nothing is started twice"
    assert len([entry for entry in panda.journal() if entry["kind"] == "finish"]) == 1
    assert panda("stop").code == 0
    assert left_behind(bed) == {}


def test_a_host_whose_part_is_gone_is_not_started_again_and_its_logs_at_home_stay(
    panda: Panda, bed: Bed
) -> None:
    lines = DIALECTS["options"] + CLIENTS.replace("--count {count}", "--duration 300")
    assert panda("deploy", panda.topology(lines), *panda.inventory, "--yes", "--detach").code == 5
    assert panda("collect").code == 0
    home = panda.run_folder() / "hosts" / bed.hosts[1].address / "journal.jsonl"
    before = home.read_text()
    end_all(bed, bed.hosts[1:2])
    attached = panda("attach")
    assert attached.code == 3, attached.err
    assert f"{bed.hosts[1].address}: its part of the run is gone" in attached.err
    assert ours(bed.hosts[1]) == []
    stopped = panda("stop")
    assert stopped.code == 0, stopped.err
    assert home.read_text() == before
    assert left_behind(bed) == {}


def _went(panda: Panda) -> bool:
    path = panda.run_folder() / "journal.jsonl"
    return path.is_file() and '"kind": "go"' in path.read_text()


def test_processes_that_only_look_like_ours_survive_stop_remove_and_clean(panda: Panda, bed: Bed) -> None:
    host = bed.hosts[0]
    look = "exec -a 'python3 -m broker_runtime broker -i BrokerA' sleep 300 & "
    host.run_inside(["bash", "-c", f"({look * 50}) >/dev/null 2>&1"], as_user=True)
    try:
        assert len(_look_alikes(ours(host))) == 50
        lines = DIALECTS["options"] + "1 REMOVE BrokerC {2}\n"
        assert panda("run", "--no-analyze", panda.topology(lines), *panda.inventory, "--for", "2").code == 0
        assert panda("clean", "--yes").code == 0
        assert len(_look_alikes(ours(host))) == 50
    finally:
        for line in _look_alikes(ours(host)):
            host.run_inside(["kill", line.split()[0]], check=False)


def _look_alikes(lines: list[str]) -> list[str]:
    return [line for line in lines if "broker -i BrokerA" in line and "--log" not in line]


def test_policy_stop_ends_the_run_when_a_process_dies_by_itself(panda: Panda, bed: Bed) -> None:
    lines = DIALECTS["options"] + CLIENTS.replace("--count {count}", "--duration 300")
    process = panda.start(
        "run", "--no-analyze", panda.topology(lines), *panda.inventory, "--policy", "stop", "--for", "200"
    )
    wait_until(lambda: (panda.folder / "runs").is_dir() and _went(panda), "GO was given")
    pid = next(event["pid"] for event in panda.agent_events("started") if event["process"] == "BrokerB")
    bed.hosts[1].run_inside(["kill", "-KILL", str(pid)])
    ended = panda.end(process)
    assert ended.code == 1, ended.err
    assert "BrokerB" in ended.err
    assert left_behind(bed) == {}


def test_clean_with_bundles_leaves_a_host_as_it_was_found(panda: Panda, bed: Bed) -> None:
    topology = panda.topology("0 ADD A {3} startbroker.sh -p 10000 -i A\n1 REMOVE A {3}\n")
    assert panda("run", "--no-analyze", topology, *panda.inventory).code == 0
    home = bed.hosts[3].run_inside(["ls", "-A", "/home/panda"]).stdout.split()
    assert ".panda" in home
    ended = panda("clean", "--bundles", "--yes")
    assert ended.code == 0, ended.err
    assert ".panda" not in bed.hosts[3].run_inside(["ls", "-A", "/home/panda"]).stdout.split()


def test_a_lost_connection_is_made_again_and_the_run_does_not_notice(panda: Panda, bed: Bed) -> None:
    topology = panda.topology(DIALECTS["options"] + CLIENTS, count=400)
    process = panda.start("run", "--no-analyze", topology, *panda.inventory, "--json")
    wait_until(lambda: (panda.folder / "runs").is_dir() and _went(panda), "GO was given")
    relays = [line for line in ours(bed.hosts[1]) if "broker_runtime.agent relay" in line]
    assert relays
    for line in relays:
        bed.hosts[1].run_inside(["kill", "-KILL", line.split()[0]])
    ended = panda.end(process)
    assert ended.code == 0, ended.err
    assert ended.data["summary"]["delivered"] == {"S0": 400}
    told = [entry["about"] for entry in panda.journal() if entry["kind"] == "told"]
    assert told.index("lost") < told.index("back")
    assert left_behind(bed) == {}


def test_a_token_reaches_every_process_and_no_list_log_or_error(panda: Panda, bed: Bed) -> None:
    secret = "hush-hush-4711-nobody-sees-it"
    topology = panda.topology(DIALECTS["options"] + CLIENTS.replace("--count {count}", "--duration 300"))
    ended = panda("deploy", topology, *panda.inventory, "--yes", "--detach", PANDA_TOKEN=secret)
    assert ended.code == 5, ended.err
    wait_until(lambda: _stage(panda, "P0") == "ready", "P0 is let in by its broker")
    said = ended.out + ended.err + panda("status").out + panda("logs", "--stream", "log").out
    for host in bed.hosts:
        said += host.run_inside(["ps", "-eo", "args="]).stdout
        script = "cat /home/panda/.panda/runs/*/*.log /home/panda/.panda/runs/*/journal.jsonl"
        said += host.run_inside(["sh", "-c", f"{script} 2>/dev/null || true"]).stdout
    assert panda("stop").code == 0
    home = [path for path in panda.folder.rglob("*") if path.is_file() and secret in path.read_text()]
    assert home == []
    assert secret not in said


def test_a_stop_that_misses_a_host_says_so_and_the_next_one_does_the_rest(panda: Panda, bed: Bed) -> None:
    assert panda("deploy", panda.topology(DIALECTS["uri"]), *panda.inventory, "--yes", "--detach").code == 5
    bed.hosts[1].freeze()
    first = panda("stop")
    assert first.code == 3
    assert "is stopped on 2 hosts" in first.out
    assert f"not reached: {bed.hosts[1].address}" in first.out
    assert "partly stopped" in panda("ls").out
    bed.heal()
    stages = {each["id"]: each["stage"] for each in panda("status", "--json").data["processes"]}
    assert stages == {"BrokerA": "removed", "BrokerB": "ready", "BrokerC": "removed"}
    assert panda("stop").code == 0
    assert left_behind(bed) == {}


def test_hosts_may_go_by_the_names_of_the_inventory(panda: Panda, bed: Bed) -> None:
    names = [host.name for host in bed.hosts]
    (panda.folder / "named.txt").write_text(DIALECTS["options"].format(*names, port=PORT))
    ended = panda("run", "--no-analyze", "named.txt", *panda.inventory, "--for", "1")
    assert ended.code == 0, ended.out + ended.err
    assert left_behind(bed) == {}
