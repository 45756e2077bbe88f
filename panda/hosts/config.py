"""What ssh_config says of a host, joined with what we know ourselves; opens no connection.

Our own word goes first. Read are `~/.ssh/config` and `/etc/ssh/ssh_config`, or the one file that is given or
named by PANDA_SSH_CONFIG.
"""

import getpass
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from panda.hosts.host import PORT, Host
from panda.hosts.remote import HostError

if TYPE_CHECKING:
    import paramiko

JUMPS_MAX = 5
CONFIG_BYTES_MAX = 2**20
HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^:\[\]\s]+)(?::(?P<port>\d{1,5}))?/?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Everything a connection needs; `known_as` is how the host's key is filed."""

    address: str
    port: int
    user: str
    keys: tuple[str, ...]
    jumps: tuple[Host, ...]
    known_as: str
    agent: bool
    search_keys: bool


class SshConfig:
    def __init__(self, files: Sequence[Path] | None = None) -> None:
        self.files = tuple(default_files() if files is None else files)
        self._parsed: paramiko.SSHConfig | None = None

    def target(self, host: Host) -> Target:
        said = self._lookup(host)
        if said.get("proxycommand") and not host.jump and not said.get("proxyjump"):
            raise HostError(host.name, "ssh_config asks for a ProxyCommand", "panda follows ProxyJump only")
        address = said.get("hostname", host.where)
        port = host.port if host.port != PORT else int(said.get("port", PORT))
        alias = said.get("hostkeyalias")
        only_ours = bool(host.keys) or str(said.get("identitiesonly", "no")).lower() == "yes"
        return Target(
            address=address,
            port=port,
            user=host.user or said.get("user") or getpass.getuser(),
            keys=_identities(host, said.get("identityfile", [])),
            jumps=_hops(host, host.jump or said.get("proxyjump", "")),
            known_as=alias or filed_as(address, port),
            agent=not only_ours and str(said.get("identityagent", "")).lower() != "none",
            search_keys=not only_ours,
        )

    def _lookup(self, host: Host) -> "paramiko.SSHConfigDict":
        import paramiko

        try:
            if self._parsed is None:
                self._parsed = _parse(self.files)
            return self._parsed.lookup(host.where)
        except (paramiko.SSHException, OSError, ValueError) as error:
            raise HostError(host.name, f"ssh_config cannot be read: {error}", _names(self.files)) from error


def default_files() -> tuple[Path, ...]:
    named = os.environ.get("PANDA_SSH_CONFIG")
    if named:
        return (Path(named).expanduser(),)
    return (Path.home() / ".ssh" / "config", Path("/etc/ssh/ssh_config"))


def filed_as(address: str, port: int) -> str:
    """The name under which known_hosts files hold the key."""
    return address.lower() if port == PORT else f"[{address.lower()}]:{port}"


def _parse(files: Sequence[Path]) -> "paramiko.SSHConfig":
    import paramiko

    config = paramiko.SSHConfig()
    for file in files:
        try:
            with file.open("rb") as opened:
                text = opened.read(CONFIG_BYTES_MAX).decode("utf-8", "replace")
        except FileNotFoundError:
            continue
        config.parse(io.StringIO(text))
    return config


def _identities(host: Host, configured: Sequence[str]) -> tuple[str, ...]:
    if not host.keys:
        return tuple(file for file in configured if Path(file).expanduser().is_file())
    ours = tuple(str(Path(file).expanduser()) for file in host.keys)
    missing = [file for file in ours if not Path(file).is_file()]
    if missing:
        raise HostError(host.name, f"there is no key file {missing[0]}")
    return ours


def _hops(host: Host, jump: str) -> tuple[Host, ...]:
    if not jump or jump.lower() == "none":
        return ()
    hops = []
    for text in jump.split(","):
        found = HOP.fullmatch(text.strip())
        if found is None or not 1 <= int(found["port"] or PORT) <= 65535:
            raise HostError(
                host.name, f"not a jump host: {text!r}", "[user@]host[:port], separated by commas"
            )
        name = found["host"].strip("[]")
        # Keys that were given for the host open its jump hosts too, as with `ssh -i … -J`.
        hops.append(Host(name, user=found["user"] or "", port=int(found["port"] or PORT), keys=host.keys))
    if len(hops) > JUMPS_MAX:
        raise HostError(host.name, f"more than {JUMPS_MAX} jump hosts in a row")
    return tuple(hops)


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files)
