"""Decides how a process is heard and spoken to on its line, and who it is that dials one; never what is said.

Nobody has to say who he is: the kernel knows which process has connected, and that process's environment has
the marker that it was started with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

LINE_BYTES_MAX: Final = 16 << 10


def accepted(listening: socket.socket) -> tuple[socket.socket, int] | None:
    """A connection of our own user's, and the process at its other end."""
    try:
        sock, _ = listening.accept()
    except OSError:  # who was there has hung up
        return None
    pid, uid = peer_of(sock)
    if uid == os.geteuid():
        return sock, pid
    sock.close()
    return None


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a unix socket, as the kernel says."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return pid, uid


class Line:
    """The socket to one process; what comes is cut into JSON lines."""

    def __init__(self, sock: socket.socket, said: Callable[[Mapping[str, Any]], None]) -> None:
        self._socket: socket.socket | None = sock
        self._said = said
        self._buffer = bytearray()
        sock.setblocking(False)
        asyncio.get_running_loop().add_reader(sock, self._readable, sock)

    def _readable(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(LINE_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        if not data or len(rest) > LINE_BYTES_MAX:
            self.close()
        for line in lines:
            with contextlib.suppress(
                ValueError, RecursionError
            ):  # a process that talks nonsense is not listened to
                message = json.loads(line)
                if isinstance(message, dict):
                    self._said(message)

    def say(self, message: Mapping[str, Any]) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # who does not listen will not answer: that is reported
                self._socket.send(json.dumps(message).encode("ascii") + b"\n")

    def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
