"""What the README shows, done with real processes: three brokers, two clients, a link that breaks."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from panda.cli.exits import Exit
from tests.support.processes import Processes

ROOT = Path(__file__).parents[2]
BIN = ROOT / "broker_runtime" / "bin"
PANDA = str(Path(sys.executable).with_name("panda"))


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def test_three_brokers_two_clients_and_a_killed_broker_in_between(processes: Processes) -> None:
    a, b, c = free_ports(3)
    alice = processes.start(
        "-Xms", "64", "-Xmx", "512", "-hostname", "127.0.0.1", "-p", str(a), "-i", "Alice",
        program=[str(BIN / "startbroker.sh")],
    )  # fmt: skip
    alice.wait_for(f"ready Alice 127.0.0.1:{a}")
    bob_words = ["-uri", f"socket://127.0.0.1:{b}/Bob", "-n", f"socket://127.0.0.1:{a}/Alice"]
    bob = processes.start(*bob_words, program=[str(BIN / "startbroker")])
    bob.wait_for("ready Bob")
    carol = processes.start("broker", "-i", "Carol", "-p", str(c), "-n", f"127.0.0.1:{b}")
    carol.wait_for("link with Bob is up", carol.stderr)

    subscriber = processes.start("-b", f"127.0.0.1:{c}", "-i", "S0", program=[str(BIN / "startclient")])
    subscriber.type("s [class,eq,'STOCK'],[price,>,10]\n")
    subscriber.wait_for("subscribed s1")
    publisher = processes.start("-b", f"127.0.0.1:{a}", "-i", "P0", program=[str(BIN / "startclient.sh")])
    publisher.type("a [class,eq,'STOCK'],[price,isPresent,@INTEGER]\np [class,'STOCK'],[price,20]\n")
    subscriber.wait_for("s1: [class,'STOCK'],[price,20]")

    bob.popen.send_signal(signal.SIGKILL)
    bob.wait()
    carol.wait_for("link with Bob is down", carol.stderr)
    again = processes.start(*bob_words, program=[str(BIN / "startbroker")])
    again.wait_for("link with Carol is up", again.stderr)
    again.wait_for("link with Alice is up", again.stderr)
    publisher.type("info Carol\n")
    publisher.wait_for(lambda line: line.startswith("Carol "))
    publisher.type("p [class,'STOCK'],[price,30]\nquit\n")
    subscriber.wait_for("s1: [class,'STOCK'],[price,30]")
    subscriber.type("quit\n")
    assert (publisher.wait(), subscriber.wait()) == (0, 0)
    assert [process.terminate() for process in (alice, again, carol)] == [0, 0, 0]


@pytest.mark.parametrize("script", sorted(path.name for path in BIN.iterdir()))
def test_the_scripts_pass_on_their_arguments_as_they_are(processes: Processes, script: str) -> None:
    """From another folder, through a symbolic link, with words that a shell would split."""
    link = processes.folder / "a link"
    link.symlink_to(BIN / script)
    word = ["broker"] if script == "run" else []
    process = processes.start(*word, "--no such; thing", program=[str(link)], PANDA_PYTHON=sys.executable)
    process.end_of_input()
    assert process.wait() == Exit.REFUSED
    assert "--no such; thing" in process.said()
    checked = shutil.which("shellcheck")
    if checked:
        subprocess.run([checked, str(BIN / script)], check=True)
