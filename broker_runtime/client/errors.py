"""Decides what a program is told when something does not work.

    ClientError
    ├── Unreachable            nobody answered at the address within the time allowed
    │   └── WrongBroker        another broker than the one whose id the address names
    ├── NotAdmitted            the broker will not have this client, now or later (code)
    │   ├── WrongToken
    │   ├── IdInUse
    │   └── VersionMismatch
    ├── MessageRefused         the broker did not take one message (id, code)
    │   └── NotAdvertised
    ├── PublicationLost        the session ended first: whether it was routed is unknown (id)
    ├── NotAllPublished        `flush` found some of the two above (errors, count)
    ├── QueueFull              `publish_soon` without room: await `drain` first
    ├── ControlFailed          a broker answered a control command with an error
    ├── NoAnswer               no reply to a control command in time
    └── ClientClosed           the client was closed while this was waiting, or before

Text that is not of the language raises `broker_runtime.language.LanguageError`, and content that is no
publication raises ValueError; both before anything is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

_ERRNO: Final = re.compile(r"\[Errno (-?[0-9]+)\] *(.*)", re.DOTALL)


class ClientError(Exception):
    """Everything that a client raises about the network."""


class Unreachable(ClientError):
    pass


class WrongBroker(Unreachable):
    def __init__(self, address: str, wanted: str, found: str) -> None:
        super().__init__(f"the broker at {address} is {found}, not {wanted}")
        self.broker = found


class NotAdmitted(ClientError):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class WrongToken(NotAdmitted):
    pass


class IdInUse(NotAdmitted):
    pass


class VersionMismatch(NotAdmitted):
    pass


class MessageRefused(ClientError):
    def __init__(self, id_: str, code: str, message: str) -> None:
        super().__init__(message)
        self.id = id_
        self.code = code


class NotAdvertised(MessageRefused):
    pass


class PublicationLost(ClientError):
    def __init__(self, id_: str) -> None:
        super().__init__(
            f"the session ended before {id_} was acknowledged: it may or may not have been routed"
        )
        self.id = id_


class NotAllPublished(ClientError):
    """`errors` holds the first of them, `count` says how many there were."""

    def __init__(self, errors: Sequence[ClientError], count: int) -> None:
        super().__init__(f"{count} publications failed; the first: {errors[0]}")
        self.errors = tuple(errors)
        self.count = count


class QueueFull(ClientError):
    pass


class ControlFailed(ClientError):
    def __init__(self, broker: str, message: str) -> None:
        super().__init__(f"{broker}: {message}")
        self.broker = broker


class NoAnswer(ClientError):
    pass


class ClientClosed(ClientError):
    pass


_NOT_ADMITTED = {"AUTHENTICATION": WrongToken, "ID_IN_USE": IdInUse, "VERSION": VersionMismatch}


def not_admitted(code: str, message: str) -> NotAdmitted:
    return _NOT_ADMITTED.get(code, NotAdmitted)(code, message)


def message_refused(id_: str, code: str, message: str) -> MessageRefused:
    cls = NotAdvertised if code == "NOT_ADVERTISED" else MessageRefused
    return cls(id_, code, message)


def plain_reason(reason: str) -> str:
    """What the system says, without its numbers: `Connection refused`."""
    found = _ERRNO.search(reason)
    if found is None:
        return "no answer" if reason == "TimeoutError" else reason
    number = int(found[1])
    return os.strerror(number) if number > 0 else found[2]
