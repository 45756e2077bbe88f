"""The warm parent: a process that has imported the runtime once and forks its brokers and clients on request.

What it forks is forked twice, so that it becomes a child of the supervisor, who alone learns how it ended,
and ahead of its order: one process always waits to be told what to be.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from broker_runtime.agent.identity import MARKER, start_ticks

HEADER_BYTES: Final = 4
ORDER_BYTES_MAX: Final = 8 << 20
FDS_PER_ORDER: Final = 3  # stdout, stderr, line
LINE_FD: Final = 3
FD_MAX: Final = 65_536
# Where a forked process writes its marker: /proc shows the environment a process was executed with.
MARKER_ROOM: Final = "~" * 400
WORDS: Final = ("broker", "client", "publish", "subscribe", "sqpublisher", "sqsubscriber", "workload")


def main(fd: int) -> int:
    """Fork on request until the other end of the socket is closed."""
    sock = socket.socket(fileno=fd)
    try:
        for module in ("main", *WORDS):
            import_module(f"broker_runtime.commands.{module}")
    except Exception as error:
        _say(sock, {"warm": False, "error": f"the runtime cannot be loaded: {error}"})
        return 1
    areas = _Areas()
    gc.collect()
    gc.freeze()
    spare = _spare(sock, areas)
    _say(sock, {"warm": True})
    while True:
        try:
            received = _receive(sock)
        except ConnectionError:  # the supervisor was killed
            return 0
        if received is None:
            return 0
        body, fds = received
        if not _hand_over(spare, body, fds):  # it may have been killed: another one, once
            spare = _spare(sock, areas)
            if not _hand_over(spare, body, fds):
                _say(
                    sock,
                    {"key": json.loads(body)["key"], "error": "it cannot be forked: no room for a process"},
                )
        for each in fds:
            os.close(each)
        if spare is not None:
            spare.close()
        spare = _spare(sock, areas)


def _say(sock: socket.socket, message: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError):  # the supervisor is gone: we shall see it when we read
        sock.sendall(json.dumps(message).encode("ascii") + b"\n")


def _receive(sock: socket.socket) -> tuple[bytes, list[int]] | None:
    header, fds, _, _ = socket.recv_fds(sock, HEADER_BYTES, FDS_PER_ORDER)
    if len(header) < HEADER_BYTES:
        return None
    left = int.from_bytes(header, "big")
    assert left <= ORDER_BYTES_MAX
    pieces = []
    while left:
        piece = sock.recv(left)
        if not piece:
            return None
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces), fds


def _hand_over(spare: socket.socket | None, body: bytes, fds: list[int]) -> bool:
    """Give an order to the process that waits for one."""
    if spare is None:
        return False
    try:
        socket.send_fds(spare, [len(body).to_bytes(HEADER_BYTES, "big")], fds)
        spare.sendall(body)
    except OSError:
        return False
    return True


def _spare(sock: socket.socket, areas: _Areas) -> socket.socket | None:
    """Fork a process ahead of its order, so that a step need not wait for it; it ends when we do."""
    ours, theirs = socket.socketpair()
    try:
        between = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        return None
    if between == 0:
        try:
            if os.fork() == 0:
                ours.close()
                _wait_for_order(theirs, sock, areas)
        finally:
            os._exit(0)
    theirs.close()
    os.waitpid(between, 0)
    return ours


def _wait_for_order(orders: socket.socket, sock: socket.socket, areas: _Areas) -> None:
    received = _receive(orders)
    orders.detach()
    if received is not None:
        _live(sock, json.loads(received[0]), received[1], areas)


def _live(sock: socket.socket, order: dict[str, Any], fds: list[int], areas: _Areas) -> None:
    """Be the process; never returns."""
    from broker_runtime.commands import main as commands
    from broker_runtime.commands import printing

    code = 70
    try:
        if order["word"] not in commands.WORDS:
            _say(sock, {"key": order["key"], "error": f"there is no word {order['word']!r}"})
            return
        _become(order, fds, areas)
        _say(sock, {"key": order["key"], "pid": os.getpid(), "ticks": start_ticks(os.getpid())})
        sock.detach()
        os.dup2(fds[2], LINE_FD)
        os.set_inheritable(LINE_FD, False)
        os.closerange(LINE_FD + 1, FD_MAX)
        gc.enable()
        printing.prepare()
        code = commands.run_command(order["word"], order["arguments"])
    except OSError as error:
        _say(sock, {"key": order["key"], "error": f"cannot be started: {error.strerror}"})
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _become(order: dict[str, Any], fds: list[int], areas: _Areas) -> None:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(order["folder"])
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    os.environ.update(order["environment"])
    os.environ["PANDA_LINE"] = str(LINE_FD)
    areas.write(order["marker"], order["title"])
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()
    sys.argv = ["broker_runtime", order["word"], *order["arguments"]]


class _Areas:
    """Where the kernel looks for a process's arguments and environment; a fork has them at the same place."""

    def __init__(self) -> None:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
        fields = [int(field) for field in text[text.rfind(b")") + 4 :].split()]
        self._arguments, self._arguments_end, variables, variables_end = fields[44:48]
        room = f"{MARKER}={MARKER_ROOM}".encode()
        at = ctypes.string_at(variables, variables_end - variables).find(room) if variables else -1
        self._marker = variables + at + len(MARKER) + 1 if at >= 0 else 0

    def write(self, marker: str, title: str) -> None:
        if self._marker:
            ctypes.memmove(self._marker, marker.encode().ljust(len(MARKER_ROOM)), len(MARKER_ROOM))
        room = self._arguments_end - self._arguments
        if self._arguments and room > 1:
            ctypes.memmove(self._arguments, title.encode()[: room - 1].ljust(room, b"\0"), room)
