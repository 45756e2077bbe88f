"""Decides how brokers are addressed: `host:port`, `[v6]:port` or `socket://host:port/ID`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_URI: Final = re.compile(r"(?:socket|tcp)://(?P<rest>[^/]+)(?:/(?P<id>[^/]*))?", re.IGNORECASE)
PORT_MAX: Final = 65_535


class Address(NamedTuple):
    host: str
    port: int
    id: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def uri(self) -> str:
        """As it is written with the id, if there is one."""
        return f"socket://{self}/{self.id}" if self.id else str(self)


def parse_address(text: str) -> Address:
    """ValueError says what is wrong and what would be right; the caller adds the text."""
    match = _URI.fullmatch(text.strip())
    if match is None and _SCHEME.match(text.strip()):
        raise ValueError("it is no address of a broker: write host:port or socket://host:port/ID")
    rest, id_ = (match["rest"], match["id"] or "") if match else (text.strip(), "")
    host, colon, port = rest.rpartition(":")
    if not colon or not host:
        raise ValueError("it is no address: write host:port or socket://host:port/ID")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("it is no address: put an IPv6 host in brackets, [::1]:10000")
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"it is no address: the port is a number from 0 to {PORT_MAX}")
    return Address(host, int(port), id_)


def parse_target(text: str) -> Address:
    """An address to connect to; ValueError as `parse_address`."""
    address = parse_address(text)
    if not address.port:
        raise ValueError("nobody can be reached at port 0: write the port that the broker listens at")
    return address
