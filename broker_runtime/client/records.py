"""Decides what a client logs: its publications when acknowledged, its notifications when they come."""

from __future__ import annotations

from broker_runtime import VERSION
from broker_runtime.client_core import Connected, Disconnected, Noticed, Notification
from broker_runtime.net.clock import now
from broker_runtime.net.logs import LogWriter


class Recorder:
    """One client's log lines; publications are sampled by their number."""

    def __init__(self, log: LogWriter, client: str, log_every: int) -> None:
        self._log = log
        self._client = client
        self._every = log_every
        self._published: dict[str, float] = {}  # sampled publications without acknowledgement
        log.write("start", {"version": VERSION, "client": client})

    def published(self, id_: str, at: float) -> None:
        if self._every and _number(id_) % self._every == 0:
            self._published[id_] = at

    def failed(self, id_: str) -> None:
        self._published.pop(id_, None)

    def acknowledged(self, id_: str) -> None:
        if self._published:
            at = self._published.pop(id_, None)
            if at is not None:
                fields = {"id": id_, "client": self._client, "time": at, "ack_s": round(now() - at, 6)}
                self._log.write("publish", fields)

    def delivered(self, notification: Notification) -> None:
        if self._every and _number(notification.id) % self._every == 0:
            self._log.write(
                "deliver",
                {
                    "id": notification.id,
                    "client": self._client,
                    "hops": notification.hops,
                    "time": notification.time,
                    "latency_s": round(now() - notification.time, 6),
                    "subscriptions": len(notification.subscriptions),
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


def _number(id_: str) -> int:
    return int(id_.rpartition(":")[2])
