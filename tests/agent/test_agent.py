"""A real supervisor behind a real relay: it keeps time, survives, ends what it started and nothing else."""

import base64
import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from broker_runtime.agent.identity import lives, marker_of, snapshot
from broker_runtime.agent.protocol import Code, RequestRefused, encode, request
from tests.agent.controller import REPOSITORY, Closed, Controller, Host, end, until
from tests.agent.stage import command, spec_of, step

TALKER = [sys.executable, str(Path(__file__).with_name("talker.py"))]
SECRET = "open-sesame-4711"


def sleeper(id_: str, **fields: Any) -> dict[str, Any]:
    return command(id_, **{"arguments": ["sleep", "600"], **fields})


def broker(id_: str, **fields: Any) -> dict[str, Any]:
    arguments = ["-i", id_, "-p", "0", "--log", "log.jsonl"]
    return {"id": id_, "kind": "runtime", "word": "broker", "arguments": arguments, **fields}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def chain(names: str) -> list[dict[str, Any]]:
    """Brokers, each linked with the one before."""
    ports = {name: free_port() for name in names}
    brokers = [
        broker(name, arguments=["-i", name, "-p", str(ports[name]), "--log", "log.jsonl"]) for name in names
    ]
    for one, near in zip(brokers[1:], names, strict=False):
        one["arguments"] += ["-n", f"127.0.0.1:{ports[near]}"]
    return brokers


def dialled(folder: Path, name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sock.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)
    return sock


def adds(processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [step(number, 0.0, "add", process["id"]) for number, process in enumerate(processes, 1)]


def identity(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["ticks"]


def test_brokers_are_forked_become_ready_stop_and_nothing_is_left(host: Host) -> None:
    controller = host.connect()
    told = controller.steer()
    assert told["protocol"] == 1
    assert told["state"] == "empty"
    assert lives(told["pid"], host.supervisor()[1])
    brokers = [broker(f"B{number}") for number in range(5)]
    controller.run(spec_of(brokers, adds(brokers)))
    for each in brokers:
        assert controller.wait_for("ready", process=each["id"])["address"].startswith("127.0.0.1:")
        assert lives(*identity(controller.wait_for("started", process=each["id"])))
    until(lambda: "ready B0" in controller.ask("tail", process="B0", stream="stdout", lines=5)["text"])
    controller.ask("stop")
    controller.wait_for("stopped")
    assert [(event["code"], event["expected"]) for event in controller.of("exited")] == [(0, True)] * 5
    assert not any(lives(*identity(event)) for event in controller.of("started"))
    controller.ask("clean")
    with pytest.raises(Closed):
        controller.receive()
    assert list(host.root.iterdir()) == []
    until(lambda: not lives(told["pid"], 0) and not Path(f"/proc/{told['pid']}").exists())


def test_a_forked_process_carries_its_marker_and_no_secret_can_be_seen(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [broker("B", environment={"PANDA_TOKEN": SECRET}), command("C", environment={"T": SECRET})]
    processes[1]["arguments"] = [
        sys.executable,
        "-c",
        "import os, sys; sys.exit('the token is ' + os.environ['T'])",
    ]
    controller.run(spec_of(processes, adds(processes)))
    pid = controller.wait_for("started", process="B")["pid"]
    assert marker_of(pid).startswith("demo/B/")
    assert "panda broker B" in Path(f"/proc/{pid}/cmdline").read_text()
    assert SECRET not in Path(f"/proc/{pid}/environ").read_text()
    assert controller.wait_for("exited", process="C")["last"] == "the token is ***"
    controller.ask("stop")
    kept = host.folder() / "spec.json"
    assert SECRET in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for name in ("journal.jsonl", "agent.log"):
        assert SECRET not in (host.folder() / name).read_text()
    assert "spec.json" not in str(controller.ask("files"))
    with pytest.raises(RequestRefused) as refused:
        controller.ask("read", path="spec.json", offset=0, length=10)
    assert refused.value.code is Code.NO_FILE


def test_everything_of_a_run_is_for_its_user_alone(host: Host) -> None:
    host.connect().steer()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in host.folder().iterdir()}
    assert modes == dict.fromkeys(("agent.log", "agent.sock", "journal.jsonl", "line.sock", "lock"), 0o600)
    assert stat.S_IMODE(host.folder().stat().st_mode) == 0o700


def test_steps_are_done_in_order_on_time_and_both_times_are_written_down(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [sleeper(f"S{number}") for number in range(10)]
    steps = [step(number + 1, 0.3 + number // 2 * 0.1, "add", f"S{number}") for number in range(10)]
    controller.run(spec_of(processes, steps, stop_at_s=1.0))
    controller.wait_for("stopped")
    done = controller.of("done")[:-1]
    assert [event["number"] for event in done] == list(range(1, 11))
    assert all(0 <= event["actual"] - event["planned"] < 0.5 for event in done)
    t0 = controller.of("go")[0]["t0"]
    assert [round(event["planned"] - t0, 3) for event in done] == [round(each["at_s"], 3) for each in steps]


def test_losing_the_relay_changes_nothing_for_the_run(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [sleeper("A"), sleeper("B")]
    steps = [*adds(processes), step(3, 0.5, "kill", "A", for_s=0.35), step(4, 0.6, "pause", "B", for_s=0.4)]
    controller.run(spec_of(processes, steps))
    pid, _ = host.supervisor()
    controller.popen.kill()
    os.kill(pid, signal.SIGHUP)
    other = host.connect("demo", "--no-start")
    assert other.steer()["epoch"] == 2
    other.ask("events", since=0)
    other.wait_for("ended")
    assert host.supervisor()[0] == pid
    actions = [(event["number"], event["action"]) for event in other.of("done")]
    assert actions == [(1, "add"), (2, "add"), (3, "kill"), (4, "pause"), (3, "add"), (4, "resume")]
    assert [event["seq"] for event in other.events] == list(range(1, len(other.events) + 1))
    other.ask("stop")


def test_a_killed_supervisor_is_followed_by_one_that_adopts_and_goes_on(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [sleeper("A"), broker("B"), sleeper("Late")]
    steps = [
        *adds(processes[:2]),
        step(3, 0.6, "add", "Late"),
        step(4, 0.7, "fault", "B", fault="cut", peer="X"),
    ]
    controller.run(spec_of(processes, steps))
    controller.wait_for("ready", process="B")
    first = {event["process"]: identity(event) for event in controller.of("started")}
    end(*host.supervisor())
    controller.close()
    assert all(lives(*one) for one in first.values())
    other = host.connect()
    assert other.steer()["epoch"] == 2
    other.ask("events", since=0)
    other.wait_for("ended")
    assert "error" not in other.wait_for("done", number=4)
    assert [event["process"] for event in other.of("started")] == ["A", "B", "Late"]
    assert all(lives(*one) for one in first.values())
    assert [event["pid"] for event in other.of("opened")][-1] == host.supervisor()[0]
    status = {each["id"]: each for each in other.ask("status")["processes"]}
    assert status["B"]["ready"] is True
    other.ask("stop")
    assert not any(lives(*identity(event)) for event in other.of("started"))


def taken_over(host: Host, controller: Controller) -> Controller:
    """Kill the supervisor and let another take over; its controller knows the whole story."""
    end(*host.supervisor())
    controller.close()
    other = host.connect()
    other.steer()
    other.ask("events", since=0)
    return other


def test_a_broker_that_starts_while_its_supervisor_is_killed_becomes_ready(
    host: Host, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    os.mkfifo(token, 0o600)  # it waits for its token until somebody writes one
    waiting = broker("A")
    waiting["arguments"] += ["--token-file", str(token)]
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([waiting], adds([waiting])), go=False)
    other = taken_over(host, controller)
    other.wait_for("opened", count=2)
    assert other.of("ready") == []
    token.write_text(SECRET)
    assert other.wait_for("ready", process="A")["address"].startswith("127.0.0.1:")
    assert other.of("trouble") == []
    other.ask("stop")


def test_after_a_supervisor_was_killed_links_are_reported_and_cut(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    brokers = chain("AB")
    controller.run(spec_of(brokers, adds(brokers)))
    for name, peer in ("AB", "BA"):
        controller.wait_for("link", process=name, peer=peer, up=True)
    other = taken_over(host, controller)
    other.ask("step", step=step(3, None, "fault", "A", fault="cut", peer="B", for_s=0.5))
    assert "error" not in other.wait_for("done", number=3)
    for process, peer in ("AB", "BA"):
        other.wait_for("link", process=process, peer=peer, up=False)
    other.wait_for("healed", process="A", peer="B")
    for process, peer in ("AB", "BA"):
        other.wait_for("link", process=process, peer=peer, up=True, count=2)
    other.ask("stop")


def test_what_became_of_links_while_no_supervisor_lived_is_told_to_the_next(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    brokers = chain("AB")
    controller.run(spec_of(brokers, adds(brokers)))
    controller.wait_for("link", process="A", peer="B", up=True)
    b = identity(controller.wait_for("started", process="B"))
    end(*host.supervisor())
    end(*b)
    log = host.folder() / "processes" / "A" / "log.jsonl"
    until(lambda: "link_down" in log.read_text())
    other = taken_over(host, controller)
    other.wait_for("exited", process="B")
    assert other.wait_for("link", process="A", peer="B", up=False)["reason"]
    other.ask("stop")


def test_nobody_but_a_process_of_the_run_gets_a_line(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([broker("A")], adds([broker("A")])))
    controller.wait_for("ready", process="A")
    with dialled(host.folder(), "line.sock") as sock, contextlib.suppress(ConnectionError):
        sock.sendall(b'{"say":"link","peer":"Ghost","up":true}\n')
        assert sock.recv(1) == b""
    controller.ask("step", step=step(2, None, "fault", "A", fault="cut", peer="B", for_s=0.1))
    controller.wait_for("healed", process="A")
    assert controller.of("link") == []
    controller.ask("stop")


def test_look_alikes_survive_remove_kill_stop_and_clean(host: Host) -> None:
    argv = ["sleep", "599.25"]
    strangers = [
        subprocess.Popen(argv, env={**os.environ, "PANDA_PROCESS": "demo/A/other.1"}) for _ in range(50)
    ]
    try:
        controller = host.connect()
        controller.steer()
        processes = [sleeper(name, arguments=argv) for name in ("A", "B", "C")]
        steps = [*adds(processes), step(4, 0.1, "remove", "A"), step(5, 0.1, "kill", "B")]
        controller.run(spec_of(processes, steps))
        controller.wait_for("ended")
        controller.ask("stop")
        controller.wait_for("stopped")
        controller.ask("clean")
        assert [stranger.poll() for stranger in strangers] == [None] * 50
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()


DAEMONS = """
import os, subprocess, sys, time
subprocess.Popen(["sleep", "598.5"], start_new_session=True)            # another session, still our child
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvpe("sleep", ["sleep", "598.5"], os.environ)             # a daemon with our environment
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "598.5"], {})                 # a daemon without
    os._exit(0)
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", deaf])
open("family", "w").close()
if sys.argv[1] == "stay":
    time.sleep(600)
"""


@pytest.mark.parametrize("what", ["stay", "leave"])
def test_all_descendants_are_ended_also_those_that_went_away(host: Host, what: str) -> None:
    controller = host.connect()
    controller.steer()
    process = command("A", arguments=[sys.executable, "-c", DAEMONS, what], grace_s=0.3)
    controller.run(spec_of([process], adds([process])))
    until((host.folder() / "processes/A/family").exists)
    if what == "leave":
        controller.wait_for("exited")
    supervisor, _ = host.supervisor()
    until(lambda: len(descendants(supervisor)) == (5 if what == "stay" else 4))
    family = descendants(supervisor)
    controller.ask("stop")
    assert not any(lives(*one) for one in family)
    assert descendants(supervisor) == []


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.fork() or os.execvp("sleep", ["sleep", "597"])
    os._exit(0)
os.wait()
time.sleep(600)
"""


def test_a_removed_process_takes_its_daemon_with_it_and_leaves_its_neighbour_alone(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [command(name, arguments=[sys.executable, "-c", DAEMON], grace_s=0.2) for name in "AB"]
    controller.run(spec_of(processes, adds(processes)))
    supervisor, _ = host.supervisor()
    until(lambda: [entry.parent for entry in snapshot().values()].count(supervisor) == 4)
    until(lambda: len(descendants(supervisor)) == 4)
    marked = {key: marker_of(key[0]) for key in descendants(supervisor)}
    controller.ask("step", step=step(9, None, "remove", "A"))
    until(lambda: len(descendants(supervisor)) == 2)
    assert all(marked[key].startswith("demo/B/") for key in descendants(supervisor))
    controller.ask("stop")
    assert descendants(supervisor) == []


def descendants(pid: int) -> list[tuple[int, int]]:
    """Living ones, without the warm parent."""
    everything = snapshot()
    found = []
    for entry in everything.values():
        above = entry
        while above.parent in everything and above.parent != pid:
            above = everything[above.parent]
        if above.parent == pid and entry.state != "Z":
            found.append(entry.key)
    return found


def test_a_process_that_ignores_the_request_to_end_is_killed_after_its_grace(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); open('deaf', 'w').close(); time.sleep(600)"
    )
    process = command("A", arguments=[sys.executable, "-c", code], grace_s=0.2)
    controller.run(spec_of([process], adds([process])))
    until((host.folder() / "processes/A/deaf").exists)
    controller.ask("step", step=step(9, None, "remove", "A"))
    assert controller.wait_for("exited")["signal"] == signal.SIGKILL
    controller.ask("stop")


def test_a_controller_that_dies_while_it_stops_a_run_leaves_it_to_the_next(host: Host) -> None:
    first = host.connect()
    first.steer()
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); open('deaf', 'w').close(); time.sleep(600)"
    )
    process = command("A", arguments=[sys.executable, "-c", code], grace_s=30.0)
    first.run(spec_of([process], adds([process])))
    until((host.folder() / "processes/A/deaf").exists)
    first.send(encode(request(99, "stop", {})))
    first.wait_for("intent", action="stop")
    first.popen.kill()
    second = host.connect()
    assert second.ask("hello", mode="watch")["state"] == "stopping"
    until(lambda: any(entry.get("present") is False for entry in host.journal()))
    assert second.steer()["state"] == "stopping"
    second.ask("stop", grace_s=0.0)


def test_a_paused_process_is_stopped_and_goes_on_and_can_be_ended(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([sleeper("A")], adds([sleeper("A")])))
    pid = controller.wait_for("started")["pid"]
    for number, action, state in ((5, "pause", "T"), (6, "resume", "S"), (7, "pause", "T")):
        controller.ask("step", step=step(number, None, action, "A"))
        controller.wait_for("done", number=number)
        until(lambda state=state: snapshot()[pid].state == state)  # type: ignore[misc]
    controller.ask("stop")
    assert controller.wait_for("exited")["signal"] == signal.SIGTERM


def test_faults_are_said_on_the_line_and_heal_when_no_controller_is_there(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    process = command("T", arguments=TALKER)
    steps = adds([process])
    steps += [step(2, 0.2, "fault", "T", fault="delay", peer="Bob", value=0.1, for_s=0.4)]
    steps += [step(3, 0.2, "fault", "T", fault="cut", peer="No")]
    controller.run(spec_of([process], steps))
    assert controller.wait_for("ready")["address"] == "127.0.0.1:9"
    assert controller.wait_for("link")["up"] is True
    controller.close()
    watcher = host.connect()
    watcher.ask("hello", controller="w", mode="watch")
    watcher.ask("events", since=0)
    watcher.wait_for("ended")
    fault, healed = watcher.wait_for("fault"), watcher.wait_for("healed")
    assert fault["until"] == pytest.approx(watcher.wait_for("done", number=2)["actual"] + 0.4, abs=0.01)
    assert healed["t"] - fault["t"] >= 0.39
    assert watcher.wait_for("done", number=3)["error"] == "no such peer"


def test_what_cannot_be_started_says_why(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [command("A", arguments=["no-such-program"]), broker("B"), broker("C", word="nonsense")]
    processes[1]["arguments"] = ["-i", "B", "-p", "nonsense"]
    controller.run(spec_of(processes, adds(processes)))
    assert (
        "no-such-program cannot be executed: No such file" in controller.wait_for("done", number=1)["error"]
    )
    assert "nonsense" in controller.wait_for("exited", process="B")["last"]
    assert "no word" in controller.wait_for("done", number=3)["error"]
    controller.ask("stop")


def test_without_its_libraries_the_runtime_is_reported_as_missing(host: Host, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise ImportError('no msgspec here')")
    controller = host.connect("demo", PYTHONPATH=str(tmp_path / "broken"))
    controller.steer()
    controller.run(spec_of([broker("B")], adds([broker("B")])))
    assert "no msgspec here" in controller.wait_for("done", number=1)["error"]
    assert any("no msgspec here" in event["text"] for event in controller.of("trouble"))
    controller.ask("stop")


def test_a_warm_parent_that_dies_takes_nobody_with_it_and_is_replaced(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    processes = [broker("A"), broker("B")]
    controller.run(spec_of(processes, adds(processes[:1])))
    controller.wait_for("ready", process="A")
    supervisor, _ = host.supervisor()
    children = [entry for entry in snapshot().values() if entry.parent == supervisor]
    parent = min((entry for entry in children if entry.session != entry.pid), key=lambda entry: entry.ticks)
    end(*parent.key)
    controller.wait_for("trouble")
    controller.ask("step", step=step(9, None, "add", "B"))
    controller.wait_for("ready", process="B")
    assert lives(*identity(controller.wait_for("started", process="A")))
    controller.ask("stop")
    assert controller.wait_for("exited", process="A")["code"] == 0


def test_files_are_read_in_pieces_and_nothing_else_can_be(host: Host, tmp_path: Path) -> None:
    controller = host.connect()
    controller.steer()
    process = command(
        "A", arguments=["sh", "-c", "printf 0123456789; ln -s /etc/passwd out; mkfifo pipe; exit 0"]
    )
    controller.run(spec_of([process], adds([process])))
    controller.wait_for("exited")
    (host.folder() / "processes" / "B").symlink_to("/etc")
    files = {each["path"]: each["size"] for each in controller.ask("files")["files"]}
    assert set(files) == {"agent.log", "journal.jsonl", "processes/A/stdout", "processes/A/stderr"}
    answer = controller.ask("read", path="processes/A/stdout", offset=3, length=4)
    assert base64.b64decode(answer["data"]) == b"3456"
    assert answer["size"] == 10
    hostile = ["processes/A/out", "processes/A/pipe", "processes/B/passwd", "processes/A/../../spec.json"]
    hostile += [
        "/etc/passwd",
        "spec.json",
        "lock",
        "processes/A",
        "processes//A/stdout",
        "processes/A/\0",
        "",
    ]
    for path in hostile:
        with pytest.raises(RequestRefused):
            controller.ask("read", path=path, offset=0, length=10)
    with pytest.raises(RequestRefused) as refused:
        controller.ask("read", path="agent.log", offset=0, length=2 << 20)
    assert refused.value.code is Code.TOO_LARGE
    with pytest.raises(RequestRefused) as refused:
        controller.ask("tail", process="nobody", stream="stdout", lines=1)
    assert refused.value.code is Code.UNKNOWN_PROCESS


def test_clean_removes_its_run_and_follows_no_link(host: Host, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "bird").write_text("sings")
    controller, other = host.connect("demo"), host.connect("other")
    controller.steer()
    other.steer()
    process = command("A", arguments=["ln", "-s", str(canary), "link"])
    controller.run(spec_of([process], adds([process])))
    controller.wait_for("exited")
    controller.ask("clean")
    assert (canary / "bird").read_text() == "sings"
    assert [path.name for path in (host.root / "runs").iterdir()] == ["other"]
    other.ask("clean")
    assert list(host.root.iterdir()) == []


def test_nonsense_closes_its_own_connection_and_disturbs_nobody(host: Host) -> None:
    good = host.connect()
    good.steer()
    for data in (
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x04oops",
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        bad = host.connect()
        bad.send(data)
        assert bad.receive()["error"]["code"] == "BAD_REQUEST"
        with pytest.raises(Closed):
            bad.receive()
    assert good.ask("status")["state"] == "empty"
    assert good.ask("clock")["received"] == pytest.approx(time.time(), abs=5)
    assert good.ask("host")["cpus"] >= 1


def test_without_an_agent_no_start_says_so_and_leaves_nothing(host: Host) -> None:
    controller = host.connect("demo", "--no-start")
    assert controller.popen.wait(20) == 3
    assert controller.popen.stderr is not None
    assert b"no agent of run demo" in controller.popen.stderr.read()
    assert not host.root.exists()


def test_relays_that_come_at_once_find_one_agent(host: Host) -> None:
    pids = {each.ask("hello", mode="watch")["pid"] for each in [host.connect() for _ in range(4)]}
    assert len(pids) == 1


def test_quit_keeps_the_folder_and_the_next_agent_knows_the_run(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([sleeper("A")], adds([sleeper("A")])))
    with pytest.raises(RequestRefused):
        controller.ask("quit")
    controller.ask("stop")
    controller.ask("quit")
    until(lambda: not lives(*host.supervisor()))
    assert host.connect().steer()["state"] == "stopped"


def test_a_controller_that_closes_its_input_gets_its_answers(host: Host) -> None:
    controller: Controller = host.connect()
    controller.send(encode(request(1, "hello", {"mode": "watch"})) + encode(request(2, "status", {})))
    assert controller.popen.stdin is not None
    controller.popen.stdin.close()
    assert controller.receive()["id"] == 1
    assert controller.receive()["id"] == 2
    assert controller.popen.wait(20) == 0


def test_the_socket_takes_nobody_without_a_hello(host: Host) -> None:
    host.connect().steer()
    with dialled(host.folder(), "agent.sock") as sock:
        sock.sendall(b'\x00\x00\x00\x16{"id":1,"do":"status"}')
        assert b"say hello first" in sock.recv(1000)


def test_ending_the_supervisor_orderly_ends_its_run(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([sleeper("A")], adds([sleeper("A")])))
    pid, ticks = host.supervisor()
    os.kill(pid, signal.SIGTERM)
    controller.wait_for("stopped")
    until(lambda: not lives(pid, ticks))
    assert not lives(*identity(controller.wait_for("started")))


def test_the_agent_needs_nothing_but_the_standard_library() -> None:
    modules = ["__main__", "relay", "supervisor", "nursery", "protocol"]
    program = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
    program += "".join(f"import broker_runtime.agent.{module}\n" for module in modules)
    program += (
        "print([name for name in ('numpy', 'msgspec', 'broker_runtime.commands') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_cut_between_brokers_is_seen_and_heals_by_its_lease(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    brokers = chain("AB")
    steps = [*adds(brokers), step(3, 0.1, "fault", "A", fault="cut", peer="B", for_s=0.5)]
    controller.run(spec_of(brokers, steps), go=False)
    for name, peer in ("AB", "BA"):
        controller.wait_for("link", process=name, peer=peer, up=True)
    controller.ask("go", t0=time.time())
    controller.wait_for("fault", process="A", peer="B")
    controller.wait_for("link", process="A", peer="B", up=False)
    controller.wait_for("healed", process="A", peer="B")
    controller.wait_for("link", process="A", peer="B", up=True, count=2)
    controller.ask("stop")


def test_a_controller_that_does_not_read_disturbs_nobody(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([sleeper("A")], adds([sleeper("A")])))
    deaf = host.connect()
    deaf.ask("hello", controller="deaf", mode="watch")
    for number in range(300):
        deaf.send(encode(request(number + 2, "status", {})))
    for number in range(100, 300):
        controller.ask("step", step=step(number, None, "mark", text="x" * 4000))
    controller.wait_for("done", number=299)
    controller.ask("stop")


def test_a_run_whose_folder_is_removed_ends(host: Host) -> None:
    controller = host.connect()
    controller.steer()
    controller.run(spec_of([sleeper("A")], [step(1, 0.0, "add", "A")]))
    ours = [identity(controller.wait_for("started")), host.supervisor()]
    shutil.rmtree(host.folder())
    until(lambda: not any(lives(*each) for each in ours))
