"""Decides which Spark server is kept warm on this machine: how it is started, found again, and ended.

There is one for a user. It listens on the loopback address alone and takes nobody without a token, which is
in a file that only the user can read and in no argument and no log. A server is (boot, pid, start), never a
name.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from panda.analysis.family import end_family, interruptible
from panda.analysis.java import find_java
from panda.analysis.refusals import AnalysisFailed
from panda.analysis.shipping import package_folder
from panda.prepare.offspring import Identity, identity_of, lives

START_TIMEOUT_S = 180.0
CONNECT_TIMEOUT_S = 2.0
MEMORY_MIN_MB, MEMORY_MAX_MB = 1024, 8192
LAST_LINES = 12
SESSION = "PANDA_SPARK_SESSION"  # as panda_spark knows it
_LOOK_EVERY_S = 0.1
_CLASSES_MAX = 5000  # of compiled queries; one analysis has 800, and Spark keeps 100 unless told
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Server:
    boot: str
    pid: int
    started: str  # ticks since the boot, by the kernel
    port: int
    token: str
    session: str  # that analyses share; see client_environment
    spark: str
    cores: int
    memory_mb: int
    since: float

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.started)

    @property
    def lives(self) -> bool:
        return self.boot == _boot() and lives(self.identity)

    @property
    def answers(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), CONNECT_TIMEOUT_S),
        ):
            return True
        return False

    @property
    def fits(self) -> bool:
        """Whether it speaks our version of Spark."""
        return self.spark == spark_version()

    @property
    def client_environment(self) -> dict[str, str]:
        """What a client has to know. Without TLS it shows its token only to a host called localhost.

        A session has a class loader of its own, and what was compiled for a query is found again in the same
        one alone: analyses that follow one another in one session need not compile anything.
        """
        return {
            "SPARK_REMOTE": f"sc://localhost:{self.port}",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": self.token,
            SESSION: self.session,
        }


def find(cache: Path) -> Server | None:
    """The server that runs; a record of one that is gone stays for whoever starts or ends one."""
    known = recorded(cache)
    return known if known is not None and known.lives else None


def recorded(cache: Path) -> Server | None:
    """The server that was started last, whether it runs or not."""
    path = _record(cache)
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                return None  # not written by us: whoever did might want to see our token
            data = json.load(file)
        return Server(**{name: kind(data[name]) for name, kind in _FIELDS.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


_FIELDS: Mapping[str, type] = {
    "boot": str, "pid": int, "started": str, "port": int, "token": str, "session": str,
    "spark": str, "cores": int, "memory_mb": int, "since": float,
}  # fmt: skip


def up(cache: Path, *, cores: int, memory_mb: int) -> tuple[Server, bool]:
    """The server, and whether it had to be started. It has done a first job when this returns."""
    with _alone(cache), interruptible():
        there = find(cache)
        if there is not None and there.fits and there.answers:
            return there, False
        if there is not None:
            end_family(there.identity)
        find_java(os.environ)
        return _start(cache, cores, memory_mb), True


def down(cache: Path) -> Server | None:
    """End the server with everything that it started; which one it was, None if none ran."""
    with _alone(cache), interruptible():
        there = find(cache)
        if there is not None:
            end_family(there.identity)
        _record(cache).unlink(missing_ok=True)
        return there


def default_memory_mb() -> int:
    """A quarter of the machine's, within reason."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(MEMORY_MIN_MB, min(MEMORY_MAX_MB, whole // 4))


def default_cores() -> int:
    return len(os.sched_getaffinity(0))


def spark_version() -> str:
    return importlib.metadata.version("pyspark")


def server_log(cache: Path) -> Path:
    return cache / "spark" / "server.log"


def _start(cache: Path, cores: int, memory_mb: int) -> Server:
    log = server_log(cache)
    log.unlink(missing_ok=True)
    port, token = _free_port(), secrets.token_urlsafe(32)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        popen = subprocess.Popen(
            _command(port, cores, memory_mb),
            cwd=log.parent,
            env=_environment(token),
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    identity = identity_of(popen.pid)
    assert identity is not None, "nobody but us takes note of its end"
    server = Server(
        boot=_boot(), pid=popen.pid, started=identity.started, port=port, token=token,
        session=str(uuid.uuid4()), spark=spark_version(), cores=cores, memory_mb=memory_mb,
        since=round(time.time(), 3),
    )  # fmt: skip
    try:
        _write(_record(cache), server)  # before it is up: one that was left half-way is found again
        _await(server, log)
        _greet(server, log)
    except BaseException:
        end_family(identity)
        popen.wait()
        _record(cache).unlink(missing_ok=True)
        raise
    popen.returncode = 0  # it stays, and is not waited for
    return server


def _command(port: int, cores: int, memory_mb: int) -> list[str]:
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.log.level": "WARN",
        "spark.connect.session.manager.defaultSessionTimeout": "3650d",  # it ends with the server
        "spark.sql.codegen.cache.maxEntries": _CLASSES_MAX,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = package_folder("pyspark") / "bin" / "spark-submit"
    where = ["--master", f"local[{cores}]", "--driver-memory", f"{memory_mb}m"]
    where += ["--driver-java-options", "-XX:-DontCompileHugeMethods"]  # a line has many fields
    return [str(submit), "--class", _CLASS, *where, *options, "spark-internal"]


def _environment(token: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "SPARK_HOME": str(package_folder("pyspark")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "PYSPARK_PYTHON": sys.executable,
    }


def _await(server: Server, log: Path) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while not server.answers:
        if not server.lives:
            raise AnalysisFailed("the server ended while it was starting", _last_lines(log), log)
        if time.monotonic() > until:
            raise AnalysisFailed(
                f"the server did not answer within {START_TIMEOUT_S:g} s", _last_lines(log), log
            )
        time.sleep(_LOOK_EVERY_S)


def _greet(server: Server, log: Path) -> None:
    try:
        said = subprocess.run(
            [sys.executable, "-P", "-m", "panda.analysis.greeting"],
            env={**os.environ, **server.client_environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AnalysisFailed("the server does not finish its first job", _last_lines(log), log) from None
    if said.returncode or not server.lives:
        last = tuple(said.stderr.decode("utf-8", "replace").splitlines()[-LAST_LINES:])
        raise AnalysisFailed("the server did not do its first job", last, log)


def _free_port() -> int:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        port: int = asking.getsockname()[1]
        return port


def _last_lines(log: Path) -> tuple[str, ...]:
    try:
        return tuple(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
    except OSError:
        return ()


def _record(cache: Path) -> Path:
    return cache / "spark" / "server.json"


def _write(path: Path, server: Server) -> None:
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(server), file)
    part.replace(path)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One at a time starts or ends it; the others wait and then find what became of it."""
    folder = _record(cache).parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"
