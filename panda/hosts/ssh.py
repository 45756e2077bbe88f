"""The way to a host over SSH: socket, jump hosts, host key, login; all of it within one time limit.

Keys and agents only, never a password, and nobody is asked anything. Fabric makes the connection, but its
habit of trusting every host key is taken away before it opens.
"""

import contextlib
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import fabric  # type: ignore[import-untyped]
import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from panda.hosts.config import JUMPS_MAX, Target
from panda.hosts.failures import FOREIGN, mapped, through
from panda.hosts.host import Host
from panda.hosts.keys import HostKey, KnownHosts
from panda.hosts.remote import CONNECT_TIMEOUT_S, HostError, Unreachable
from panda.hosts.session import CALM, Closes, Pulse, SshRemote

ATTEMPTS_MAX = 10
FIRST_PAUSE_S = 0.05
PAUSE_S_MAX = 1.0
VANISHED_S = 15
SOCKET_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 3),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_S * 1000),
)
RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")
FAMILIES = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    RSA_SIGNATURES,
)

# Its transport thread reports every broken connection to stderr otherwise; we raise what happened instead.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

Jitter = Callable[[], float]
Result = TypeVar("Result")


class NoSuchKey(HostError):
    """No algorithm in common, so also: no host key of the kinds that we asked for."""


class Dropped(Exception):
    """sshd hung up before it said anything: it has too many newcomers (MaxStartups). Another try may do."""


class Deadline:
    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())


def connect_ssh(
    host: Host,
    keys: KnownHosts,
    *,
    timeout_s: float = CONNECT_TIMEOUT_S,
    jitter: Jitter = random.random,
    pulse: Pulse = CALM,
) -> SshRemote:
    deadline = Deadline(timeout_s)
    target = keys.config.target(host)
    via = _last_hop(host, target, keys, deadline, jitter, 0)
    return Way(host, target, keys, deadline, jitter, via).log_in(pulse)


def shown_keys(
    host: Host, keys: KnownHosts, *, timeout_s: float = CONNECT_TIMEOUT_S, jitter: Jitter = random.random
) -> list[HostKey]:
    """The host's keys, one for each kind that it has; jump hosts are logged in to and checked as always."""
    deadline = Deadline(timeout_s)
    target = keys.config.target(host)
    via = _last_hop(host, target, keys, deadline, jitter, 0)
    try:
        way = Way(host, target, keys, deadline, jitter, via)
        found = [key for family in FAMILIES if (key := way.shown_key(family)) is not None]
    finally:
        if via is not None:
            via.close()
    if not found:
        raise Unreachable(host.name, f"{target.address} shows no key of a kind that we know")
    return found


def _last_hop(
    host: Host, target: Target, keys: KnownHosts, deadline: Deadline, jitter: Jitter, depth: int
) -> SshRemote | None:
    """The jump host next to the target, reached through those before it; only the first may have its own."""
    if depth + len(target.jumps) > JUMPS_MAX:
        raise HostError(host.name, f"more than {JUMPS_MAX} jump hosts in a row", "is there a circle?")
    via: SshRemote | None = None
    for hop in target.jumps:
        try:
            inner = keys.config.target(hop)
            if via is None:
                via = _last_hop(hop, inner, keys, deadline, jitter, depth + 1)
            via = Way(hop, inner, keys, deadline, jitter, via).log_in()
        except HostError as error:
            raise through(host, hop, error) from error
    return via


class Way:
    """From here, or from the jump host `via`, to one host."""

    def __init__(
        self,
        host: Host,
        target: Target,
        keys: KnownHosts,
        deadline: Deadline,
        jitter: Jitter,
        via: SshRemote | None,
    ) -> None:
        self._host = host
        self._target = target
        self._keys = keys
        self._deadline = deadline
        self._jitter = jitter
        self._via = via

    def log_in(self, pulse: Pulse = CALM) -> SshRemote:
        """Owns the jump host from here on: it is closed with the connection, or now if there is none."""
        try:
            return self._patiently(lambda: self._log_in_once(pulse))
        except BaseException:
            if self._via is not None:
                self._via.close()
            raise

    def shown_key(self, family: Sequence[str]) -> HostKey | None:
        """The key that the host shows to somebody who knows this family of keys only."""
        try:
            return self._patiently(lambda: self._shown_once(family))
        except NoSuchKey:
            return None

    def _patiently(self, attempt: Callable[[], Result]) -> Result:
        pause_s, last = FIRST_PAUSE_S, ""
        for _ in range(ATTEMPTS_MAX):
            try:
                return attempt()
            except Dropped as dropped:
                last = f": {dropped}" if str(dropped) else ""
                # Newcomers that were turned away together must not come back together.
                time.sleep(min(pause_s * (0.5 + self._jitter()), self._deadline.left_s()))
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
            if not self._deadline.left_s():
                break
        hint = "sshd's MaxStartups limits how many may log in at once"
        raise Unreachable(self._host.name, f"sshd ends every connection at its beginning{last}", hint)

    def _log_in_once(self, pulse: Pulse) -> SshRemote:
        target = self._target
        with self._guarded() as guard:
            nothing = fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig())
            connection = fabric.Connection(
                target.address,
                user=target.user,
                port=target.port,
                config=nothing,
                gateway=False,
                forward_agent=False,
                connect_kwargs={
                    "sock": guard.opened,
                    "transport_factory": guard.transport_for,
                    "timeout": self._deadline.timeout_s,
                    "banner_timeout": self._deadline.timeout_s,
                    "auth_timeout": self._deadline.timeout_s,
                    "channel_timeout": self._deadline.timeout_s,
                    "key_filename": list(target.keys),
                    "allow_agent": target.agent,
                    "look_for_keys": target.search_keys,
                },
            )
            connection.client.set_missing_host_key_policy(Policy(self._host, target.known_as, self._keys))
            guard.kinds = self._keys.kinds(target.known_as)
            try:
                connection.open()
            except BaseException:
                connection.client.close()  # also what it opened to the agent
                raise
            held: list[Closes] = [connection, *([self._via] if self._via is not None else [])]
            assert guard.transport is not None
            guard.keep = True
        return SshRemote(self._host, target, guard.transport, held, pulse)

    def _shown_once(self, family: Sequence[str]) -> HostKey:
        with self._guarded() as guard:
            transport = guard.transport_for(guard.opened)
            options = transport.get_security_options()
            options.key_types = [kind for kind in options.key_types if kind in family]
            transport.start_client(timeout=self._deadline.timeout_s)
            return host_key(transport.get_remote_server_key())

    @contextlib.contextmanager
    def _guarded(self) -> Iterator["Guard"]:
        """An open socket that is closed when the time is over; errors in it become ours."""
        guard = None
        try:
            guard = Guard(self._open_socket(), self._deadline.left_s())
            yield guard
        except FOREIGN as error:
            if guard is not None and guard.late:
                stage = "does not finish" if guard.spoke else "does not begin"
                reason = f"{self._target.address} port {self._target.port} {stage} to speak SSH"
                limit = f"{reason} within {self._deadline.timeout_s:g} s"
                raise Unreachable(self._host.name, limit, "is the host overloaded or frozen?") from error
            if guard is not None and not guard.spoke:
                raise Dropped(str(error)) from error
            if isinstance(error, IncompatiblePeer):
                raise NoSuchKey(self._host.name, str(error)) from error
            raise mapped(self._host, self._target, error) from error
        finally:
            if guard is not None:
                guard.end()

    def _open_socket(self) -> "socket.socket | paramiko.Channel":
        place = (self._target.address, self._target.port)
        # At least a moment, for a time-out of zero means none at all.
        left_s = max(self._deadline.left_s(), 0.01)
        if self._via is not None:
            return self._via.transport.open_channel("direct-tcpip", place, ("", 0), timeout=left_s)
        opened = socket.create_connection(place, timeout=left_s)
        for level, option, value in SOCKET_OPTIONS:
            opened.setsockopt(level, option, value)
        return opened


class Guard:
    """Closes a half-made connection at the end of its time; `keep` says that it was made."""

    def __init__(self, opened: "socket.socket | paramiko.Channel", left_s: float) -> None:
        self.opened = opened
        self.transport: paramiko.Transport | None = None
        self.kinds: Sequence[str] = ()
        self.late = False
        self.keep = False
        self._watch = threading.Timer(left_s, self._expire)
        self._watch.daemon = True
        self._watch.start()

    @property
    def spoke(self) -> bool:
        """Whether the other side has said that it speaks SSH."""
        return self.transport is not None and bool(self.transport.remote_version)

    def transport_for(
        self, sock: "socket.socket | paramiko.Channel", **settings: object
    ) -> paramiko.Transport:
        transport = paramiko.Transport(sock, disabled_algorithms=None)
        options = transport.get_security_options()
        wished = [name for kind in self.kinds for name in (RSA_SIGNATURES if kind == "ssh-rsa" else (kind,))]
        known = [kind for kind in wished if kind in options.key_types]
        options.key_types = [*known, *(kind for kind in options.key_types if kind not in known)]
        self.transport = transport
        return transport

    def end(self) -> None:
        self._watch.cancel()
        if not self.keep:
            self._close()

    def _expire(self) -> None:
        self.late = True
        self._close()

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.close()
        self.opened.close()


class Policy(paramiko.MissingHostKeyPolicy):
    """Asked about every host key, for the client itself is told of none."""

    def __init__(self, host: Host, name: str, keys: KnownHosts) -> None:
        self._host = host
        self._name = name
        self._keys = keys

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        self._keys.check(self._host, self._name, host_key(key))


def host_key(key: paramiko.PKey) -> HostKey:
    return HostKey(key.get_name(), key.asbytes())
