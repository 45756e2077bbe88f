"""What can be done on a host, and what can go wrong there; knows no transport.

HostError           names the host, the reason and what would help
├── Unreachable     no connection, or it broke
├── HostKeyRefused  the host's key is unknown, changed or revoked
├── LoginRefused    none of our keys opened the door
└── CommandFailed   a program said no, or said nothing in time
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from panda.hosts.host import Host

if TYPE_CHECKING:
    from panda.hosts.keys import KnownHosts

CONNECT_TIMEOUT_S = 12.0  # with what a command does besides, a host that hangs costs it no more than 15 s
CONNECTS_AT_ONCE = 16
RUN_TIMEOUT_S = 30.0
OUTPUT_BYTES_MAX = 16 * 2**20
PIECE_BYTES = 256 * 1024
SAID_BYTES_MAX = 8192
SAID_LINES_MAX = 20
TIMED_OUT = 124
NO_ENVIRONMENT: Mapping[str, str] = {}


class HostError(Exception):
    def __init__(self, host: str, reason: str, hint: str = "") -> None:
        super().__init__(host, reason, hint)
        self.host = host
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        line = f"{self.host}: {self.reason}" + (f" ({self.hint})" if self.hint else "")
        return "".join(letter if letter.isprintable() else "?" for letter in " ".join(line.split()))


class Unreachable(HostError):
    pass


class HostKeyRefused(HostError):
    pass


class LoginRefused(HostError):
    pass


class CommandFailed(HostError):
    """`last` is the end of what the program wrote to stderr; `code` is 124 when it did not end in time."""

    def __init__(self, host: str, command: Sequence[str], code: int, last: str, reason: str = "") -> None:
        said = last.strip().splitlines()
        what = reason or f"ended with code {code}"
        super().__init__(host, f"`{shown(command)}` {what}" + (f": {said[-1]}" if said else ""))
        self.command = tuple(command)
        self.code = code
        self.last = last


@dataclass(frozen=True, slots=True)
class Finished:
    code: int
    stdout: bytes
    stderr: bytes


class Channel(Protocol):
    """A program that runs on the host; our ends of its stdin, stdout and stderr."""

    def read(self, size: int) -> bytes:
        """Blocks for at most `size` bytes; b"" when the program, the connection or the channel has ended."""

    def write(self, data: bytes) -> None:
        """All of it, in pieces; raises Unreachable when nobody reads any more."""

    def close(self) -> None:
        """Ends the conversation, from any thread: a blocked read returns."""

    def said(self) -> str:
        """The last lines of stderr, and why the connection ended if it broke."""


class Remote(Protocol):
    """A host that let us in. Paths are absolute or relative to the login's home."""

    @property
    def host(self) -> Host: ...

    def run(
        self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = RUN_TIMEOUT_S
    ) -> Finished: ...

    def put(self, chunks: Iterable[bytes], path: str) -> int:
        """Writes a file of mode 0600 by way of a temporary name; makes the folders above it."""

    def open(self, argv: Sequence[str], *, environment: Mapping[str, str] = NO_ENVIRONMENT) -> Channel:
        """Starts a program. The environment is for what everybody may see: secrets go through the channel."""

    def close(self) -> None: ...


def connect(host: Host, keys: "KnownHosts", *, timeout_s: float = CONNECT_TIMEOUT_S) -> Remote:
    if host.local:
        from panda.hosts.local import LocalRemote

        return LocalRemote(host)
    from panda.hosts.ssh import connect_ssh

    return connect_ssh(host, keys, timeout_s=timeout_s)


def connect_all(
    hosts: Sequence[Host],
    keys: "KnownHosts",
    *,
    at_once: int = CONNECTS_AT_ONCE,
    timeout_s: float = CONNECT_TIMEOUT_S,
) -> "dict[str, Remote | HostError]":
    """Every host by its name: connected, or why not. One that hangs delays nobody but itself."""

    def outcome(host: Host) -> Remote | HostError:
        try:
            return connect(host, keys, timeout_s=timeout_s)
        except HostError as error:
            return error

    pool = ThreadPoolExecutor(max(1, min(at_once, len(hosts))), "connect")
    futures = {host.name: pool.submit(outcome, host) for host in hosts}
    try:
        return {name: future.result() for name, future in futures.items()}
    except BaseException:
        for future in futures.values():
            future.add_done_callback(_close_connected)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _close_connected(future: "Future[Remote | HostError]") -> None:
    if not future.cancelled() and future.exception() is None:
        made = future.result()
        if not isinstance(made, HostError):
            made.close()


def checked(
    remote: Remote, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = RUN_TIMEOUT_S
) -> bytes:
    """The output of a program that must succeed."""
    finished = remote.run(argv, data=data, timeout_s=timeout_s)
    if finished.code != 0:
        raise CommandFailed(remote.host.name, argv, finished.code, last_lines(finished.stderr))
    return finished.stdout


def shown(command: Sequence[str]) -> str:
    """A command as a person would type it, cut to a readable length."""
    text = shlex.join(command)
    return text if len(text) <= 120 else text[:117] + "..."


def last_lines(stderr: bytes) -> str:
    lines = stderr[-SAID_BYTES_MAX:].decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-SAID_LINES_MAX:])
