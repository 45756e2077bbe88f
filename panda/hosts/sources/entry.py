"""Decides what a source may say about a host: the fields, their spelling and their limits. Reads no files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from panda.hosts.host import PORT, ROOT, Host
from panda.hosts.sources.refusal import shown

HOSTS_MAX = 65_536
NAME_LENGTH_MAX = 253
PATH_LENGTH_MAX = 4096
JUMPS_MAX = 8
PYTHON = "python3"

# No field that ends up beside ssh's or Ansible's options may begin like an option.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+\\-]*\$?")
_JUMP = re.compile(
    r"(?:(?P<user>[^@,]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^@,:\[\]]+)(?::(?P<port>[0-9]{1,5}))?"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one source says about one host; what it does not say is empty."""

    name: str
    address: str = ""
    port: int = 0
    user: str = ""
    keys: tuple[str, ...] = ()
    jump: str = ""
    root: str = ""
    python: str = ""
    local: bool = False
    aliases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def host(self, name: str) -> Host:
        """The host under the name that a topology calls it by."""
        return Host(
            name=name,
            address=self.address or self.name,
            port=self.port or PORT,
            user=self.user,
            keys=self.keys,
            jump=self.jump,
            root=self.root or ROOT,
            python=self.python or PYTHON,
            local=self.local,
        )


def name_problem(text: str) -> str:
    """Why this is no host name or address; empty if it is one."""
    if not text:
        return "a host without a name"
    if len(text) > NAME_LENGTH_MAX:
        return f"a host name longer than {NAME_LENGTH_MAX} characters: {shown(text)}"
    if not _NAME.fullmatch(text):
        return f"not a host name or address: {shown(text)}"
    return ""


def user_problem(text: str) -> str:
    if len(text) > NAME_LENGTH_MAX or not _USER.fullmatch(text):
        return f"not a user name: {shown(text)}"
    return ""


def path_problem(text: str) -> str:
    if not text or len(text) > PATH_LENGTH_MAX or _CONTROL.search(text) or text.startswith("-"):
        return f"not a path: {shown(text)}"
    return ""


def port_number(text: str) -> int:
    """The port that a text says; 0 if it says none."""
    if re.fullmatch(r"[0-9]{1,5}", text) and 1 <= int(text) <= 65_535:
        return int(text)
    return 0


def jump_problem(text: str) -> str:
    """Why this is no `[user@]host[:port]`, several separated by commas; empty if it is."""
    hops = text.split(",")
    if len(hops) > JUMPS_MAX:
        return f"more than {JUMPS_MAX} jump hosts in a row"
    for hop in hops:
        parts = _JUMP.fullmatch(hop)
        if not parts or name_problem(parts["host"].strip("[]")):
            return f"not a jump host: {shown(hop)}"
        if parts["user"] is not None and user_problem(parts["user"]):
            return f"not a jump host: {shown(hop)}"
        if parts["port"] is not None and not port_number(parts["port"]):
            return f"not a jump host: {shown(hop)}"
    return ""
