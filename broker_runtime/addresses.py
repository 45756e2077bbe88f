"""Decides how brokers are addressed: `host:port`, `[v6]:port` or `socket://host:port/ID`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_URI: Final = re.compile(r"(?:socket|tcp)://(?P<rest>[^/]+)(?:/(?P<id>[^/]*))?", re.IGNORECASE)
PORT_MAX: Final = 65_535


class Address(NamedTuple):
    host: str
    port: int
    id: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """ValueError says what is wrong and what would be right."""
    match = _URI.fullmatch(text.strip())
    rest, id_ = (match["rest"], match["id"] or "") if match else (text.strip(), "")
    host, colon, port = rest.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is not an address: write host:port or socket://host:port/ID")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} is not an address: put an IPv6 host in brackets, [::1]:10000")
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is not an address: the port is a number from 0 to {PORT_MAX}")
    return Address(host, int(port), id_)
