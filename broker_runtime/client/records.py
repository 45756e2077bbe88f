"""Decides what a client logs: messages when acknowledged, withdrawals when made, notifications as they come.

What concerns control classes is not logged: steering an experiment is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker_runtime import VERSION
from broker_runtime.client_core import Connected, Disconnected, Noticed, Notification
from broker_runtime.control.words import CONTROL_CLASSES, concerns_control
from broker_runtime.language.messages import CLASS, Advertisement, Subscription, publication_content
from broker_runtime.language.recording import recorded_content, recorded_filter
from broker_runtime.net.clock import now
from broker_runtime.net.logs import LogWriter


class Recorder:
    """One client's log lines; publications are sampled by their number."""

    def __init__(self, log: LogWriter, client: str, log_every: int) -> None:
        self._log = log
        self._client = client
        self._every = log_every
        # What is not acknowledged yet, by id: when it was issued, and what it is. Publications: sampled ones.
        self._published: dict[str, tuple[float, Mapping[str, object]]] = {}
        self._asked: dict[str, tuple[float, Subscription | Advertisement]] = {}
        self._standing: set[str] = set()  # subscriptions and advertisements that were logged
        log.write("start", {"version": VERSION, "client": client})

    def published(self, id_: str, at: float, content: Mapping[str, object]) -> None:
        if self._every and _number(id_) % self._every == 0 and content[CLASS] not in CONTROL_CLASSES:
            self._published[id_] = (at, recorded_content(publication_content(content)))

    def asked(self, id_: str, wanted: Subscription | Advertisement) -> None:
        """A subscription or advertisement is on its way to the broker."""
        if not concerns_control(wanted):
            self._asked[id_] = (now(), wanted)

    def failed(self, id_: str) -> None:
        self._published.pop(id_, None)
        self._asked.pop(id_, None)
        self._standing.discard(id_)

    def acknowledged(self, id_: str) -> None:
        if self._published:
            publication = self._published.pop(id_, None)
            if publication is not None:
                at, content = publication
                fields = {"id": id_, "client": self._client, "time": at, "ack_s": round(now() - at, 6)}
                self._log.write("publish", {**fields, **content})
                return
        if self._asked:
            asked = self._asked.pop(id_, None)
            if asked is not None:
                self._stands(id_, *asked)

    def unsubscribed(self, id_: str) -> None:
        if self._withdrawn(id_):
            self._log.write("unsubscribe", {"id": id_, "client": self._client})

    def unadvertised(self, id_: str) -> None:
        if self._withdrawn(id_):
            self._log.write("unadvertise", {"id": id_, "client": self._client})

    def delivered(self, notification: Notification) -> None:
        if not self._every or _number(notification.id) % self._every:
            return
        if notification.content[CLASS] not in CONTROL_CLASSES:
            self._log.write(
                "deliver",
                {
                    "id": notification.id,
                    "client": self._client,
                    "hops": notification.hops,
                    "time": notification.time,
                    "latency_s": round(now() - notification.time, 6),
                    "subscriptions": len(notification.subscriptions),
                    "to": notification.subscriptions,
                },
            )

    def changed(self, change: Connected | Disconnected | Noticed) -> None:
        if isinstance(change, Connected):
            self._log.write("connected", {"broker": change.broker, "resumed": change.resumed})
        elif isinstance(change, Disconnected):
            self._log.write("disconnected", {"reason": change.reason})
        else:
            fields = {"code": change.code, "message": change.message, "count": change.count}
            self._log.write("notice", fields)

    def _stands(self, id_: str, at: float, wanted: Subscription | Advertisement) -> None:
        self._standing.add(id_)
        fields = {"id": id_, "client": self._client, "ack_s": round(now() - at, 6), **recorded_filter(wanted)}
        if isinstance(wanted, Subscription):
            self._log.write("subscribe", fields)
        else:
            self._log.write("advertise", fields)

    def _withdrawn(self, id_: str) -> bool:
        """Whether its beginning was logged; if not, its end is not either."""
        self._asked.pop(id_, None)
        logged = id_ in self._standing
        self._standing.discard(id_)
        return logged


def _number(id_: str) -> int:
    return int(id_.rpartition(":")[2])
