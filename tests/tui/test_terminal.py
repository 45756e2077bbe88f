"""The console in a real terminal, by its keys alone: from a file to a run, to a fault and to the end."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deployment.panda import wait_until
from tests.support.processes import working_below

PANDA = Path(sys.executable).with_name("panda")
TIMEOUT_S = 30.0
PAIR = """\
0 ADD Alice 10.0.1.1 startbroker.sh -p 10000 -i Alice
0 ADD Bob 10.0.1.2 startbroker.sh -p 10000 -i Bob -n 10.0.1.1:10000
1 ADD S0 10.0.1.2 startSQsubscriber.sh -i S0 -b 10.0.1.2:10000 -s "[class,eq,'STOCK']" --quiet
1 ADD P0 10.0.1.1 startSQpublisher.sh -i P0 -b 10.0.1.1:10000 -s YHOO -r 600
"""


class Terminal:
    """A terminal of 120×40 with one program in it, which stays to be looked at when the program has ended.

    Its server reads no configuration and listens in an empty folder, which is the home of what runs there.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        self._environment = {**kept, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}

    def __call__(self, *words: str, check: bool = True) -> str:
        return subprocess.run(
            ["tmux", "-S", str(self._home / "socket"), "-f", "/dev/null", *words],
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=TIMEOUT_S,
            text=True,
            check=check,
        ).stdout.rstrip("\n")

    def open(self, folder: Path, *command: str) -> int:
        """The pid of the program that now runs in it."""
        stays = ("set-option", "-gw", "remain-on-exit", "on")
        self(*stays, ";", "new-session", "-d", "-x", "120", "-y", "40", "-c", str(folder), *command)
        return int(self.of_pane("pane_pid"))

    def of_pane(self, variable: str) -> str:
        return self("display-message", "-p", f"#{{{variable}}}")

    def press(self, *keys: str) -> None:
        self("send-keys", *keys)

    def type(self, text: str) -> None:
        self("send-keys", "-l", text)

    def until(self, holds: Callable[[str], bool], what: str) -> str:
        """The first screen of which this holds; the last one is told when there is none."""
        screen = ""

        def found() -> bool:
            nonlocal screen
            screen = self("capture-pane", "-p")
            return holds(screen)

        try:
            wait_until(found, what, TIMEOUT_S)
        except AssertionError as never:
            raise AssertionError(f"{never}\n{screen}") from None
        return screen

    def shows(self, *texts: str) -> str:
        return self.until(lambda screen: all(text in screen for text in texts), f"{texts} on the screen")

    def close(self) -> None:
        self("kill-server", check=False)


@pytest.fixture
def terminal(place: Path) -> Iterator[Terminal]:
    assert shutil.which("tmux"), "tmux is missing: make packages"
    with tempfile.TemporaryDirectory() as short:  # a socket's path is at most 107 bytes long
        made = Terminal(Path(short))
        try:
            yield made
        finally:
            made.close()


def add_line(terminal: Terminal, line: str) -> None:
    """On the schedule, with the answer to its question."""
    terminal.press("5")
    terminal.shows("how it stands", "a add a line")
    terminal.press("a")
    terminal.until(lambda screen: "a add a line" not in screen, "the keyboard is at the line")
    terminal.type(line)
    terminal.shows(line)
    terminal.press("Enter")
    terminal.shows(f"Add '{line}'?", "Do it (y)")
    terminal.press("y")
    terminal.shows(f"{line}: 2 steps added")


def rows_of(screen: str, *brokers: str) -> list[list[str]]:
    """What the table says of these brokers, cell by cell."""
    cells = [line.split() for line in screen.splitlines()]
    return [row for name in brokers for row in cells if len(row) > 10 and row[0] == name]


def test_a_run_from_its_file_to_its_end_by_keys_alone(place: Path, terminal: Terminal) -> None:
    (place / "pair.txt").write_text(PAIR)
    console = terminal.open(place, str(PANDA), "console")

    def brokers_are(links: str) -> Callable[[str], bool]:
        def holds(screen: str) -> bool:
            rows = rows_of(screen, "Alice", "Bob")
            return len(rows) == 2 and all("running" in row and links in row for row in rows)

        return holds

    # Load, and see that it is valid
    terminal.shows("There are no runs in runs/ yet", "n new: load a topology")
    terminal.press("n")
    terminal.shows("topology file", "^d deploy")
    terminal.type("pair.txt")
    terminal.shows("2 brokers, 2 clients on 2 hosts, 1 link", "no problems", "Phase 1, at once:")

    # Deploy
    terminal.press("C-d")
    terminal.shows("Deploy pair.txt on this machine?", "Deploy (y)")
    assert not (place / "runs").exists(), "nothing is done before the answer"
    terminal.press("y")
    terminal.until(brokers_are("1/1"), "two brokers run and are linked")
    (run,) = (place / "runs").iterdir()

    # A terminal that becomes small and large again
    terminal("resize-window", "-x", "80", "-y", "24")
    terminal.until(
        lambda screen: len(screen.splitlines()) == 24 and "running" in screen and "p pause" in screen,
        "all of it on 80×24",
    )
    terminal("resize-window", "-x", "120", "-y", "40")
    terminal.until(lambda screen: len(screen.splitlines()) == 40 and brokers_are("1/1")(screen), "on 120×40")

    # A fault, and its end
    add_line(terminal, "0 CUT Alice Bob for 60s")
    terminal.shows("cut Alice – Bob for 60 s", "heals in")
    terminal.press("2")
    terminal.until(
        lambda screen: any("0/1" in row for row in rows_of(screen, "Alice", "Bob")), "the link is down"
    )
    add_line(terminal, "0 HEAL Alice Bob")
    terminal.press("2")
    terminal.until(brokers_are("1/1"), "the link is healed")

    # Stop: first not, then yes
    terminal.press("5")
    terminal.shows("s stop the run")
    terminal.press("s")
    terminal.shows(f"Stop {run.name}?", "Every process of the run ends", "No (n)")
    terminal.press("n")
    terminal.until(lambda screen: "No (n)" not in screen, "the question is gone")
    assert len(working_below(place)) > 5, "all of it still runs"
    terminal.press("s")
    terminal.shows(f"Stop {run.name}?", "Do it (y)")
    terminal.press("y")
    terminal.shows(f"{run.name}  over")
    terminal.press("1")
    terminal.until(
        lambda screen: any(line.split()[:2] == [run.name, "stopped"] for line in screen.splitlines()),
        "the run is listed as stopped",
    )

    # Quit
    wait_until(lambda: working_below(place) == [console], "nothing runs but the console", TIMEOUT_S)
    terminal.press("C-q")
    wait_until(lambda: terminal.of_pane("pane_dead_status") == "0", "the console has ended well", TIMEOUT_S)
    assert "Runs" not in terminal("capture-pane", "-p"), "the terminal is as it was before"
    assert working_below(place) == []

    journal = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [entry["kind"] for entry in journal if "who" in entry] == [
        "begun",
        *("asked", "line", "obeyed"),
        *("asked", "line", "obeyed"),
        *("asked", "obeyed"),
    ]
    assert all(f"(pid {console})" in entry["who"] for entry in journal if "who" in entry)
    told = [(entry["action"], entry.get("line")) for entry in journal if entry["kind"] == "obeyed"]
    assert told == [("line", "0 CUT Alice Bob for 60s"), ("line", "0 HEAL Alice Bob"), ("stop", None)]
