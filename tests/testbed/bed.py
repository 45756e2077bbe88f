"""A bed and its hosts, as a test or a person uses them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from panda.hosts.config import SshConfig
from panda.hosts.host import Host
from panda.hosts.keys import KnownHosts
from tests.testbed.files import KEY_NAME, USER, USER_ID, Place
from tests.testbed.keeper import can_have_namespaces, descendants

CHECKOUT = Path(__file__).resolve().parents[2]
END_S = 30.0
NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class BedHost:
    place: Place
    key_file: Path

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def address(self) -> str:
        return self.place.address

    @property
    def port(self) -> int:
        return self.place.port

    @property
    def user(self) -> str:
        return self.place.user

    @property
    def known_hosts_line(self) -> str:
        return self.place.known_hosts_line

    @property
    def host(self) -> Host:
        """The same for `connect`."""
        place = self.place
        return Host(
            place.name, place.address, place.port, place.user, keys=(str(self.key_file),), root=place.root
        )

    def freeze(self) -> None:
        """Every sshd of the host stands still: connections are accepted by the kernel and by nobody else."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def vanish(self) -> None:
        """The cable is pulled: no answer, not even a refusal."""
        if self.place.link:
            subprocess.run(["ip", "link", "set", self.place.link, "down"], check=True)
        else:
            self.freeze()

    def reappear(self) -> None:
        if self.place.link:
            subprocess.run(["ip", "link", "set", self.place.link, "up"], check=True)
        else:
            self.thaw()

    def run_inside(
        self, argv: Sequence[str], *, as_user: bool = False, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a program on the host without SSH: as root, or as the user that logs in."""
        command = list(argv)
        if self.place.enclosed:
            become = ["setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--init-groups"]
            become += ["env", f"HOME=/home/{USER}", f"USER={USER}"]
            command = [*self.entrance(), *(become if as_user else []), *command]
        return subprocess.run(
            command, check=check, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=END_S
        )

    def processes(self) -> list[int]:
        """Of everything that runs on the host, as this machine numbers them."""
        return descendants(self.place.pid)

    def entrance(self) -> list[str]:
        first = descendants(self.place.pid)[0]
        return ["nsenter", f"--target={first}", "--all", "--wd=/"]

    def _signal(self, number: signal.Signals) -> None:
        for pid in (*self.processes(), *([] if self.place.enclosed else [self.place.pid])):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd"):
                    os.kill(pid, number)


class Bed:
    """`with Bed(4, folder) as bed:`; the folder must not hold another bed."""

    def __init__(
        self,
        count: int,
        folder: Path,
        *,
        kind: str = "",
        options: Mapping[str, str] = NO_OPTIONS,
        remove: bool = False,
    ) -> None:
        self.folder = folder.absolute()
        self.kind = kind or ("namespaces" if can_have_namespaces() else "loopback")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / "keeper.log"
        words = ["keep", "--hosts", str(count), "--folder", str(self.folder), "--kind", self.kind]
        words += ["--remove"] if remove else []
        with self._log.open("wb") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.testbed", *words, "--options", json.dumps(dict(options))],
                cwd=CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # a ^C is the owner's; the keeper notices when the owner ends
            )
        assert self._keeper.stdout is not None
        said = self._keeper.stdout.readline()
        if not said:
            self._keeper.wait(END_S)
            why = self._log.read_text()[-2000:] if self._log.exists() else "its folder is removed"
            self.close()
            raise RuntimeError(f"no bed: {why}")
        self.hosts = [BedHost(Place(**told), self.folder / KEY_NAME) for told in json.loads(said)]

    @property
    def inventory_file(self) -> Path:
        return self.folder / "inventory.yml"

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def keys(self) -> KnownHosts:
        """For `connect`: knows the hosts of the bed, and nothing of this machine's own files."""
        return KnownHosts(self.known_hosts, files=(), config=SshConfig(files=()))

    def environment(self) -> dict[str, str]:
        """What makes a `panda` command know the bed."""
        return {"PANDA_KNOWN_HOSTS": str(self.known_hosts), "PANDA_SSH_CONFIG": str(self.ssh_config)}

    def heal(self) -> None:
        for host in self.hosts:
            host.thaw()
            host.reappear()

    def close(self) -> None:
        keeper = self._keeper
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        try:
            keeper.wait(END_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
        keeper.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
