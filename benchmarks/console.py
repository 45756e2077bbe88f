"""The overlay in a terminal with 100 brokers at 5 updates a second: from a key to the screen, and its costs.

The console runs in a pseudo-terminal as in a real one, all of whose output is read. A key is answered when
what it changes (a selection, a zoom, a layout) has been written there. `made up` has a network invented in
the console's own process, with every figure new at each update; `live` has real brokers in processes of their
own, which are asked as often, and which share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.terminal import Terminal, cpu_s, memory_mb

BROKERS = 100
UPDATE_S = 0.2
KEY_EVERY_S = 0.25
ANSWER_MAX_S = 3.0
START_MAX_S = 60.0
SIZES = {"80x24": (80, 24), "200x60": (200, 60)}
P95_GOAL_MS = 100.0
CPU_GOAL = 0.6

_TITLE = re.compile(r"(\S+)  broker, ")


@dataclass(frozen=True, slots=True)
class Figures:
    name: str
    size: str
    keys: int
    p50_ms: float
    p95_ms: float
    most_ms: float
    cpu_watching: float  # of one core, nobody types
    cpu_typing: float
    memory_first_mb: float
    memory_last_mb: float
    seconds: float
    written_kb_per_s: float


# The console, in a process of its own


def _inside(arguments: Sequence[str]) -> None:
    """What runs in the pseudo-terminal."""
    from panda_tui.app import ConsoleApp
    from panda_tui.options import Options

    if arguments[0] == "live":
        ConsoleApp(Options(broker=arguments[1])).run()
    else:
        ConsoleApp(watch=_MadeUp(int(arguments[1]))).run()  # type: ignore[arg-type]


def links_of(brokers: int) -> list[tuple[int, int]]:
    chance = random.Random(4)
    return [(chance.randrange(max(0, i - 12), i), i) for i in range(1, brokers)]


class _MadeUp:
    """A network whose every figure is another one at each update."""

    def __init__(self, brokers: int) -> None:
        from panda_tui.model import Snapshot

        self._brokers = brokers
        self._links = links_of(brokers)
        self._chance = random.Random(7)
        self._task: asyncio.Task[None] | None = None
        self.snapshot = Snapshot()
        self.client = None

    def start(self, tell: Callable[[Any], None]) -> None:
        self._task = asyncio.create_task(self._run(tell))

    async def _run(self, tell: Callable[[Any], None]) -> None:
        while True:
            self.snapshot = self._made_up()
            tell(self.snapshot)
            await asyncio.sleep(UPDATE_S)

    def _made_up(self) -> Any:
        from panda_tui.model import Broker, Connection, Link, Load, Overlay, Snapshot, State

        now, chance = time.time(), self._chance

        def load() -> Any:
            rate = chance.expovariate(1 / 500)
            return Load(
                rate, rate / 2, int(chance.expovariate(1 / 50)), chance.random(), 50 * chance.random()
            )

        brokers = tuple(
            Broker(f"B{i:03}", State.RUNNING, load(), now, f"10.0.0.{i}:10000", host=f"h{i % 20}")
            for i in range(self._brokers)
        )
        links = tuple(
            Link(f"B{a:03}", f"B{b:03}", True, True, chance.expovariate(1 / 300))
            for a, b in sorted((min(link), max(link)) for link in self._links)
        )
        return Snapshot(
            at=now,
            run="made-up",
            state="running",
            connection=Connection.CONNECTED,
            overlay=Overlay(brokers, links),
        )

    def pace(self, every_s: float) -> None:
        pass

    def told(self) -> tuple[tuple[float, str], ...]:
        return ()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()


# Who types


def measured(name: str, arguments: Sequence[str], size: str, seconds: float, brokers: int) -> Figures:
    command = [sys.executable, "-m", "benchmarks.console", "--inside", *arguments]
    terminal = Terminal(command, SIZES[size])
    try:
        _go_there(terminal, brokers)
        terminal.type("/B")
        assert terminal.until(lambda text: f"{brokers} found" in text, START_MAX_S) is not None
        terminal.type("\r")
        terminal.drain(2.0)
        pid = terminal.process.pid
        memory = memory_mb(pid)
        cpu, at = cpu_s(pid), time.perf_counter()
        terminal.drain(max(5.0, seconds / 4))
        watching = (cpu_s(pid) - cpu) / (time.perf_counter() - at)
        cpu, at, written = cpu_s(pid), time.perf_counter(), terminal.written
        times = sorted(_typed(terminal, seconds))
        spent = time.perf_counter() - at
        return Figures(
            name,
            size,
            len(times),
            1e3 * statistics.median(times),
            1e3 * times[int(len(times) * 0.95)],
            1e3 * times[-1],
            watching,
            (cpu_s(pid) - cpu) / spent,
            memory,
            memory_mb(pid),
            spent,
            (terminal.written - written) / spent / 1e3,
        )
    finally:
        terminal.close()


def _go_there(terminal: Terminal, brokers: int) -> None:
    deadline = time.perf_counter() + START_MAX_S
    while time.perf_counter() < deadline:
        terminal.type("3")
        if terminal.until(lambda text: f"{brokers} brokers" in text, 5.0) is not None:
            return
    raise AssertionError("the overlay never showed all brokers")


def _typed(terminal: Terminal, seconds: float) -> Iterator[float]:
    """Type as a person who looks around; how long each key took to be seen."""
    chance = random.Random(1)
    selected = ""
    end = time.perf_counter() + seconds
    layouts = ["layered", "circular", "tree"]
    while time.perf_counter() < end:
        for key in "nnn+nn+nnl-nn-nNcnnc":
            terminal.drain(KEY_EVERY_S * chance.uniform(0.5, 1.5))
            if key in "nN":
                before = selected

                def moved(text: str, before: str = before) -> bool:
                    return any(found != before for found in _TITLE.findall(text))

                wanted = moved
            elif key == "l":
                layout = layouts[0]
                layouts = [*layouts[1:], layout]
                wanted = lambda text, layout=layout: f"{layout} · colour" in text  # type: ignore[misc]  # noqa: E731
            elif key == "c":
                wanted = lambda text: "colour: " in text  # noqa: E731
            else:
                wanted = lambda text: re.search(r"zoom \d+/\d+", text) is not None  # noqa: E731
            terminal.type(key)
            took = terminal.until(wanted, ANSWER_MAX_S)
            if key in "nN":
                selected = _title(terminal)
            yield ANSWER_MAX_S if took is None else took


def _title(terminal: Terminal) -> str:
    """Who is selected now: details are written again with each update."""
    found = _TITLE.findall(terminal.drain(2.5 * UPDATE_S))
    return found[-1] if found else ""


# Brokers


def _serve(number: int, port: int, neighbour: int) -> None:
    from broker_runtime.addresses import Address
    from broker_runtime.broker import BrokerSettings
    from broker_runtime.net.logs import LogWriter
    from broker_runtime.net.server import BrokerServer

    async def run() -> None:
        name = f"B{number:03}"
        named = (f"127.0.0.1:{neighbour}",) if neighbour else ()
        server = BrokerServer(
            BrokerSettings(id=name, neighbours=named, status_every_s=5.0), LogWriter(None, name)
        )
        await server.start(Address("127.0.0.1", port))
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def live_brokers(count: int) -> Iterator[str]:
    """Real ones, in processes that are forked from this one; the address of the first."""
    import broker_runtime.net.server  # noqa: F401 — once, before the forks

    first = 21_000 + os.getpid() % 5_000
    fork = multiprocessing.get_context("fork")
    linked = {b: first + a for a, b in links_of(count)}
    processes = [
        fork.Process(target=_serve, args=(i, first + i, linked.get(i, 0)), daemon=True) for i in range(count)
    ]
    for process in processes:
        process.start()
    try:
        yield f"127.0.0.1:{first}"
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)
            process.kill()


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["--inside"]:
        _inside(given[1:])
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks console", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of typing, for each measurement")
    parser.add_argument("--brokers", type=int, default=BROKERS)
    parser.add_argument("--only", choices=("made up", "live"), help="one of the two networks")
    parser.add_argument("--quick", action="store_true", help="fifteen seconds each")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    options = parser.parse_args(given)
    seconds = 15.0 if options.quick else options.seconds
    found: list[Figures] = []
    if options.only != "live":
        made_up = ["made-up", str(options.brokers)]
        found += [measured("made up", made_up, size, seconds, options.brokers) for size in SIZES]
    if options.only != "made up":
        with live_brokers(options.brokers) as address:
            found += [measured("live", ["live", address], size, seconds, options.brokers) for size in SIZES]
    _report(found, options.brokers)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(each) for each in found], indent=1))
    return 0


def _report(found: Sequence[Figures], brokers: int) -> None:
    machine = f"{os.cpu_count()} cores, Python {sys.version.split()[0]}"
    print(f"{brokers} brokers, {1 / UPDATE_S:g} updates/s, {machine}\n")
    columns = ("size", "keys", "p50 ms", "p95 ms", "most ms", "CPU", "typing", "MB", "then", "kB/s")
    print(f"{'':8}" + "".join(f"{each:>9}" for each in columns))
    for each in found:
        row = [
            each.size,
            str(each.keys),
            *(f"{ms:.0f}" for ms in (each.p50_ms, each.p95_ms, each.most_ms)),
            *(f"{share:.0%}" for share in (each.cpu_watching, each.cpu_typing)),
            *(
                f"{figure:.0f}"
                for figure in (each.memory_first_mb, each.memory_last_mb, each.written_kb_per_s)
            ),
        ]
        print(f"{each.name:8}" + "".join(f"{cell:>9}" for cell in row))
    print()
    for each in found:
        fast = "reached" if each.p95_ms < P95_GOAL_MS else "MISSED"
        cheap = "reached" if max(each.cpu_watching, each.cpu_typing) < CPU_GOAL else "MISSED"
        goal = f"{P95_GOAL_MS:.0f} ms at p95 {fast}, {CPU_GOAL:.0%} of a core {cheap}"
        print(f"{each.name}, {each.size}: {goal}")


if __name__ == "__main__":
    sys.exit(main())
