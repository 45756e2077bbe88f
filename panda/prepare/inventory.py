"""Decides how Ansible is told about our hosts: an inventory, and an ssh_config that checks keys. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from panda.hosts.host import PORT, Host

CONNECT_TIMEOUT_S = 15


class CannotPrepare(ValueError):
    """A host that Ansible cannot be told about."""


def inventory(hosts: Sequence[Host], ssh_config: Path, local_python: str) -> str:
    """Our names stay the names, so that what Ansible reports can be matched to them."""
    entries = {host.name: _variables(host, ssh_config, local_python) for host in hosts}
    for name, variables in entries.items():
        for value in (name, *variables.values()):
            if isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#")):
                raise CannotPrepare(f"{name}: Ansible would take {value!r} for a template")
    return json.dumps({"all": {"hosts": entries}}, indent=1)


def ssh_config(hosts: Sequence[Host], known_hosts: Sequence[Path], includes: Sequence[Path]) -> str:
    """Every connection, those to jump hosts as well, reads this file: ssh hands `-F` on to them."""
    lines = [
        "Host *",
        f"  UserKnownHostsFile {' '.join(_literal(path) for path in known_hosts)}",
        "  StrictHostKeyChecking yes",
        "  UpdateHostKeys no",
        "  BatchMode yes",
        "  PasswordAuthentication no",
        f"  ConnectTimeout {CONNECT_TIMEOUT_S}",
        "  ServerAliveInterval 5",
        "  ServerAliveCountMax 3",
    ]
    for host in hosts:
        for hop in host.jump.split(",") if host.jump and host.keys else []:
            name = hop.rpartition("@")[2]
            name = name[1 : name.find("]")] if name.startswith("[") else name.partition(":")[0]
            lines += [
                f"Host {_quoted(name)}",
                *(f"  IdentityFile {_literal(_here(key))}" for key in host.keys),
            ]
    lines += ["Match all", *(f"Include {_quoted(str(path.absolute()))}" for path in includes)]
    return "\n".join(lines) + "\n"


def _variables(host: Host, ssh_config: Path, local_python: str) -> dict[str, object]:
    variables: dict[str, object] = {"panda_root": host.root, "ansible_remote_tmp": "/tmp"}  # noqa: S108
    if host.local:
        return {**variables, "ansible_connection": "local", "ansible_python_interpreter": local_python}
    variables["ansible_host"] = host.where
    variables["ansible_ssh_common_args"] = shlex.join(["-F", str(ssh_config)])
    if host.port != PORT:
        variables["ansible_port"] = host.port
    if host.user:
        variables["ansible_user"] = host.user
    if host.keys:
        variables["ansible_ssh_private_key_file"] = str(_here(host.keys[0]))
    extra = [word for key in host.keys[1:] for word in ("-i", str(_here(key)))]
    if host.jump:
        extra += ["-J", host.jump]
    if extra:
        variables["ansible_ssh_extra_args"] = shlex.join(extra)
    if host.python != "python3":
        variables["ansible_python_interpreter"] = host.python
    else:
        variables["ansible_python_interpreter"] = "auto_silent"
    return variables


def _here(path: str) -> Path:
    """Ansible runs in a folder of its own, so a relative path would mean another file there."""
    return Path(path).expanduser().absolute()


def _literal(path: Path) -> str:
    return _quoted(str(path.absolute()).replace("%", "%%"))


def _quoted(word: str) -> str:
    if '"' in word or not word.isprintable():
        raise CannotPrepare(f"ssh_config cannot name {word!r}")
    return f'"{word}"'
