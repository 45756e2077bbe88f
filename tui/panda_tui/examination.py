"""Decides how the hosts of a run are examined from here: as `panda doctor` does, while it goes on. Blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from panda.hosts.doctor import Report, check
from panda.hosts.host import Host
from panda.hosts.remote import Remote, connect

TIMEOUT_S = 15.0


def examine(hosts: Sequence[Host], on_report: Callable[[Report], None]) -> list[Report]:
    """The ports are left out: the run's own brokers have them."""
    from panda.hosts.keys import KnownHosts
    from panda.hosts.local import LocalRemote

    keys = KnownHosts()
    with tempfile.TemporaryDirectory(prefix="panda-doctor-") as name:

        def reach(host: Host) -> Remote:
            if host.local:  # it needs a home, and nothing of it is to stay
                return LocalRemote(host, Path(name) / "home" / host.where)
            return connect(host, keys, timeout_s=TIMEOUT_S)

        return check(reach, hosts, timeout_s=TIMEOUT_S, on_report=on_report)
