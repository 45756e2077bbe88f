"""A host we are logged in to over SSH: runs programs, writes files, holds channels; connects to nobody."""

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

import paramiko

from panda.hosts import remote
from panda.hosts.config import Target
from panda.hosts.failures import FOREIGN, mapped
from panda.hosts.host import Host
from panda.hosts.quoting import Unquotable, command_line
from panda.hosts.remote import CommandFailed, Finished, HostError, Unreachable

STALLED_S = 15.0
ENDING_S = 2.0
OPEN_TIMEOUT_S = 15.0
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RECEIVE = 'umask 077; mkdir -p -- "$1" && cat > "$2"'
# To `cat` a broken connection is the end of the file: so the size is compared before the name is given.
ADOPT = 'test "$(wc -c < "$1")" -eq "$3" && mv -f -- "$1" "$2"'


@dataclass(frozen=True, slots=True)
class Pulse:
    """How often a connection is asked for a sign of life, and how long it may take to give one."""

    every_s: float = 5.0
    answer_s: float = 10.0


CALM = Pulse()


class Closes(Protocol):
    def close(self) -> object: ...


class SshRemote:
    def __init__(
        self,
        host: Host,
        target: Target,
        transport: paramiko.Transport,
        held: Sequence[Closes],
        pulse: Pulse = CALM,
    ) -> None:
        """`held` are the connection and those it goes through, to be closed in this order."""
        self.host = host
        self.transport = transport
        self.lost = ""
        self._target = target
        self._held = tuple(held)
        self._pulse = pulse
        self._uploads = 0
        self._counting = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name=f"pulse of {host.name}", daemon=True).start()

    def run(
        self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = remote.RUN_TIMEOUT_S
    ) -> Finished:
        late = threading.Event()
        with self._executing(argv, timeout_s, late) as channel:
            excess = threading.Event()

            def flooded() -> None:
                excess.set()
                channel.close()

            stderr = bytearray()
            drains = [_drain(channel.recv_stderr, stderr, flooded)]
            if data:
                drains.append(_feed(channel, data))
            else:
                channel.shutdown_write()
            stdout = bytearray()
            _collect(channel.recv, stdout, flooded)
            code = channel.recv_exit_status()
            for thread in drains:
                thread.join()
        if late.is_set():
            reason = f"did not end within {timeout_s:g} s"
            last = remote.last_lines(bytes(stderr))
            raise CommandFailed(self.host.name, argv, remote.TIMED_OUT, last, reason)
        if excess.is_set():
            reason = f"wrote more than {remote.OUTPUT_BYTES_MAX} bytes"
            raise CommandFailed(self.host.name, argv, code, "", reason)
        if code < 0 and not self.transport.is_active():
            raise self._broken()
        # A program that a signal ended has no code in this protocol's reading.
        return Finished(code if code >= 0 else 255, bytes(stdout), bytes(stderr))

    def put(self, chunks: Iterable[bytes], path: str) -> int:
        name = PurePosixPath(path)
        arriving = str(name.with_name(f"{name.name}.{secrets.token_hex(4)}.part"))
        folder = str(name.parent)
        with self._counting:
            self._uploads += 1
        try:
            size = self._upload(["sh", "-c", RECEIVE, "sh", folder, arriving], chunks)
            remote.checked(self, ["sh", "-c", ADOPT, "sh", arriving, str(name), str(size)])
        except Unreachable:
            raise
        except BaseException:
            with contextlib.suppress(HostError):
                self.run(["rm", "-f", "--", arriving], timeout_s=ENDING_S)
            raise
        finally:
            with self._counting:
                self._uploads -= 1
        return size

    def open(
        self, argv: Sequence[str], *, environment: Mapping[str, str] = remote.NO_ENVIRONMENT
    ) -> "SshChannel":
        """The environment becomes part of the command, where every user of the host can read it."""
        wrong = [name for name in environment if not VARIABLE.fullmatch(name)]
        if wrong:
            raise Unquotable(f"not the name of a variable: {wrong[0]!r}")
        settings = [f"{name}={value}" for name, value in environment.items()]
        command = ["env", *settings, *argv] if settings else argv
        return SshChannel(self, self._execute(command, OPEN_TIMEOUT_S))

    def close(self) -> None:
        self._closed.set()
        for connection in self._held:
            connection.close()

    def _upload(self, argv: Sequence[str], chunks: Iterable[bytes]) -> int:
        size = 0
        channel = self._execute(argv, OPEN_TIMEOUT_S)
        channel.settimeout(STALLED_S)
        try:
            for chunk in chunks:
                self._send(channel, argv, chunk)
                size += len(chunk)
            self._finish(channel, argv)
        finally:
            # The shell makes the file at its own pace, and must not do so after we have removed it.
            with contextlib.suppress(*FOREIGN):
                channel.shutdown_write()
            channel.status_event.wait(ENDING_S)
            channel.close()
        return size

    def _send(self, channel: paramiko.Channel, argv: Sequence[str], chunk: bytes) -> None:
        try:
            for start in range(0, len(chunk), remote.PIECE_BYTES):
                channel.sendall(chunk[start : start + remote.PIECE_BYTES])
        except TimeoutError as error:
            raise Unreachable(self.host.name, f"no progress for {STALLED_S:g} s") from error
        except FOREIGN as error:
            if not self.transport.is_active():
                raise self._broken() from error
            self._finish(channel, argv)
            raise CommandFailed(self.host.name, argv, 0, "", "stopped reading") from error

    def _finish(self, channel: paramiko.Channel, argv: Sequence[str]) -> None:
        """Raises what the program at the other end has to say, if it failed."""
        with contextlib.suppress(*FOREIGN):
            channel.shutdown_write()
        stderr = bytearray()
        _collect(channel.recv_stderr, stderr, channel.close)
        if not channel.status_event.wait(STALLED_S):
            raise Unreachable(self.host.name, f"no progress for {STALLED_S:g} s")
        if not self.transport.is_active():
            raise self._broken()
        code = channel.recv_exit_status()
        if code != 0:
            raise CommandFailed(self.host.name, argv, code, remote.last_lines(bytes(stderr)))

    @contextlib.contextmanager
    def _executing(
        self, argv: Sequence[str], timeout_s: float, late: threading.Event
    ) -> Iterator[paramiko.Channel]:
        """A channel that is closed when the time is over, which wakes whoever waits on it."""
        channel = self._execute(argv, timeout_s)

        def expire() -> None:
            late.set()
            channel.close()

        watch = threading.Timer(timeout_s, expire)
        watch.daemon = True
        watch.start()
        try:
            yield channel
        except (paramiko.SSHException, OSError, EOFError) as error:
            if not late.is_set():
                raise self._broken() from error
        finally:
            watch.cancel()
            channel.close()

    def _execute(self, argv: Sequence[str], timeout_s: float) -> paramiko.Channel:
        line = command_line(argv)
        if not self.transport.is_active():
            raise self._broken()
        channel = None
        try:
            channel = self.transport.open_session(timeout=timeout_s)
            watch = threading.Timer(timeout_s, channel.close)
            watch.daemon = True
            watch.start()
            try:
                channel.exec_command(line)
            finally:
                watch.cancel()
        except paramiko.ChannelException as error:
            hint = "sshd's MaxSessions limits how many programs run over one connection"
            raise Unreachable(self.host.name, f"sshd refuses another program: {error.text}", hint) from error
        except FOREIGN as error:
            if channel is not None:
                channel.close()
            if not self.transport.is_active():
                raise self._broken() from error
            reason = f"sshd did not start a program within {timeout_s:g} s: {error}"
            raise Unreachable(self.host.name, reason, "is the host overloaded or frozen?") from error
        return channel

    def _broken(self) -> HostError:
        if self.lost:
            return Unreachable(self.host.name, self.lost)
        if self._closed.is_set():
            return Unreachable(self.host.name, "the connection was closed by us")
        error = self.transport.get_exception()
        if error is None:
            return Unreachable(self.host.name, "the connection broke")
        return mapped(self.host, self._target, error)

    def _watch(self) -> None:
        """Asks for a sign of life: a host that hangs or is gone for long is given up and its channels end."""
        while not self._closed.wait(self._pulse.every_s) and self.transport.is_active():
            if self._uploads:
                continue  # an answer may queue behind a long upload, which has its own limit
            watch = threading.Timer(self._pulse.answer_s, self._give_up)
            watch.daemon = True
            watch.start()
            try:
                self.transport.global_request("keepalive@openssh.com", wait=True)
            except FOREIGN:
                break
            finally:
                watch.cancel()

    def _give_up(self) -> None:
        if not self._closed.is_set() and not self._uploads:
            self.lost = f"no sign of life for {self._pulse.answer_s:g} s"
            self.transport.close()


class SshChannel:
    def __init__(self, session: SshRemote, channel: paramiko.Channel) -> None:
        self._session = session
        self._channel = channel
        self._said = b""
        self._ending = False
        self._listener = threading.Thread(
            target=self._listen, name=f"stderr of {session.host.name}", daemon=True
        )
        self._listener.start()

    def read(self, size: int) -> bytes:
        try:
            return self._channel.recv(size)
        except FOREIGN:
            return b""

    def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), remote.PIECE_BYTES):
                self._channel.sendall(data[start : start + remote.PIECE_BYTES])
        except FOREIGN as error:
            alive = self._session.transport.is_active()
            reason = "the program has ended" if alive else "the connection broke"
            raise Unreachable(self._session.host.name, reason, self.said()) from error

    def close(self) -> None:
        self._ending = True
        self._channel.close()
        self._listener.join(STALLED_S)

    def said(self) -> str:
        lines = remote.last_lines(self._said)
        if self._ending or self._session.transport.is_active():
            return lines
        broken = f"connection lost: {self._session.lost or 'it broke'}"
        return f"{lines}\n{broken}" if lines else broken

    def _listen(self) -> None:
        with contextlib.suppress(*FOREIGN):
            while data := self._channel.recv_stderr(remote.SAID_BYTES_MAX):
                self._said = (self._said + data)[-remote.SAID_BYTES_MAX :]


def _collect(receive: Callable[[int], bytes], into: bytearray, flooded: Callable[[], None]) -> None:
    with contextlib.suppress(*FOREIGN):
        while data := receive(remote.PIECE_BYTES):
            into += data
            if len(into) > remote.OUTPUT_BYTES_MAX:
                flooded()
                return


def _drain(receive: Callable[[int], bytes], into: bytearray, flooded: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=_collect, args=(receive, into, flooded), daemon=True)
    thread.start()
    return thread


def _feed(channel: paramiko.Channel, data: bytes) -> threading.Thread:
    def send() -> None:
        # A program need not read what it is given: `head -1` is no failure.
        with contextlib.suppress(*FOREIGN):
            for start in range(0, len(data), remote.PIECE_BYTES):
                channel.sendall(data[start : start + remote.PIECE_BYTES])
            channel.shutdown_write()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread
