"""Decides which loopback network a run on this machine uses, so that two runs do not meet; starts nothing.

The usual one is taken if it is free, else the next. Until its brokers listen, the run keeps the network by a
socket with an abstract name, which ends with the controller and leaves no file behind.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable

FIRST = 77
LAST = 126

_kept: list[socket.socket] = []


class NoNetwork(Exception):
    """Every network is in use."""


def take_network(listeners: Iterable[tuple[str, int]]) -> int:
    """The second number of a network in which all of these (`high.low` of the address, port) are free.

    It stays ours as long as this process lives.
    """
    wanted = list(listeners)
    for network in range(FIRST, LAST + 1):
        keeper = socket.socket(socket.AF_UNIX)
        try:
            keeper.bind(f"\0panda-local-{network}")
        except OSError:
            keeper.close()
            continue
        if all(_free(f"127.{network}.{rest}", port) for rest, port in wanted):
            _kept.append(keeper)
            return network
        keeper.close()
    raise NoNetwork(
        f"no loopback network from 127.{FIRST} to 127.{LAST} has all of the topology's ports free"
    )


def _free(address: str, port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
