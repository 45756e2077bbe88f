"""Decides whether two ends may talk: versions, roles, ids, and proof of the shared token.

The token never crosses the wire: each side proves it with an HMAC over the other's challenge.
"""

from __future__ import annotations

import hmac
import re
from typing import Final

from broker_runtime.wire.frames import PROTOCOL_VERSION, Greeting, Hello, Welcome, WireError

CHALLENGE_BYTES: Final = 16
STAMP_MAX: Final = 1 << 53  # a clock beyond it is no clock: it would soon not fit into a frame
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def proof(token: str, purpose: str, challenge: bytes, *names: str) -> bytes:
    text = b"|".join((purpose.encode(), challenge, *(name.encode() for name in names)))
    return hmac.digest(token.encode(), text, "sha256") if token else b""


def check_version(version: int) -> None:
    if version != PROTOCOL_VERSION:
        raise WireError("VERSION", f"protocol version {version}; this side speaks {PROTOCOL_VERSION}")


def check_stamp(stamp: int) -> None:
    if not 0 <= stamp < STAMP_MAX:
        raise WireError("BAD_HELLO", f"a stamp is between 0 and {STAMP_MAX}")


def check_greeting(greeting: Greeting, own_id: str, token: str) -> None:
    check_version(greeting.version)
    if not _ID.fullmatch(greeting.broker):
        raise WireError("BAD_ID", "a broker's id has 1 to 64 letters, digits, '.', '_' or '-'")
    if greeting.broker == own_id:
        raise WireError("SELF", f"{own_id} dialled itself or another broker of the same id")
    if greeting.token_required and not token:
        raise WireError("AUTHENTICATION", "the broker wants a token and none was given")


def check_hello(hello: Hello, own_id: str, challenge: bytes, token: str) -> None:
    check_version(hello.version)
    if hello.role not in ("broker", "client"):
        raise WireError("BAD_HELLO", "the role is neither broker nor client")
    if not _ID.fullmatch(hello.id):
        raise WireError("BAD_ID", "an id has 1 to 64 letters, digits, '.', '_' or '-'")
    if hello.id == own_id:
        raise WireError("SELF", f"the id {own_id} is this broker's own")
    if not _ID.fullmatch(hello.incarnation) or len(hello.incarnation) > 32:
        raise WireError("BAD_HELLO", "the incarnation is missing or malformed")
    if hello.queue_length_max < 0:
        raise WireError("BAD_HELLO", "a queue has no negative length")
    check_stamp(hello.stamp)
    if token and not hmac.compare_digest(hello.proof, proof(token, "hello", challenge, hello.id, own_id)):
        raise WireError("AUTHENTICATION", "the token is missing or wrong")


def check_welcome(welcome: Welcome, broker: str, challenge: bytes, token: str) -> None:
    check_stamp(welcome.stamp)
    if token and not hmac.compare_digest(welcome.proof, proof(token, "welcome", challenge, broker)):
        raise WireError("AUTHENTICATION", "the broker does not know the token")
