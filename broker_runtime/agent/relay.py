"""The connection of a controller: passes bytes between its stdio and the supervisor, which it may start."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final

from broker_runtime.agent.folder import SOCKET, Folder
from broker_runtime.agent.protocol import PREAMBLE

COPY_BYTES: Final = 256 << 10
READY_WITHIN_S: Final = 20.0
CONNECT_EVERY_S: Final = 0.02
NO_AGENT: Final = 3


def relay(folder: Folder, *, start: bool) -> int:
    """Until either end closes. Socket names are short, so the folder is entered and the name is relative."""
    try:
        if start:
            folder.create()
        folder.check()
        os.chdir(folder.path)
    except (OSError, ValueError) as error:
        return _fail(f"no agent of run {folder.run}: {error}")
    sock = _connect()
    if sock is None and start:
        why = _start_supervisor(folder)
        sock = _connect() if why else _connect_in_time()
        if sock is None:
            return _fail(f"the agent of run {folder.run} does not start: {why}")
    if sock is None:
        return _fail(f"no agent of run {folder.run} lives here")
    _write(1, PREAMBLE)
    threading.Thread(target=_copy_requests, args=(sock,), daemon=True).start()
    _copy_answers(sock)
    sys.stderr.flush()
    os._exit(0)  # the other thread may be waiting for input that never comes


def _fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return NO_AGENT


def _connect() -> socket.socket | None:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(SOCKET)
    except OSError:
        sock.close()
        return None
    return sock


def _connect_in_time() -> socket.socket | None:
    """Another relay may have started it a moment earlier: then it lives but need not listen yet."""
    deadline = time.monotonic() + READY_WITHIN_S
    while (sock := _connect()) is None and time.monotonic() < deadline:
        time.sleep(CONNECT_EVERY_S)
    return sock


def _copy_requests(sock: socket.socket) -> None:
    try:
        while data := os.read(0, COPY_BYTES):
            sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        os._exit(0)


def _copy_answers(sock: socket.socket) -> None:
    try:
        while data := sock.recv(COPY_BYTES):
            _write(1, data)
    except OSError:
        return  # one of the two ends is gone, and so are we


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _start_supervisor(folder: Folder) -> str:
    """Fork twice, with a new session in between, so that it belongs to nobody; says why it failed."""
    reader, writer = os.pipe()
    log = os.open("agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    between = os.fork()
    if between == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _become_supervisor(folder, log, writer)
        finally:
            os._exit(0)
    os.waitpid(between, 0)
    os.close(writer)
    os.close(log)
    readable, _, _ = select.select([reader], [], [], READY_WITHIN_S)
    said = os.read(reader, 100) if readable else b""
    os.close(reader)
    return "" if said else f"see {folder.path / 'agent.log'}: {_last_line()}"


def _last_line() -> str:
    try:
        lines = Path("agent.log").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1][:500] if lines else "it says nothing"


def _become_supervisor(folder: Folder, log: int, writer: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.set_inheritable(writer, True)
    packages = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [packages, *(entry for entry in inherited if Path(entry).is_absolute() and entry != packages)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-P", "-m", "broker_runtime.agent", "supervise"]
    command += ["--root", str(folder.root), "--run", folder.run, "--ready-fd", str(writer)]
    os.execve(sys.executable, command, environment)  # noqa: S606
