"""A host that is this machine: the same verbs as over SSH, without it; never uses a shell.

Its home is a folder of its own, so that several local hosts live side by side. As after a login, programs see
a small environment and none of the controller's variables.
"""

import contextlib
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from panda.hosts import remote
from panda.hosts.host import Host
from panda.hosts.quoting import command_line
from panda.hosts.remote import CommandFailed, Finished, HostError, Unreachable

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
END_S = 2.0


class LocalRemote:
    def __init__(self, host: Host, home: Path | None = None) -> None:
        self.host = host
        self.home = (home or default_home(host)).absolute()
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise HostError(host.name, f"no folder {self.home}: {error.strerror}") from error

    def run(
        self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = remote.RUN_TIMEOUT_S
    ) -> Finished:
        process = self._start(argv, {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with process:
            try:
                stdout, stderr = process.communicate(data, timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                reason = f"did not end within {timeout_s:g} s"
                raise CommandFailed(self.host.name, argv, remote.TIMED_OUT, "", reason) from None
            except BaseException:
                process.kill()
                raise
        if len(stdout) + len(stderr) > remote.OUTPUT_BYTES_MAX:
            reason = f"wrote more than {remote.OUTPUT_BYTES_MAX} bytes"
            raise CommandFailed(self.host.name, argv, process.returncode, "", reason)
        code = process.returncode
        return Finished(code if code >= 0 else 128 - code, stdout, stderr)

    def put(self, chunks: Iterable[bytes], path: str) -> int:
        target = self.home / path
        temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
        size = 0
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                    size += len(chunk)
            temporary.replace(target)
        except OSError as error:
            raise HostError(self.host.name, f"cannot write {target}: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)
        return size

    def open(
        self, argv: Sequence[str], *, environment: Mapping[str, str] = remote.NO_ENVIRONMENT
    ) -> "LocalChannel":
        # A socket, for unlike a pipe it can be shut down under a thread that reads from it.
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = self._start(argv, environment, stdin=theirs.fileno(), stdout=theirs.fileno())
            except BaseException:
                ours.close()
                raise
        return LocalChannel(self.host.name, process, ours)

    def close(self) -> None:
        """Nothing stays open between two verbs."""

    def _start(
        self, argv: Sequence[str], environment: Mapping[str, str], *, stdin: int, stdout: int
    ) -> "subprocess.Popen[bytes]":
        command_line(argv)  # what SSH would refuse is refused here too
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        try:
            return subprocess.Popen(
                list(argv),
                cwd=self.home,
                env={**kept, "HOME": str(self.home), **environment},
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=True,  # the terminal's ^C is the controller's alone
            )
        except OSError as error:
            raise CommandFailed(self.host.name, argv, 127, error.strerror or "", "does not start") from error


class LocalChannel:
    def __init__(self, host: str, process: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
        self._host = host
        self._process = process
        self._ours = ours
        self._said = b""
        self._closing = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name=f"stderr of {host}", daemon=True)
        self._listener.start()

    def read(self, size: int) -> bytes:
        try:
            return self._ours.recv(size)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        try:
            self._ours.sendall(data)
        except OSError as error:
            raise Unreachable(self._host, "the program has ended", self.said()) from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        with self._closing:
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._ours.close()
        # A daemon that the program left behind may hold stderr for ever.
        self._listener.join(END_S / 10)

    def said(self) -> str:
        return remote.last_lines(self._said)

    def _listen(self) -> None:
        pipe = self._process.stderr
        assert pipe is not None
        with pipe:
            while data := os.read(pipe.fileno(), remote.SAID_BYTES_MAX):
                self._said = (self._said + data)[-remote.SAID_BYTES_MAX :]


def default_home(host: Host) -> Path:
    if Path(host.root).is_absolute():
        return Path(host.root)
    # A name like ".." must not leave the folder.
    return Path.home() / ".panda" / "local" / ("@" + host.name.replace("/", "_"))
