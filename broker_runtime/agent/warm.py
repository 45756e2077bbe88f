"""Decides how the supervisor has processes forked: by a warm parent, and by another when that has died."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from broker_runtime.agent.identity import MARKER
from broker_runtime.agent.nursery import HEADER_BYTES, MARKER_ROOM

ATTEMPTS_MAX: Final = 3
# From the order on, with the time to get warm on a busy machine.
FORK_WITHIN_S: Final = 60.0
REPLY_BYTES_MAX: Final = 64 << 10

Forked = Callable[[int, int, str], None]  # pid, ticks, or else why not


@dataclass(slots=True)
class _Order:
    key: int
    body: bytes
    fds: tuple[int, ...]
    marker: str
    done: Forked
    attempts: int = 0
    overdue: asyncio.TimerHandle | None = None


class WarmParent:
    """Orders are sent one by one; what was sent to a parent that died is looked for by its marker."""

    def __init__(
        self,
        environment: Mapping[str, str],
        find: Callable[[str], tuple[int, int] | None],
        trouble: Callable[[str], None],
    ) -> None:
        self._environment = dict(environment)
        self._find = find
        self._trouble = trouble
        self._key = 0
        self._orders: dict[int, _Order] = {}
        self._queue: deque[_Order] = deque()
        self._popen: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._sender: asyncio.Task[None] | None = None
        self._received = bytearray()
        self._why = ""

    @property
    def pid(self) -> int:
        return self._popen.pid if self._popen else 0

    def start(self) -> None:
        """Have one that gets warm, unless there is one."""
        if self._popen is not None:
            return
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        command = [
            sys.executable,
            "-P",
            "-m",
            "broker_runtime.agent",
            "nursery",
            "--fd",
            str(theirs.fileno()),
        ]
        # One thread of numpy's: more would be started before every fork and be of no use after it.
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = {**self._environment, **threads, MARKER: MARKER_ROOM}
        with theirs:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment
            )
        self._socket = ours
        self._received.clear()
        self._why = ""
        asyncio.get_running_loop().add_reader(ours, self._readable, ours)

    def fork(self, order: Mapping[str, Any], fds: tuple[int, ...], done: Forked) -> None:
        """Have a process forked; the descriptors are ours from now on."""
        self._key += 1
        body = json.dumps({**order, "key": self._key}).encode("ascii")
        waiting = _Order(self._key, body, fds, order["marker"], done)
        self._orders[waiting.key] = waiting
        waiting.overdue = asyncio.get_running_loop().call_later(FORK_WITHIN_S, self._give_up, waiting)
        self._send(waiting)

    def _give_up(self, order: _Order) -> None:
        """A parent that does not answer is of no use: its end is seen as any other."""
        order.attempts = ATTEMPTS_MAX
        if self._popen is not None:
            self._popen.kill()

    def _send(self, order: _Order) -> None:
        order.attempts += 1
        try:
            self.start()
        except OSError as error:
            self._finish(order, 0, 0, f"no warm parent can be started: {error.strerror}")
            return
        self._queue.append(order)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue and self._socket is not None:
                order = self._queue.popleft()
                sock = self._socket
                while True:
                    try:
                        header = len(order.body).to_bytes(HEADER_BYTES, "big")
                        socket.send_fds(sock, [header], list(order.fds))
                        break
                    except BlockingIOError:
                        await _writable(sock)
                await loop.sock_sendall(sock, order.body)
        except OSError:
            pass  # it died: what it was sent is seen to when its end is read
        finally:
            self._sender = None

    def _readable(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(REPLY_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._died()
            return
        self._received += data
        *lines, rest = self._received.split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            self._reply(json.loads(line))

    def _reply(self, reply: dict[str, Any]) -> None:
        if reply.get("warm") is False:
            self._why = str(reply["error"])[:500]
        order = self._orders.get(reply.get("key", 0))
        if order is not None:
            self._finish(
                order, reply.get("pid", 0), reply.get("ticks") or 0, str(reply.get("error", ""))[:500]
            )

    def _finish(self, order: _Order, pid: int, ticks: int, why: str) -> None:
        del self._orders[order.key]
        if order.overdue is not None:
            order.overdue.cancel()
        for fd in order.fds:
            os.close(fd)
        order.done(pid, ticks, why)

    def _died(self) -> None:
        why = self._why
        self.close()
        self._trouble(why or "the warm parent died; another one is started when it is needed")
        for order in list(self._orders.values()):
            found = self._find(order.marker)
            if found is not None:
                self._finish(order, *found, "")
            elif why or order.attempts >= ATTEMPTS_MAX:
                self._finish(order, 0, 0, why or f"{order.attempts} warm parents died")
            else:
                self._send(order)

    def close(self) -> None:
        """End it; it ends by itself when its socket is closed."""
        self._queue.clear()
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()
            self._popen = None


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(sock)
