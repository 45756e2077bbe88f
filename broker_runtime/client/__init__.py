"""The front door for programs: connect, advertise, subscribe, publish; steer brokers and trace messages.

    async with connect("127.0.0.1:10000", id="S0") as client:
        quotes = await client.subscribe("[class,eq,'STOCK'],[price,>,50]")
        async for notification in quotes:
            print(notification.content)

`BlockingClient` offers the same verbs to programs without asyncio. The errors are drawn in `errors`.
"""

from __future__ import annotations

from pathlib import Path

from broker_runtime.client.blocking import BlockingClient, BlockingSubscription
from broker_runtime.client.connection import Client
from broker_runtime.client.control import BrokerInfo, Step, Trace
from broker_runtime.client.errors import (
    ClientClosed,
    ClientError,
    ControlFailed,
    IdInUse,
    MessageRefused,
    NoAnswer,
    NotAdmitted,
    NotAdvertised,
    NotAllPublished,
    PublicationLost,
    QueueFull,
    Unreachable,
    VersionMismatch,
    WrongBroker,
    WrongToken,
)
from broker_runtime.client.handles import AdvertisementHandle, SubscriptionHandle
from broker_runtime.client.options import Change, ClientOptions
from broker_runtime.client.tokens import find_token
from broker_runtime.client_core import Connected, Disconnected, Noticed, Notification
from broker_runtime.link.session import LinkSettings, Policy

__all__ = [
    "AdvertisementHandle",
    "BlockingClient",
    "BlockingSubscription",
    "BrokerInfo",
    "Change",
    "Client",
    "ClientClosed",
    "ClientError",
    "ClientOptions",
    "Connected",
    "ControlFailed",
    "Disconnected",
    "IdInUse",
    "LinkSettings",
    "MessageRefused",
    "NoAnswer",
    "NotAdmitted",
    "NotAdvertised",
    "NotAllPublished",
    "Noticed",
    "Notification",
    "Policy",
    "PublicationLost",
    "QueueFull",
    "Step",
    "SubscriptionHandle",
    "Trace",
    "Unreachable",
    "VersionMismatch",
    "WrongBroker",
    "WrongToken",
    "connect",
    "find_token",
]


def connect(
    address: str,
    id: str = "",  # noqa: A002 — the word that users know
    *,
    token: str = "",
    token_file: Path | str | None = None,
    options: ClientOptions | None = None,
) -> Client:
    """A client of the broker at `host:port`: `async with connect(…) as c`, or `c = await connect(…)`."""
    return Client(address, id, find_token(token, token_file), options or ClientOptions())
