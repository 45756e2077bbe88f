"""The console takes words from a pipe and from a terminal, and shows notifications as they come."""

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_runtime.commands.exits import Exit
from tests.support.processes import TIMEOUT_S, Processes

SCRIPT = """\
# a first look
a [class,eq,'STOCK'],[price,isPresent,@INTEGER]
s [class,eq,'STOCK'],[price,>,10]
p [class,'STOCK'],[price,20]
wait 1
list
info
trace [class,'STOCK'],[price,30]
wait 1
unsub s2
unadv all
list
"""


def test_words_from_a_pipe(processes: Processes) -> None:
    processes.broker("A")
    console = processes.start("client", "-b", processes.addresses["A"], "-i", "C")
    console.type(SCRIPT)
    console.end_of_input()
    assert console.wait() == Exit.DONE
    said = "\n".join(console.stdout.seen)
    assert console.stdout.seen[0] == "C connected to A"
    assert "s2: [class,'STOCK'],[price,20]" in said
    assert "A: from C to C" in said
    assert said.endswith("nothing advertised or subscribed")
    assert console.stderr.seen == []


def test_lines_of_json_for_programs(processes: Processes) -> None:
    processes.broker("A")
    console = processes.start("client", "-b", processes.addresses["A"], "-i", "C", "--json")
    console.type(SCRIPT + "p [class,'STOCK',[price,1]\nfoo\np [class,'Y']\nwait 1 0.05\nquit\n")
    assert console.wait() == Exit.FAILED
    answers = [json.loads(line) for line in console.stdout.seen]
    (first, second) = [answer["notification"] for answer in answers if "notification" in answer]
    assert (first["content"], second["content"]["price"]) == ({"class": "STOCK", "price": 20}, 30)
    errors = [answer for answer in answers if "error" in answer]
    assert errors[0]["problems"][0]["column"] == 15
    assert "did you mean" in errors[1]["error"]
    assert "advertise its attributes" in errors[2]["error"]
    assert errors[3]["error"] == "0 of 1 notifications came within 0.05 s"


def test_a_parse_error_points_at_the_place(processes: Processes) -> None:
    processes.broker("A")
    console = processes.start("client", "-b", processes.addresses["A"])
    console.type("s [class,eq,'STOCK'],[price,>>,1]\nquit\n")
    assert console.wait() == Exit.FAILED
    line, caret = console.stdout.seen[-2:]
    assert line.strip() == "[class,eq,'STOCK'],[price,>>,1]"
    assert line[caret.index("^")] == ">"


def test_batch_files_and_another_broker(processes: Processes) -> None:
    processes.broker("A")
    processes.broker("B")
    (processes.folder / "words.txt").write_text("s [class,eq,'X']\n")
    (processes.folder / "loop.txt").write_text("batch loop.txt\n")
    console = processes.start("client", "-b", processes.addresses["A"], "-i", "C")
    console.type(
        f"batch words.txt\nconnect {processes.addresses['B']}\nlist\nbatch loop.txt\nbatch none\nhelp\n"
    )
    console.end_of_input()
    assert console.wait() == Exit.FAILED
    said = "\n".join(console.stdout.seen)
    assert "subscribed s1" in said
    assert "connected to B" in said
    assert "more than 10 deep" in said
    assert "No such file" in said


def test_a_broker_that_cannot_be_reached_leaves_everything_as_it_was(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]
    console = processes.start("client", "-b", address, "-i", "C", "--connect-timeout", "0.2")
    console.type("s [class,eq,'X']\nconnect 127.0.0.1:1\nconnect http://x:1\nunsub s9\nbatch none\nlist\n")
    console.end_of_input()
    assert console.wait() == Exit.FAILED
    assert console.stdout.seen == [
        "C connected to A",
        "subscribed s1",
        "no broker at 127.0.0.1:1: Connection refused; still connected to A",
        "'http://x:1': it is no address of a broker: write host:port or socket://host:port/ID",
        "there is no subscription s9, but s1",
        "none: No such file or directory",
        "s1: [class,eq,'X']",
    ]


# Makes its stdin the controlling terminal, so that ^C is a signal, and becomes the program named.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """The console at a real pseudo-terminal."""

    def __init__(self, arguments: list[str], home: Path) -> None:
        self._master, slave = pty.openpty()
        self.attributes = termios.tcgetattr(slave)
        self._slave = slave
        self.seen = ""
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                TAKE_TERMINAL,
                sys.executable,
                "-m",
                "broker_runtime",
                "client",
                *arguments,
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "HOME": str(home), "TERM": "xterm"},
        )

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text has come; what came before it is done with."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} did not come, but {self.seen!r}"
            self.seen += os.read(self._master, 65_536).decode()
        self.seen = self.seen.partition(text)[2]

    def restored(self) -> bool:
        return termios.tcgetattr(self._slave) == self.attributes

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def terminal(processes: Processes) -> Iterator[Terminal]:
    processes.broker("A")
    opened = Terminal(["-b", processes.addresses["A"], "-i", "C"], processes.folder)
    try:
        opened.wait_for("C connected to A")
        opened.wait_for("> ")
        yield opened
    finally:
        opened.close()


def test_at_a_terminal_notifications_show_above_the_line_being_typed(
    terminal: Terminal, processes: Processes
) -> None:
    terminal.type("s [class,eq,'STOCK']\n")
    terminal.wait_for("subscribed s1")
    terminal.wait_for("> ")
    terminal.type("lis")
    terminal.wait_for("lis")
    processes.run("publish", "-b", processes.addresses["A"], "[class,'STOCK'],[price,20]")
    terminal.wait_for("s1: [class,'STOCK'],[price,20]")
    terminal.wait_for("> lis")
    terminal.type("t\n")
    terminal.wait_for("s1: [class,eq,'STOCK']")
    terminal.type("quit\n")
    assert terminal.process.wait(TIMEOUT_S) == Exit.DONE
    assert "list" in (processes.folder / ".panda_history").read_text()


def test_tab_completes_a_word(terminal: Terminal) -> None:
    terminal.type("subs\t")
    terminal.wait_for("subscribe ")


def test_an_interrupt_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.type("half a wo")
    terminal.wait_for("wo")
    terminal.type("\x03")
    assert terminal.process.wait(TIMEOUT_S) == Exit.INTERRUPTED
    assert terminal.restored()


def test_the_end_of_input_quits(terminal: Terminal) -> None:
    terminal.type("\x04")
    assert terminal.process.wait(TIMEOUT_S) == Exit.DONE
    assert terminal.restored()
