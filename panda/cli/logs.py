"""`panda logs`: what the processes of a run say, while it runs or afterwards."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import ground, printing

if TYPE_CHECKING:
    from panda.deploy.session import AgentSession
    from panda.experiment.folder import RunFolder
    from panda.plan.model import Plan, PlannedProcess

FOLLOW_EVERY_S = 0.3
PIECE_BYTES = 256 << 10
TAIL_BYTES_MAX = 4 << 20


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"
    LOG = "log"


FILE = {Stream.STDOUT: "stdout", Stream.STDERR: "stderr", Stream.LOG: "log.jsonl"}
Read = Callable[[int, int], bytes]  # from the offset, at most so many bytes


def logs(
    process: Annotated[list[str] | None, typer.Argument(metavar="[PROCESS]…", help="All, if none.")] = None,
    run: Annotated[str, typer.Option(metavar="RUN", help="Id of the run, or a part; the newest.")] = "",
    stream: Annotated[Stream, typer.Option(help="What they print, complain about, or log.")] = Stream.STDERR,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="The last so many.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they say more; ^C ends it.")
    ] = False,
    runs: ground.RunsOption = ground.RUNS,
) -> None:
    """Show the last lines of processes.

    From the hosts if they can be reached, else from what was collected.

    Example: panda logs BrokerA --stream log -f
    """
    with ground.failing():
        folder = ground.find_run(runs, run)
        plan = folder.read_plan()
        wanted = _wanted(folder, plan, process or [])
        crew = ground.crew_of(folder.id)
        hosts = [host for host in plan.hosts if host.name in {each.host for each in wanted}]
        sessions, failures = crew.reach_all(hosts, None, steer=False, start=False)
        for failure in failures:
            if not folder.collected(failure.host).is_dir():
                printing.problem(str(failure))
        try:
            readers = {
                each.id: _remote(sessions[each.host], each.id, stream)
                if each.host in sessions
                else _collected(folder, each, stream)
                for each in wanted
            }
            _show(readers, lines, follow)
        finally:
            for session in sessions.values():
                session.close()
            crew.close()


def _wanted(folder: RunFolder, plan: Plan, names: list[str]) -> list[PlannedProcess]:
    from panda.experiment.folder import RunRefused

    known = {each.id: each for each in plan.processes}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise RunRefused(f"{folder.id} has no process {', '.join(unknown)}: it has {', '.join(known)}")
    return [known[name] for name in names] or list(plan.processes)


def _show(readers: dict[str, Read], lines: int, follow: bool) -> None:
    width = max(map(len, readers), default=0)
    followed = {name: _Followed(read) for name, read in readers.items()}
    for name, each in followed.items():
        for line in each.last(lines):
            printing.result({}, f"{name:<{width}} | {line}")
    while follow:
        time.sleep(FOLLOW_EVERY_S)
        for name, each in followed.items():
            for line in each.more():
                printing.result({}, f"{name:<{width}} | {line}")


class _Followed:
    """A file that grows, as whole lines."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._offset = 0
        self._rest = b""

    def last(self, count: int) -> list[str]:
        lines: list[str] = []
        for line in self.more():
            lines.append(line)
            if len(lines) > 2 * count + 1000:
                del lines[:-count]
        return lines[-count:] if count else []

    def more(self) -> Iterator[str]:
        while data := self._read(self._offset, PIECE_BYTES):
            self._offset += len(data)
            *whole, self._rest = (self._rest + data).split(b"\n")
            for line in whole:
                yield printable(line)


def printable(line: bytes) -> str:
    """Nothing in a log can steer the terminal."""
    text = line.decode("utf-8", "replace").replace("\t", "    ")
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _remote(session: AgentSession, process: str, stream: Stream) -> Read:
    from broker_runtime.agent.protocol import Code, RequestRefused

    path = f"processes/{process}/{FILE[stream]}"

    def read(offset: int, length: int) -> bytes:
        try:
            answer = session.request("read", {"path": path, "offset": offset, "length": length})
        except RequestRefused as refused:
            if refused.code is Code.NO_FILE:  # it has not been started yet
                return b""
            raise
        return base64.b64decode(answer["data"])

    return read


def _collected(folder: RunFolder, planned: PlannedProcess, stream: Stream) -> Read:
    path: Path = folder.collected(planned.host) / "processes" / planned.id / FILE[stream]

    def read(offset: int, length: int) -> bytes:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    return read
