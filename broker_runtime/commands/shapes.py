"""Decides how notifications and advertisements look on a command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from broker_runtime.client import Notification
from broker_runtime.language import (
    CLASS,
    Advertisement,
    Op,
    Type,
    Value,
    predicate,
    print_publication,
    write_date,
)


def advertisement_for(content: Mapping[str, Value]) -> Advertisement:
    """The advertisement of publications with this class and these attributes, whatever their values."""
    promised = [predicate(CLASS, Op.EQ, content[CLASS])]
    promised += [predicate(name, Op.PRESENT, Type.ANY) for name in content if name != CLASS]
    return Advertisement(promised)


def notification_text(notification: Notification) -> str:
    payload = f"  ({len(notification.payload)} bytes)" if notification.payload else ""
    return print_publication(notification.content) + payload


def notification_data(notification: Notification) -> dict[str, object]:
    return {
        "id": notification.id,
        "content": content_data(notification.content),
        "payload_bytes": len(notification.payload),
        "time": notification.time,
        "hops": notification.hops,
        "subscriptions": list(notification.subscriptions),
    }


def content_data(content: Mapping[str, Value]) -> dict[str, object]:
    """As JSON can say it: dates as text."""
    return {n: write_date(v) if isinstance(v, datetime) else v for n, v in content.items()}
