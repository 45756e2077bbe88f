"""Decides how processes are started, watched and ended on this machine; when, is decided elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from broker_runtime.agent.effects import Spawn
from broker_runtime.agent.exchange import Line, accepted
from broker_runtime.agent.folder import LINE_SOCKET, Folder, last_lines
from broker_runtime.agent.identity import marker_of, start_ticks
from broker_runtime.agent.kin import Census, Member, send, send_to_group
from broker_runtime.agent.warm import WarmParent

LAST_LINES: Final = 5
LAST_LENGTH_MAX: Final = 2_000
SECRET_LENGTH_MIN: Final = 4
LOOK_AGAIN_S: Final = 0.02
STRAYS_S: Final = 0.2
SWEEP_GRACE_S: Final = 1.0
# A process is its forker's child for a moment; until it is ours we cannot know how it ended.
STATUS_ATTEMPTS_MAX: Final = 40
ALL: Final = ""


class Reports(Protocol):
    """Whoever is told what processes do."""

    def started(self, id_: str, life: int, pid: int, ticks: int, has_line: bool) -> None: ...
    def dialled(self, id_: str, life: int) -> bool: ...
    def start_failed(self, id_: str, life: int, reason: str) -> None: ...
    def exited(self, id_: str, code: int | None, number: int | None, last: str) -> None: ...
    def gone(self, id_: str) -> None: ...
    def said(self, id_: str, message: Mapping[str, Any]) -> None: ...
    def silent(self) -> None: ...
    def trouble(self, text: str) -> None: ...


@dataclass(slots=True)
class _Ending:
    deadline: float
    kill: bool


class Processes:
    """The processes of a run on this machine."""

    def __init__(self, folder: Folder, nonce: str, environment: Mapping[str, str], reports: Reports) -> None:
        self._folder = folder
        self._nonce = nonce
        self._environment = environment
        self._reports = reports
        self._loop = asyncio.get_running_loop()
        self._members: dict[str, list[Member]] = {}
        self._lines: dict[str, Line] = {}
        self._secrets: dict[str, list[str]] = {}
        self._ending: dict[str, _Ending] = {}
        self._markers: dict[tuple[int, int], str] = {}
        self._next_round: asyncio.TimerHandle | None = None
        self.parent = WarmParent(environment, self.find, reports.trouble)

    def find(self, marker: str) -> tuple[int, int] | None:
        """Pid and start of the process that was started with a marker."""
        entry = self._census().by_marker(marker)
        return entry.key if entry else None

    def spawn(self, order: Spawn) -> None:
        process = order.process
        secrets = [value for value in process.environment.values() if len(value) >= SECRET_LENGTH_MIN]
        self._secrets[process.id] = secrets
        try:
            folder = self._folder.process(process.id)
            outputs = (_output(folder / "stdout"), _output(folder / "stderr"))
        except OSError as error:
            reason = f"its folder cannot be used: {error.strerror}"
            self._loop.call_soon(self._reports.start_failed, process.id, order.life, reason)
            return
        ours, theirs = socket.socketpair()
        self._connect(process.id, ours)
        if process.kind == "runtime":
            self._fork(order, folder, (*outputs, theirs.detach()))
        else:
            with theirs:
                self._execute(order, folder, outputs, theirs.fileno())

    def answer(self, listening: socket.socket) -> None:
        """Take the line of a process that an earlier supervisor has started, and that dials again."""
        caller = accepted(listening)
        if caller is None:
            return
        sock, pid = caller
        run, _, rest = marker_of(pid).partition("/")
        id_, _, life = rest.partition(f"/{self._nonce}.")
        if run == self._folder.run and life.isdecimal() and self._reports.dialled(id_, int(life)):
            self._connect(id_, sock)
        else:
            sock.close()

    def _connect(self, id_: str, sock: socket.socket) -> None:
        old = self._lines.pop(id_, None)
        if old is not None:
            old.close()
        self._lines[id_] = Line(sock, lambda message: self._reports.said(id_, message))

    def _variables(self, order: Spawn) -> dict[str, str]:
        variables = {
            **order.process.environment,
            "PANDA_PROCESS": order.marker,
            "PANDA_RUN": self._folder.run,
            "PANDA_LINE_AGAIN": f"../../{LINE_SOCKET}",
        }
        if order.process.speaks:
            variables["PANDA_SPEAKS"] = order.process.speaks
        return variables

    def _fork(self, order: Spawn, folder: Path, fds: tuple[int, ...]) -> None:
        process = order.process

        def done(pid: int, ticks: int, why: str) -> None:
            if pid:
                self._watch(order, pid, ticks)
            else:
                self._reports.start_failed(process.id, order.life, why)

        wanted = {
            "word": process.word,
            "arguments": process.arguments,
            "environment": self._variables(order),
            "folder": str(folder),
            "marker": order.marker,
            "title": f"panda {process.word} {process.id} of {self._folder.run}",
        }
        self.parent.fork(wanted, fds, done)

    def _execute(self, order: Spawn, folder: Path, outputs: tuple[int, int], line: int) -> None:
        process = order.process
        variables = self._variables(order)
        binaries = Path(__file__).parents[1] / "bin"
        path = process.environment.get("PATH", self._environment.get("PATH", os.defpath))
        variables |= {"PANDA_LINE": str(line), "PATH": f"{binaries}:{path}"}
        try:
            popen = subprocess.Popen(
                process.arguments,
                stdin=subprocess.DEVNULL,
                stdout=outputs[0],
                stderr=outputs[1],
                cwd=folder,
                env={**self._environment, **variables},
                pass_fds=[line],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = f"{process.arguments[0][:200]} cannot be executed: {getattr(error, 'strerror', error)}"
            self._loop.call_soon(self._reports.start_failed, process.id, order.life, reason)
            return
        finally:
            for fd in outputs:
                os.close(fd)
        popen.returncode = 0  # its end is ours to see, not the module's
        ticks = start_ticks(popen.pid)
        assert ticks is not None, "a child that was not waited for is there"
        self._loop.call_soon(self._watch, order, popen.pid, ticks)

    def _watch(self, order: Spawn, pid: int, ticks: int) -> None:
        self.adopt(Member(order.process.id, pid, ticks))
        self._reports.started(order.process.id, order.life, pid, ticks, True)

    def adopt(self, member: Member) -> None:
        """See the end of a process."""
        self._members.setdefault(member.process, []).append(member)
        try:
            member.pidfd = os.pidfd_open(member.pid)
        except OSError:  # it has ended already, and is our child or nobody's
            self._loop.call_soon(self._ended, member)
            return
        self._loop.add_reader(member.pidfd, self._ended, member)

    def _ended(self, member: Member, attempts: int = 0) -> None:
        if member.pidfd >= 0:
            self._loop.remove_reader(member.pidfd)
        status = None
        if member.child:
            status = _status(member.pid)
            if status is None and attempts < STATUS_ATTEMPTS_MAX:
                self._loop.call_later(LOOK_AGAIN_S, self._ended, member, attempts + 1)
                return
        if member.pidfd >= 0:
            os.close(member.pidfd)
            member.pidfd = -1
        member.exited = True
        code, number = status if status is not None else (None, None)
        self._reports.exited(member.process, code, number, self._last(member.process))
        self._look(0.0)

    def _last(self, id_: str) -> str:
        """The last a process said on stderr, without what must not be told."""
        try:
            fd = os.open(self._folder.process(id_) / "stderr", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return ""
        try:
            text = last_lines(fd, LAST_LINES)
        finally:
            os.close(fd)
        for secret in self._secrets.get(id_, ()):
            text = text.replace(secret, "***")
        return text[-LAST_LENGTH_MAX:]

    def say(self, id_: str, message: Mapping[str, Any]) -> None:
        if id_ in self._lines:
            self._lines[id_].say(message)

    def freeze(self, id_: str, frozen: bool) -> None:
        for member in self._members.get(id_, ()):
            send_to_group(member, signal.SIGSTOP if frozen else signal.SIGCONT)

    def end(self, id_: str, grace_s: float, *, kill: bool) -> None:
        """SIGTERM to its group, later SIGKILL to all that is left; `gone` is reported when nothing is."""
        deadline = self._loop.time() + grace_s
        ending = self._ending.setdefault(id_, _Ending(deadline, kill))
        ending.deadline = min(ending.deadline, deadline)
        ending.kill |= kill
        for member in self._members.get(id_, ()):
            send_to_group(member, signal.SIGKILL if kill else signal.SIGTERM)
            send_to_group(member, signal.SIGCONT)
        self._look(0.0 if kill or not self._alive(id_) else grace_s)

    def sweep(self) -> None:
        """End whatever is left of any process; `silent` is reported when nothing is."""
        self.parent.close()
        self._ending[ALL] = _Ending(self._loop.time() + SWEEP_GRACE_S, False)
        self._look(0.0)

    def child_changed(self) -> None:
        """A child ended: one that we watch, or one that the kernel gave us."""
        self._look(STRAYS_S)

    def _alive(self, id_: str) -> bool:
        return any(not member.exited for member in self._members.get(id_, ()))

    def _look(self, in_s: float) -> None:
        when = self._loop.time() + in_s
        if self._next_round is not None:
            when = min(when, self._next_round.when())
            self._next_round.cancel()
        self._next_round = self._loop.call_at(when, self._round)

    def _census(self) -> Census:
        kept = [member.pid for members in self._members.values() for member in members if member.child]
        return Census(self._markers, self.parent.pid, kept)

    def _round(self) -> None:
        """Look at everything once: who is left of those to be ended, whose zombies can go, what to signal."""
        self._next_round = None
        census = self._census()
        for pid in census.zombies():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        now = self._loop.time()
        for id_ in list(self._ending):
            if self._alive(id_) and self._ending[id_].deadline > now:
                self._look(self._ending[id_].deadline - now)
            else:
                self._end_kin(id_, census, now)
        for id_ in list(self._members):
            if id_ not in self._ending and any(member.exited for member in self._members[id_]):
                self._forget(id_, census)

    def _end_kin(self, id_: str, census: Census, now: float) -> None:
        ending = self._ending[id_]
        kin = census.strays(self._marker_part(ALL)) if id_ == ALL else self._kin(id_, census)
        if not kin and not self._alive(id_):
            del self._ending[id_]
            self._forget(id_, census)
            if id_ == ALL:
                self._reports.silent()
            else:
                self._reports.gone(id_)
            return
        number = signal.SIGKILL if ending.kill or ending.deadline <= now else signal.SIGTERM
        for entry in kin:
            send(entry, number)
            if number == signal.SIGTERM:
                send(entry, signal.SIGCONT)
        self._look(LOOK_AGAIN_S)

    def _kin(self, id_: str, census: Census) -> list[Any]:
        return census.kin(self._members.get(id_, []), self._marker_part(id_))

    def _marker_part(self, id_: str) -> str:
        """What the markers of a process, or of all, have in common with no other."""
        return f"{self._folder.run}/{id_}/{self._nonce}." if id_ else f"/{self._nonce}."

    def _forget(self, id_: str, census: Census) -> None:
        """Let go of lives that are over and left nobody behind."""
        members = self._members.get(id_, [])
        if all(member.exited for member in members) and self._kin(id_, census):
            return
        for member in [member for member in members if member.exited]:
            members.remove(member)
            if member.child:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(member.pid, os.WNOHANG)
        if not members:
            self._members.pop(id_, None)


def _output(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _status(pid: int) -> tuple[int | None, int | None] | None:
    """How a child ended, as exit code or signal; its zombie stays, so that its pid is nobody else's."""
    try:
        info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if info is None:
        return None
    return (info.si_status, None) if info.si_code == os.CLD_EXITED else (None, info.si_status)
