"""Decides what a program may choose about its client, beside address, id and token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from broker_runtime.client_core import Connected, Disconnected, Noticed
from broker_runtime.link.session import LinkSettings, Policy

Change = Connected | Disconnected | Noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    connect_timeout_s: float = 10.0  # how long an unreachable broker is dialled at first
    notifications_max: int = 10_000  # held for the program; beyond it the broker has to wait
    policy: Policy = Policy.BLOCK  # what the broker does when this client does not keep up
    broker_queue_length_max: int = 0  # of the broker's queue for this client; 0 takes the broker's own
    on_change: Callable[[Change], None] | None = None
    on_wait: Callable[[str], None] | None = None  # told why, once, when the first attempt to connect fails
    log: Path | None = None
    log_every: int = 0  # log each publication whose number is a multiple; 0 logs none, 1 all
    run: str = ""
    link: LinkSettings = field(default_factory=LinkSettings)
