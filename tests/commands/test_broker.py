"""A broker as a process: it says when it is ready, refuses clearly, and leaves properly."""

import asyncio
import json
import signal

import pytest

from broker_runtime.client import connect
from broker_runtime.commands.exits import Exit
from tests.support.processes import Processes


def test_it_is_ready_on_a_free_port_and_sigterm_ends_it_with_its_log_written(processes: Processes) -> None:
    a = processes.broker("A")
    b = processes.broker("B", "A")
    a.wait_for("link with B is up", a.stderr)
    assert b.terminate() == Exit.DONE
    a.wait_for("link with B is down: SIGTERM", a.stderr)  # B said goodbye; the connection was not just cut
    lines = [json.loads(line) for line in (processes.folder / "B.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines][:2] == ["start", "ready"]
    assert lines[-1]["kind"] in ("stop", "link_down")
    assert any(line["kind"] == "stop" and line["reason"] == "SIGTERM" for line in lines)


def test_an_interrupt_is_an_interrupt(processes: Processes) -> None:
    a = processes.broker("A")
    a.popen.send_signal(signal.SIGINT)
    assert a.wait() == Exit.INTERRUPTED


def test_ready_is_said_as_json_when_asked(processes: Processes) -> None:
    line = processes.start("broker", "-i", "A", "-p", "0", "--json").wait_for("ready")
    assert json.loads(line)["ready"] == "A"


def test_a_port_in_use_is_said_in_one_line(processes: Processes) -> None:
    processes.broker("A")
    port = processes.addresses["A"].rpartition(":")[2]
    other = processes.run("broker", "-i", "B", "-p", port)
    assert processes.code(other) == Exit.FAILED
    assert other.stderr.seen == [f"broker: cannot listen at 127.0.0.1:{port}: the port is taken"]
    assert other.stdout.seen == []


def test_an_address_of_another_host_is_said(processes: Processes) -> None:
    other = processes.run("broker", "-i", "B", "-p", "0", "-hostname", "192.0.2.1")
    assert processes.code(other) == Exit.FAILED
    assert "cannot listen at 192.0.2.1:0" in other.said()


def test_bad_options_are_all_told_and_nothing_starts(processes: Processes) -> None:
    process = processes.run("broker", "-i", "A", "-prt", "1", "-cy", "on")
    assert processes.code(process) == Exit.REFUSED
    assert process.stdout.seen == []
    assert [line.startswith("broker: ") for line in process.stderr.seen] == [True, True]


@pytest.mark.parametrize(
    ("name", "text"),
    [("b.json", '{"id": "A", "port": 0, "log-every": 1}'), ("b.toml", 'id = "A"\nport = 0\nlog-every = 1')],
)
def test_options_come_from_a_file_too(processes: Processes, name: str, text: str) -> None:
    (processes.folder / name).write_text(text)
    processes.start("broker", "-c", name).wait_for("ready A ")
    processes.start("broker", "-c", name, "-i", "B").wait_for("ready B ")


@pytest.mark.parametrize("text", ["[1]", "{", '{"prt": 1}'])
def test_a_bad_file_is_refused_by_name(processes: Processes, text: str) -> None:
    (processes.folder / "b.json").write_text(text)
    process = processes.run("broker", "-c", "b.json", "-i", "A", "-p", "0")
    assert processes.code(process) == Exit.REFUSED
    assert "b.json" in process.stderr.seen[0]


def test_a_cycle_is_refused_with_the_way_it_would_close(processes: Processes) -> None:
    processes.broker("A")
    b = processes.broker("B", "A")
    b.wait_for("link with A is up", b.stderr)
    c = processes.broker("C", "A", "B")
    line = c.wait_for("would close a cycle", c.stderr)
    assert "has to stay without cycles (CYCLE)" in line
    assert c.popen.poll() is None


def test_a_neighbour_with_another_id_than_expected_is_told(processes: Processes) -> None:
    processes.broker("A")
    b = processes.broker("B", f"socket://{processes.addresses['A']}/Alicia")
    line = b.wait_for("warning", b.stderr)
    assert line == f"B: warning: the broker at {processes.addresses['A']} is A, not Alicia as -n says"


def test_a_token_file_keeps_strangers_out(processes: Processes) -> None:
    (processes.folder / "token").write_text("s3cret\n")
    processes.broker("A", options=["--token-file", "token"])
    publish = ["publish", "-b", processes.addresses["A"], "[class,'X']"]
    stranger = processes.run(*publish)
    assert processes.code(stranger) == Exit.FAILED
    assert "token" in stranger.stderr.seen[0]
    assert processes.code(processes.run(*publish, PANDA_TOKEN="wrong")) == Exit.FAILED
    assert processes.code(processes.run(*publish, PANDA_TOKEN="s3cret")) == Exit.DONE
    assert processes.code(processes.run(*publish, "--token-file", "token")) == Exit.DONE
    assert "s3cret" not in (processes.folder / "A.jsonl").read_text()
    missing = processes.run("broker", "-i", "B", "-p", "0", "--token-file", "nothing")
    assert processes.code(missing) == Exit.REFUSED


async def test_above_its_memory_limit_clients_wait(processes: Processes) -> None:
    a = processes.broker("A", options=["-Xmx1m"])
    a.wait_for("above the memory limit, clients wait", a.stderr)
    async with connect(processes.addresses["A"]) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.advertise("[class,eq,'X']"), 0.3)
    assert a.terminate() == Exit.DONE
    lines = [json.loads(line) for line in (processes.folder / "A.jsonl").read_text().splitlines()]
    (memory,) = [line for line in lines if line["kind"] == "memory"]
    assert memory["holding"] is True
    assert memory["watermark_bytes"] == 1 << 20
