"""Decides how a run's agents are reached: connection, bundle, agent, hello; never what they are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from broker_runtime.agent.protocol import Code, RequestRefused
from panda.deploy.session import AgentSession, Listener
from panda.hosts.bundle import Bundle, Installed, agent_command, build, install
from panda.hosts.host import Host
from panda.hosts.remote import HostError, Remote, connect

if TYPE_CHECKING:
    from panda.hosts.keys import KnownHosts

AT_ONCE = 16
NO_BUNDLE = Bundle("", Path(), 0, "")  # a local host uses the controller's own packages

Note = Callable[[str, str], None]  # host, what is happening there


class HostsFailed(Exception):
    """Some hosts could not be reached; all of them, each with its reason."""

    def __init__(self, failures: Sequence[HostError]) -> None:
        super().__init__("; ".join(map(str, failures)))
        self.failures = tuple(failures)


class HeldByAnother(HostError):
    """Another controller steers the agent."""


class Crew:
    """The way to every host of a run. A connection is kept, and made again when it broke."""

    def __init__(self, run: str, keys: KnownHosts, cache: Path, holder: str) -> None:
        self.sent_bytes: dict[str, int] = {}
        self._run = run
        self._keys = keys
        self._cache = cache
        self.holder = holder
        self._remotes: dict[str, Remote] = {}
        self._installed: dict[str, Installed] = {}
        self._bundle: Bundle | None = None
        self._building = threading.Lock()

    def reach(
        self,
        host: Host,
        listener: Listener | None,
        *,
        steer: bool,
        force: bool = False,
        start: bool = True,
        note: Note = lambda host, what: None,
    ) -> AgentSession:
        """A session with the host's agent; HostError says why not."""
        self.forget(host.name)
        note(host.name, "connecting")
        remote = self._remotes[host.name] = connect(host, self._keys)
        installed = self._installed.get(host.name)
        if installed is None:
            note(host.name, "looking for the bundle")
            installed = install(remote, self._bundle_for(host))
            self._installed[host.name] = installed
            self.sent_bytes[host.name] = installed.sent_bytes
        note(host.name, "starting its agent" if start else "looking for its agent")
        channel = remote.open(agent_command(host, installed, self._run, start=start))
        session = AgentSession(host.name, channel, listener)
        try:
            session.open(self.holder, steer=steer, force=force)
        except RequestRefused as refused:
            session.close()
            if refused.code is Code.LOCKED:
                hint = "watch it with panda status, or take it over with --force"
                raise HeldByAnother(host.name, refused.message, hint) from None
            raise HostError(host.name, f"its agent refuses: {refused.message}") from None
        except BaseException:
            session.close()
            raise
        note(host.name, "agent ready")
        return session

    def reach_all(
        self,
        hosts: Sequence[Host],
        listener: Listener | None,
        *,
        steer: bool,
        force: bool = False,
        start: bool = True,
        note: Note = lambda host, what: None,
    ) -> tuple[dict[str, AgentSession], list[HostError]]:
        """Side by side; one host's trouble is nobody else's."""
        sessions: dict[str, AgentSession] = {}
        failures: list[HostError] = []
        with ThreadPoolExecutor(min(AT_ONCE, max(1, len(hosts))), "reach") as pool:
            reached = {
                pool.submit(
                    self.reach, host, listener, steer=steer, force=force, start=start, note=note
                ): host.name
                for host in hosts
            }
            for future in as_completed(reached):
                try:
                    sessions[reached[future]] = future.result()
                except HostError as error:
                    note(reached[future], error.reason)
                    failures.append(error)
        order = [host.name for host in hosts]
        failures.sort(key=lambda error: order.index(error.host) if error.host in order else 0)
        return {name: sessions[name] for name in order if name in sessions}, failures

    def forget(self, host: str) -> None:
        """Let go of a connection that is of no use any more."""
        remote = self._remotes.pop(host, None)
        if remote is not None:
            remote.close()

    def close(self) -> None:
        """Side by side too: each connection takes a moment to end, and one that hangs takes longer."""
        names = list(self._remotes)
        with ThreadPoolExecutor(min(AT_ONCE, max(1, len(names))), "leave") as pool:
            list(pool.map(self.forget, names))

    def _bundle_for(self, host: Host) -> Bundle:
        if host.local:
            return NO_BUNDLE
        with self._building:
            if self._bundle is None:
                self._bundle = build(self._cache)
            return self._bundle
