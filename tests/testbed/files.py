"""What a host of the bed finds on its disk, and what a controller is told about the bed; starts nothing."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

USER = "panda"
USER_ID = 19770
KEY_NAME = "id_ed25519"


@dataclass(frozen=True, slots=True)
class Place:
    """One host, as the keeper describes it; `pid` is the process whose end is the host's end.

    An `enclosed` host has files and processes of its own; one with a `link`, a network of its own too.
    """

    name: str
    address: str
    port: int
    user: str
    root: str
    known_hosts_line: str
    pid: int
    link: str = ""
    enclosed: bool = False


def make_key(path: Path, comment: str) -> str:
    """A fresh key pair; gives the public half."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    kind, text = path.with_suffix(".pub").read_text().split()[:2]
    return f"{kind} {text}"


def sshd_config(options: Mapping[str, str]) -> str:
    chosen = {
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "UseDNS": "no",
        "PrintMotd": "no",
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
        **options,
    }
    return "".join(f"{name} {value}\n" for name, value in chosen.items())


def lay_out(files: Path, name: str, host_key: Path, public: str, options: Mapping[str, str]) -> None:
    """The files of one host that differ from this machine's; only here does the user exist."""
    home = files / "home" / USER
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    (home / ".ssh" / "authorized_keys").write_text(public + "\n")
    for path in (home, home / ".ssh", home / ".ssh" / "authorized_keys"):
        os.chown(path, USER_ID, USER_ID)
    home.chmod(0o755)
    etc = files / "etc"
    (etc / "ssh").mkdir(parents=True)
    for table, line in (
        ("passwd", f"{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:/bin/sh"),
        ("group", f"{USER}:x:{USER_ID}:"),
        ("hosts", f"127.0.1.1 {name}"),
        ("shadow", f"{USER}:*:19000:0:99999:7:::"),
    ):
        (etc / table).write_text(Path("/etc", table).read_text().rstrip("\n") + f"\n{line}\n")
    (etc / "shadow").chmod(0o600)
    (etc / "sudoers.d").mkdir(mode=0o750)
    (etc / "sudoers.d" / USER).write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (etc / "sudoers.d" / USER).chmod(0o440)
    inside = etc / "ssh" / "bed_host_key"
    inside.write_bytes(host_key.read_bytes())
    inside.chmod(0o600)
    told = {"HostKey": "/etc/ssh/bed_host_key", "AllowUsers": USER, "PermitRootLogin": "no", **options}
    (etc / "ssh" / "bed_config").write_text(sshd_config(told))
    (etc / "nologin").unlink(missing_ok=True)


def describe(folder: Path, places: Sequence[Place]) -> None:
    """Writes inventory.yml, ssh_config and known_hosts for a controller."""
    key = folder / KEY_NAME
    hosts = {
        place.name: {
            "ansible_host": place.address,
            "ansible_port": place.port,
            "ansible_user": place.user,
            "ansible_ssh_private_key_file": str(key),
        }
        for place in places
    }
    # JSON is YAML too.
    (folder / "inventory.yml").write_text(json.dumps({"all": {"hosts": hosts}}, indent=2) + "\n")
    (folder / "known_hosts").write_text("".join(f"{place.known_hosts_line}\n" for place in places))
    blocks = [
        f"Host {place.name} {place.address}\n  HostName {place.address}\n  Port {place.port}\n"
        f"  User {place.user}\n  IdentityFile {key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder / 'known_hosts'}\n"
        for place in places
    ]
    (folder / "ssh_config").write_text("\n".join(blocks))
