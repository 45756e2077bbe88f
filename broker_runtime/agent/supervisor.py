"""The detached process of a run on this host: it does what the core decides. It survives every controller."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import platform
import resource
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from broker_runtime import VERSION
from broker_runtime.agent import machine
from broker_runtime.agent.conductor import STOPPED, Conductor
from broker_runtime.agent.core import Core
from broker_runtime.agent.effects import (
    Answer,
    Append,
    Effect,
    End,
    Freeze,
    Keep,
    Leave,
    Moment,
    Say,
    Spawn,
    Sweep,
    Sync,
)
from broker_runtime.agent.folder import LINE_SOCKET, SOCKET, Folder
from broker_runtime.agent.identity import boot_id, lives, start_ticks
from broker_runtime.agent.journal import Journal
from broker_runtime.agent.kin import Member
from broker_runtime.agent.processes import Processes
from broker_runtime.agent.protocol import PROTOCOL, Code, RequestRefused, answer, refusal
from broker_runtime.agent.recovery import Recovery
from broker_runtime.agent.sessions import Connection, is_ours
from broker_runtime.agent.spec import parse_spec

LOCK: Final = "lock"
DISK_RETRY_S: Final = 1.0
FOLDER_WATCHED_EVERY_S: Final = 3.0
PR_SET_CHILD_SUBREAPER: Final = 36
BACKLOG: Final = 16
# Two descriptors a process; the usual 1024 would do for few hundred.
FILES_OPEN: Final = 65_536


class Supervisor:
    """The shell around the core: journal, processes, sessions, time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._loop = asyncio.get_running_loop()
        self._journal = Journal(folder.path / "journal.jsonl")
        self._connections: dict[int, Connection] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._disk = ThreadPoolExecutor(1, "disk")
        self._syncing = False
        self._sync_again = False
        self._left = asyncio.Event()
        self._asked_to_end = False
        self._performing = False
        self._host = socket.gethostname()
        self._recover()

    def now(self) -> Moment:
        return Moment(self._loop.time(), time.time())

    def _recover(self) -> None:
        """Begin, or take over where the journal ends."""
        boot, pid = boot_id(), os.getpid()
        facts = {"version": VERSION, "protocol": PROTOCOL, "host": self._host, "boot": boot, "pid": pid}
        facts["python"] = platform.python_version()
        self._core = Core(self._folder.run, secrets.token_hex(8), facts)
        entries = self._journal.recover()
        kept = self._folder.kept_spec() if entries else None
        recovery = Recovery(self._core, parse_spec(kept) if kept is not None else None, self.now())
        recovery.replay(entries)
        conductor = self._core.conductor
        self._processes = Processes(self._folder, conductor.nonce, _base_environment(), self)
        for suspect in recovery.suspects():
            found = self._processes.find(suspect.marker) if suspect.marker else (suspect.pid, suspect.ticks)
            if found is not None and recovery.boot == boot and lives(*found):
                self._processes.adopt(Member(suspect.process, *found, child=False))
                recovery.found(suspect, *found)
            else:
                recovery.lost(suspect)
        self._perform(recovery.finish(boot, pid, start_ticks(pid) or 0))
        if conductor.spec is not None and conductor.state != STOPPED:
            self._warm_up()

    def _warm_up(self) -> None:
        spec = self._core.conductor.spec
        if spec is not None and any(process.kind == "runtime" for process in spec.processes.values()):
            self._processes.parent.start()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until told to leave."""
        server = await asyncio.start_unix_server(self._connected, sock=_listening_socket(SOCKET))
        lines = _listening_socket(LINE_SOCKET)
        lines.setblocking(False)
        self._loop.add_reader(lines, self._processes.answer, lines)
        self._loop.add_signal_handler(signal.SIGCHLD, self._processes.child_changed)
        self._loop.add_signal_handler(signal.SIGTERM, self._end_orderly)
        for number in (signal.SIGHUP, signal.SIGINT):
            self._loop.add_signal_handler(number, lambda: None)  # who hangs up leaves the run alone
        ready()
        self._watch_folder()
        await self._left.wait()
        server.close()
        self._loop.remove_reader(lines)
        lines.close()
        for connection in list(self._connections.values()):
            connection.send_rest(self._journal)
            await connection.close()
        self._disk.shutdown()
        self._processes.parent.close()

    def _watch_folder(self) -> None:
        """Whoever removed the run's folder wants the run gone, and nobody could find it any more."""
        if Path(LOCK).exists():  # in the folder, which is our own
            self._loop.call_later(FOLDER_WATCHED_EVERY_S, self._watch_folder)
        else:
            self._end_orderly()

    def _end_orderly(self) -> None:
        """Somebody ends this very process: the run on this host ends with it."""
        self._asked_to_end = True
        if self._core.conductor.spec is None:
            self._left.set()
        else:
            self._change(lambda conductor: conductor.stop(None, self.now()))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        connection = Connection(self._count, reader, writer)
        if not is_ours(writer) or not self._core.opened(connection.number):
            connection.send(refusal(None, Code.LOCKED, "not one of ours, or one too many"))
            await connection.close()
            return
        self._connections[connection.number] = connection

        def hung_up() -> None:
            self._perform(self._core.hung_up(connection.number, self.now()))

        try:
            await connection.serve(self._handle, hung_up)
        finally:
            del self._connections[connection.number]
            self._perform(self._core.closed(connection.number, self.now()))

    async def _handle(self, connection: Connection, message: Mapping[str, Any]) -> None:
        received = time.time()
        do = message.get("do")
        acts = {"clock": self._clock, "files": self._files, "read": self._read, "tail": self._tail}
        acts |= {"host": self._machine, "events": self._follow}
        if not isinstance(do, str) or do not in acts:
            answered = connection.expect_answer()
            self._perform(self._core.request(connection.number, message, self.now()))
            await answered
            connection.greeted = self._core.sessions[connection.number].greeted
            return
        number = message.get("id")
        number = number if isinstance(number, int) else None
        try:
            self._core.allow(connection.number)
            fields = acts[do](connection, message, received)
            connection.send(answer(number or 0, fields))
        except RequestRefused as refused:
            connection.send(refusal(number, refused.code, refused.message))

    def _clock(
        self, connection: Connection, message: Mapping[str, Any], received: float
    ) -> dict[str, object]:
        return {"received": received, "answered": time.time()}

    def _files(
        self, connection: Connection, message: Mapping[str, Any], received: float
    ) -> dict[str, object]:
        return {"files": self._folder.files()}

    def _read(self, connection: Connection, message: Mapping[str, Any], received: float) -> dict[str, object]:
        path, offset, length = message.get("path"), message.get("offset", 0), message.get("length")
        return self._folder.read(path, offset, length, compressed=message.get("compressed") is True)

    def _tail(self, connection: Connection, message: Mapping[str, Any], received: float) -> dict[str, object]:
        process = message.get("process")
        if not isinstance(process, str) or process not in self._core.conductor.lives:
            raise RequestRefused(Code.UNKNOWN_PROCESS, f"there is no process {str(process)[:100]!r}")
        return {"text": self._folder.tail(process, message.get("stream"), message.get("lines"))}

    def _machine(
        self, connection: Connection, message: Mapping[str, Any], received: float
    ) -> dict[str, object]:
        return machine.told(self._folder.path)

    def _follow(
        self, connection: Connection, message: Mapping[str, Any], received: float
    ) -> dict[str, object]:
        since = message.get("since", 0)
        if isinstance(since, bool) or not isinstance(since, int) or since < 0:
            raise RequestRefused(Code.BAD_REQUEST, "since is no whole number")
        connection.follow(self._journal, lambda: asyncio.shield(self._changed), since)
        return {}

    def _perform(self, effects: list[Effect]) -> None:
        before = self._journal.seq
        self._performing = True
        try:
            for effect in effects:
                try:
                    self._perform_one(effect)
                except Exception as error:  # our bug; what else was decided is done all the same
                    _report(self._loop, {"message": type(effect).__name__, "exception": error})
        finally:
            self._performing = False
        if self._journal.seq != before:
            self._flush()
            self._changed.set_result(None)
            self._changed = self._loop.create_future()
        if self._asked_to_end and self._core.conductor.state == STOPPED:
            self._left.set()
        if self._timer is not None:
            self._timer.cancel()
        at = self._core.next_at()
        self._timer = None if at is None else self._loop.call_at(at, self._tick)

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Append(entry):
                self._journal.append(entry)
            case Sync():
                self._sync()
            case Keep(spec):
                self._keep(spec)
            case Answer(session, message):
                if session in self._connections:
                    self._connections[session].answer(message)
            case Spawn():
                self._processes.spawn(effect)
            case End(process, grace_s, kill):
                self._processes.end(process, grace_s, kill=kill)
            case Freeze(process, frozen):
                self._processes.freeze(process, frozen)
            case Say(process, message):
                self._processes.say(process, message)
            case Sweep():
                self._processes.sweep()
            case Leave(session, number, clean):
                self._leave(session, number, clean)

    def _keep(self, spec: Mapping[str, Any]) -> None:
        try:
            self._folder.keep_spec(spec)
        except OSError as error:
            # Without it no later supervisor could take over; nothing has begun, so nothing shall.
            text = f"the spec cannot be stored: {error.strerror}"
            log(text)
            for connection in self._connections.values():
                connection.send(refusal(None, Code.WRONG_STATE, text))
            self._left.set()
        else:
            self._loop.call_soon(self._warm_up)

    def _tick(self) -> None:
        self._perform(self._core.tick(self.now()))

    def _flush(self) -> bool:
        try:
            self._journal.flush()
        except OSError as error:
            log(f"the journal cannot be written: {error.strerror}")
            self._loop.call_later(DISK_RETRY_S, self._sync)
            return False
        return True

    def _sync(self) -> None:
        """Bring the journal to disk in a thread, one at a time; what comes meanwhile goes with the next."""
        if self._syncing:
            self._sync_again = True
            return
        if not self._flush():
            return
        self._syncing, self._sync_again = True, False
        seq = self._journal.seq
        done = self._loop.run_in_executor(self._disk, self._journal.sync)
        done.add_done_callback(lambda done: self._synced(seq, done.exception()))

    def _synced(self, seq: int, error: BaseException | None) -> None:
        self._syncing = False
        if error is not None:
            log(f"the journal cannot be synced: {error}")
            self._loop.call_later(DISK_RETRY_S, self._sync)
            return
        if self._sync_again:
            self._sync()
        self._perform(self._core.synced(seq, self.now()))

    def _leave(self, session: int, number: int, clean: bool) -> None:
        try:
            if clean:
                self._folder.remove()
            message = answer(number, {})
        except (OSError, ValueError) as error:
            message = refusal(number, Code.WRONG_STATE, f"the folder cannot be removed: {error}")
        if session in self._connections:
            self._connections[session].answer(message)
        self._left.set()

    def _change(self, change: Callable[[Conductor], None]) -> None:
        if self._performing:  # an effect failed at once: the others come first
            self._loop.call_soon(self._change, change)
        else:
            self._perform(self._core.happened(change, self.now()))

    def started(self, id_: str, life: int, pid: int, ticks: int, has_line: bool) -> None:
        self._change(lambda conductor: conductor.started(id_, life, pid, ticks, has_line, self.now()))

    def dialled(self, id_: str, life: int) -> bool:
        self._loop.call_soon(self._change, lambda conductor: conductor.heard_again(id_, life))
        return self._core.conductor.runs(id_, life)

    def start_failed(self, id_: str, life: int, reason: str) -> None:
        self._change(lambda conductor: conductor.start_failed(id_, life, reason, self.now()))

    def exited(self, id_: str, code: int | None, number: int | None, last: str) -> None:
        self._change(lambda conductor: conductor.exited(id_, code, number, last, self.now()))

    def gone(self, id_: str) -> None:
        self._change(lambda conductor: conductor.gone(id_, self.now()))

    def said(self, id_: str, message: Mapping[str, Any]) -> None:
        self._change(lambda conductor: conductor.said(id_, message, self.now()))

    def silent(self) -> None:
        self._change(lambda conductor: conductor.silent(self.now()))

    def trouble(self, text: str) -> None:
        self._change(lambda conductor: conductor.trouble(text, self.now()))


def _listening_socket(name: str) -> socket.socket:
    Path(name).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(name)
    Path(name).chmod(0o600)
    listening.listen(BACKLOG)
    return listening


def log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stderr.flush()


def _base_environment() -> dict[str, str]:
    """What every process gets: our own, and the way to our own interpreter and packages."""
    return {**os.environ, "PANDA_PYTHON": sys.executable}


def take_lock() -> bool:
    """Be the one supervisor of the run, until this process ends."""
    fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()} {start_ticks(os.getpid())}\n".encode())
    return True


def supervise(folder: Folder, ready_fd: int) -> int:
    """The whole life of a supervisor, in the run's folder; `ready_fd` is told when it listens."""
    os.umask(0o077)
    os.chdir(folder.path)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_OPEN if most == resource.RLIM_INFINITY else min(most, FILES_OPEN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def ready() -> None:
        if ready_fd >= 0:
            os.write(ready_fd, b"ready\n")
            os.close(ready_fd)

    async def live() -> None:
        asyncio.get_running_loop().set_exception_handler(_report)
        await Supervisor(folder).run(ready)

    if not take_lock():
        ready()
        return 0
    log(f"supervisor {os.getpid()} of run {folder.run} begins")
    asyncio.run(live())
    log(f"supervisor {os.getpid()} ends")
    return 0


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Our own bug must not end a run: it is written down and the loop goes on."""
    import traceback

    error = context.get("exception")
    log(f"bug: {context.get('message')}")
    if error is not None:
        log("".join(traceback.format_exception(error)).rstrip())
