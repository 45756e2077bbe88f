"""A process with a line reports when it is ready and how its links fare, and needs nobody to listen."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.commands.exits import Exit
from broker_runtime.net.line import LineError, open_line
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer
from tests.support.line import Lines
from tests.support.processes import Processes

STOCK = "[class,eq,'STOCK'],[symbol,eq,'YHOO']"


def test_a_broker_reports_its_address_and_every_change_of_its_links(lines: Lines) -> None:
    _, a_line = lines.broker("A")
    b, b_line = lines.broker("B", "A")
    assert a_line.wait_for(say="link", peer="B") == {"say": "link", "peer": "B", "up": True}
    b_line.wait_for(say="link", peer="A", up=True)
    b.popen.kill()
    down = a_line.wait_for(say="link", peer="B")
    assert down["up"] is False
    assert down["reason"]


def test_a_link_that_is_lost_and_then_given_up_is_reported_down_once(lines: Lines) -> None:
    a, a_line = lines.broker("A", options=("--session-expiry", "0.1"))
    b, b_line = lines.broker("B", "A")
    b_line.wait_for(say="link", peer="A", up=True)
    b.popen.kill()
    a_line.wait_for(say="link", up=False)
    a.wait_for("link with B is down: expired", a.stderr)
    assert a.terminate() == Exit.DONE
    a_line.wait_for_end()
    assert [report for report in a_line.reports if not report.get("up")] == []


def test_a_link_whose_broker_left_is_down_for_the_reason_it_gave(lines: Lines) -> None:
    _, a_line = lines.broker("A")
    b, b_line = lines.broker("B", "A")
    b_line.wait_for(say="link", peer="A", up=True)
    assert b.terminate() == Exit.DONE
    assert a_line.wait_for(say="link", up=False)["reason"] == "SIGTERM"


def test_clients_of_a_broker_are_no_links(lines: Lines) -> None:
    _, a_line = lines.broker("A")
    client, line = lines.start("subscribe", "-b", lines.addresses["A"], "-i", "S", STOCK)
    line.wait_for(say="ready")
    assert client.terminate() == Exit.DONE
    assert a_line.reports == []


@pytest.mark.parametrize(
    "words",
    [
        ["sqpublisher", "-s", "YHOO", "-d", "600"],
        ["sqsubscriber", "-s", STOCK],
        ["publish", "-"],
        ["publish", "-a", STOCK, "-"],
        ["subscribe", STOCK],
        ["workload", "publish"],
        ["workload", "subscribe"],
        ["client"],
        ["monitor"],
    ],
    ids=" ".join,
)
def test_a_client_is_ready_when_the_broker_has_taken_what_it_asks_for(lines: Lines, words: list[str]) -> None:
    lines.broker("A")
    process, line = lines.start(
        *words, "-b", lines.addresses["A"], "-i", "C", "--log", "C.jsonl", "--run", "r", "--log-every", "1"
    )
    assert line.wait_for(say="ready") == {"say": "ready", "id": "C"}
    assert process.terminate() == Exit.DONE, process.said()
    line.wait_for_end()
    logged = [json.loads(text) for text in (lines.folder / "C.jsonl").read_text().splitlines()]
    assert [each["kind"] for each in logged][:2] == ["start", "connected"]
    assert {each["run"] for each in logged} == {"r"}


@pytest.mark.parametrize(
    "words",
    [
        ["sqpublisher", "-s", "YHOO"],
        ["sqsubscriber", "-s", STOCK],
        ["publish", "[class,'X']"],
        ["subscribe", STOCK],
        ["workload", "publish"],
    ],
    ids=" ".join,
)
def test_an_agent_may_end_a_client_that_is_still_connecting(lines: Lines, words: list[str]) -> None:
    process, line = lines.start(*words, "-b", "127.0.0.1:1", "-i", "C", "--log", "C.jsonl")
    process.wait_for("waiting for", process.stderr)
    assert process.terminate() == Exit.DONE, process.said()
    assert process.stderr.seen[-1].endswith("stopped before a broker answered at 127.0.0.1:1")
    assert "start" in (lines.folder / "C.jsonl").read_text()
    assert line.reports == []


def test_a_subscriber_is_ended_while_it_waits_for_its_delay(lines: Lines) -> None:
    lines.broker("A")
    process, line = lines.start(
        "sqsubscriber", "-b", lines.addresses["A"], "-i", "C", "-s", STOCK, "-d", "600"
    )
    process.wait_for("connected to A", process.stderr)
    assert process.terminate() == Exit.DONE
    assert line.reports == []


def test_a_broker_that_cannot_listen_is_never_ready(lines: Lines) -> None:
    lines.broker("A")
    port = lines.addresses["A"].rpartition(":")[2]
    process, line = lines.start("broker", "-i", "B", "-p", port)
    assert process.wait() == Exit.FAILED
    assert process.stderr.seen == [f"broker: cannot listen at 127.0.0.1:{port}: the port is taken"]
    line.wait_for_end()
    assert line.reports == []


def test_nobody_at_the_other_end_is_no_problem(lines: Lines) -> None:
    a, a_line = lines.broker("A")
    a_line.close()
    _, b_line = lines.broker("B", "A")
    b_line.wait_for(say="link", peer="A", up=True)
    a.wait_for("link with B is up", a.stderr)
    assert a.terminate() == Exit.DONE
    b_line.wait_for(say="link", peer="A", up=False)


def test_an_agent_that_does_not_read_holds_nobody_up(lines: Lines) -> None:
    """More answers than the socket and the bound hold, to an end that reads nothing."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            number = theirs.fileno()
            a = lines.processes.start("broker", "-i", "A", "-p", "0", kept=[number], PANDA_LINE=str(number))
        a.wait_for("ready A")
        ours.settimeout(20)
        ours.sendall(b"nonsense\n" * 100_000)
        a.wait_for("reports are dropped", a.stderr)
        assert a.terminate() == Exit.DONE


@pytest.mark.parametrize("value", ["x", "-1", "2.0", "999999", "99999999999999999999", "²"])
def test_a_line_that_is_none_is_refused(processes: Processes, value: str) -> None:
    process = processes.run("broker", "-i", "A", "-p", "0", PANDA_LINE=value)
    assert process.wait() == Exit.REFUSED
    (said,) = process.stderr.seen
    assert said.startswith("broker: PANDA_LINE=")
    assert process.stdout.seen == []


def test_only_a_unix_stream_socket_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        socket.socket(socket.AF_INET) as inet,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        (tmp_path / "file").open() as file,
    ):
        for number in (inet.fileno(), datagrams.fileno(), file.fileno()):
            with pytest.raises(LineError):
                open_line({"PANDA_LINE": str(number)})
            os.fstat(number)  # what is not ours stays open


async def test_the_line_leaves_the_environment_and_is_not_inherited() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        number = theirs.detach()
        os.set_inheritable(number, True)
        environment = {"PANDA_LINE": str(number), "PATH": "/bin"}
        line = open_line(environment)
        assert line is not None
        assert environment == {"PATH": "/bin"}
        assert not os.get_inheritable(number)
        assert open_line(environment) is None
        await line.close()


@pytest.mark.parametrize("words", [["control", "info"], ["trace", "[class,'X']"], ["monitor", "--once"]])
def test_a_client_that_ends_by_itself_is_ready_before(lines: Lines, words: list[str]) -> None:
    lines.broker("A")
    process, line = lines.start(*words, "-b", lines.addresses["A"], "-i", "C")
    assert process.wait() == Exit.DONE, process.said()
    line.wait_for(say="ready", id="C")


def test_a_process_that_has_not_begun_yet_is_ended_too(processes: Processes) -> None:
    """It reads its options from a pipe that says nothing."""
    pipe = processes.folder / "options.json"
    os.mkfifo(pipe)
    process = processes.start("broker", "-c", "options.json")
    with pipe.open("wb"):  # waits until the broker is there
        assert process.terminate() == Exit.DONE
    assert process.said() == "stdout:\nstderr:"


async def test_a_broker_asked_to_stop_before_it_starts_stops() -> None:
    server = BrokerServer(BrokerSettings(id="A"), LogWriter(None, "A"))
    server.request_stop("early")
    await server.start(Address("127.0.0.1", 0))
    try:
        async with asyncio.timeout(20):
            assert await server.stopped() == "early"
    finally:
        await server.close()


def test_an_interrupt_while_connecting_stays_one(lines: Lines) -> None:
    process, _ = lines.start("subscribe", "-b", "127.0.0.1:1", STOCK)
    process.wait_for("waiting for", process.stderr)
    process.popen.send_signal(signal.SIGINT)
    assert process.wait() == Exit.INTERRUPTED
