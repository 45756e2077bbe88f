"""The process that makes a bed, waits until nobody wants it any more, and takes it down.

It is a process of its own so that a bed ends with its owner, even one that was killed: the owner holds the
other end of the keeper's stdin. Should the keeper be killed as well, the kernel ends the hosts, and the next
keeper removes the names that were left in the network.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from tests.testbed.files import KEY_NAME, USER, Place, describe, lay_out, make_key, sshd_config

BEDS_MAX = 99
HOSTS_MAX = 200
READY_S = 30.0
FIRST_ADDRESS = 10
LOOPBACK_PORT = 2200
SSHD = "/usr/sbin/sshd"
END_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def keep(count: int, folder: Path, kind: str, options: Mapping[str, str], *, remove: bool) -> None:
    """Makes the bed, says on stdout where its hosts are, and takes it down at the end of stdin."""
    try:
        keep_until_the_end(count, folder, kind, options)
    finally:
        if remove:
            shutil.rmtree(folder, ignore_errors=True)


def keep_until_the_end(count: int, folder: Path, kind: str, options: Mapping[str, str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    assert 1 <= count <= HOSTS_MAX
    with claimed_number() as number:
        make = {"namespaces": namespaces, "networked": networked, "loopback": loopback}[kind]
        with make(number, count, folder, options) as places:
            describe(folder, places)
            wait_until_ready(places)
            sys.stdout.write(json.dumps([asdict(place) for place in places]) + "\n")
            sys.stdout.flush()
            sys.stdin.buffer.read()


def can_have_namespaces() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter", "pivot_root"))):
        return False
    probe = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc", "true"]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0


@contextlib.contextmanager
def claimed_number() -> Iterator[int]:
    """A number that no living bed has; what dead ones of any number left behind is removed on the way."""
    locks = Path(tempfile.gettempdir()) / f"panda-testbed-{os.geteuid()}"
    locks.mkdir(mode=0o700, exist_ok=True)
    mine = None
    try:
        for number in range(1, BEDS_MAX + 1):
            lock = (locks / str(number)).open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            if os.geteuid() == 0 and shutil.which("ip"):
                remove_names(number)
            if mine is None:
                mine = (number, lock)
            else:
                lock.close()
            if not any((locks / str(later)).exists() for later in range(number + 1, BEDS_MAX + 1)):
                break
        assert mine is not None, f"{BEDS_MAX} beds live already"
        yield mine[0]
    finally:
        if mine is not None:
            mine[1].close()


@contextlib.contextmanager
def namespaces(number: int, count: int, folder: Path, options: Mapping[str, str]) -> Iterator[list[Place]]:
    processes: list[subprocess.Popen[bytes]] = []
    public = make_key(folder / KEY_NAME, "bed")
    try:
        connect_names(number, count)
        places = []
        for index in range(1, count + 1):
            name, address = f"h{index}", f"10.97.{number}.{FIRST_ADDRESS + index - 1}"
            own = folder / name
            (own / "files").mkdir(parents=True)
            (own / "mount").mkdir()
            host_key = make_key(own / "host_key", name)
            lay_out(own / "files", name, own / "host_key", public, options)
            process = enter(["ip", "netns", "exec", f"pb{number}h{index}"], own, name)
            processes.append(process)
            line, link = f"{address} {host_key}", f"pb{number}v{index}"
            places.append(Place(name, address, 22, USER, ".panda", line, process.pid, link, enclosed=True))
        yield places
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        remove_names(number)


@contextlib.contextmanager
def networked(number: int, count: int, folder: Path, options: Mapping[str, str]) -> Iterator[list[Place]]:
    """Hosts with files and processes of their own, but in this machine's network: they reach registries."""
    processes: list[subprocess.Popen[bytes]] = []
    public = make_key(folder / KEY_NAME, "bed")
    try:
        places = []
        for index in range(1, count + 1):
            name, address = f"h{index}", f"127.97.{number}.{FIRST_ADDRESS + index - 1}"
            own, port = folder / name, LOOPBACK_PORT + number
            (own / "files").mkdir(parents=True)
            (own / "mount").mkdir()
            host_key = make_key(own / "host_key", name)
            told = {"ListenAddress": f"{address}:{port}", **options}
            lay_out(own / "files", name, own / "host_key", public, told)
            process = enter([], own, name)
            processes.append(process)
            line = f"[{address}]:{port} {host_key}"
            places.append(Place(name, address, port, USER, ".panda", line, process.pid, enclosed=True))
        yield places
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def enter(network: list[str], own: Path, name: str) -> "subprocess.Popen[bytes]":
    script = Path(__file__).with_name("enter-host.sh")
    fresh = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child=SIGKILL"]
    with (own / "sshd.log").open("wb") as log:
        return subprocess.Popen(
            [*END_WITH_US, *network, *fresh, str(script), str(own), name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            start_new_session=True,
        )


def connect_names(number: int, count: int) -> None:
    """A bridge that the controller is on, and a cable from it into the namespace of each host."""
    bridge = f"pb{number}"
    lines = [
        f"link add {bridge} type bridge",
        f"address add 10.97.{number}.1/24 dev {bridge}",
        f"link set {bridge} up",
    ]
    for index in range(1, count + 1):
        inside, outside = f"pb{number}h{index}", f"pb{number}v{index}"
        lines += [
            f"netns add {inside}",
            f"link add {outside} type veth peer name eth0 netns {inside}",
            f"link set {outside} master {bridge} up",
        ]
    ip_batch(lines)
    for index in range(1, count + 1):
        inside = ["-n", f"pb{number}h{index}"]
        address = f"10.97.{number}.{FIRST_ADDRESS + index - 1}/24"
        ip_batch([f"address add {address} dev eth0", "link set eth0 up"], *inside)


def remove_names(number: int) -> None:
    """`ip netns del` can leave the cable: so cables first, then namespaces, then the bridge."""
    named = re.compile(rf"pb{number}(?:[hv]\d+)?")
    shown = subprocess.run(["ip", "-json", "link", "show"], check=True, capture_output=True).stdout
    links = [link["ifname"] for link in json.loads(shown) if named.fullmatch(link["ifname"])]
    spaces = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in spaces.splitlines() if line.split()]
    lines = [f"link delete {link}" for link in sorted(links, reverse=True)]
    lines += [f"netns delete {name}" for name in names if named.fullmatch(name)]
    if lines:
        ip_batch(lines, "-force")


def ip_batch(lines: list[str], *options: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        ["ip", *options, "-batch", "-"], input=text, text=True, capture_output=True, check=False
    )
    if done.returncode != 0 and "-force" not in options:
        raise RuntimeError(f"ip refused: {done.stderr}")


@contextlib.contextmanager
def loopback(number: int, count: int, folder: Path, options: Mapping[str, str]) -> Iterator[list[Place]]:
    """Where namespaces are refused: an sshd per loopback address, with one file system and process table."""
    import getpass

    processes: list[subprocess.Popen[bytes]] = []
    public = make_key(folder / KEY_NAME, "bed")
    (folder / "authorized_keys").write_text(public + "\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    try:
        places = []
        for index in range(1, count + 1):
            name, address = f"h{index}", f"127.97.{number}.{FIRST_ADDRESS + index - 1}"
            own = folder / name
            (own / "home").mkdir(parents=True)
            host_key = make_key(own / "host_key", name)
            port = LOOPBACK_PORT + number
            told = {
                "ListenAddress": f"{address}:{port}",
                "HostKey": str(own / "host_key"),
                "AuthorizedKeysFile": str(folder / "authorized_keys"),
                "StrictModes": "no",
                "PermitRootLogin": "prohibit-password",
            }
            (own / "sshd_config").write_text(sshd_config({**told, **options}))
            with (own / "sshd.log").open("wb") as log:
                command = [*END_WITH_US, SSHD, "-D", "-e", "-f", str(own / "sshd_config")]
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            processes.append(process)
            line, root = f"[{address}]:{port} {host_key}", str(own / "home" / ".panda")
            places.append(Place(name, address, port, getpass.getuser(), root, line, process.pid))
        yield places
    finally:
        for process in processes:
            for pid in (*descendants(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def wait_until_ready(places: list[Place]) -> None:
    end = time.monotonic() + READY_S
    for place in places:
        while not shows_banner(place):
            if time.monotonic() > end:
                raise RuntimeError(f"{place.name} at {place.address} does not answer")
            time.sleep(0.02)


def shows_banner(place: Place) -> bool:
    try:
        with socket.create_connection((place.address, place.port), timeout=1.0) as opened:
            return opened.recv(4) == b"SSH-"
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found
