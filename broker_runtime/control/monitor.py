"""Decides what a broker publishes about itself, and carries out what BROKER_CONTROL asks of it.

The monitor is the broker's own client, at a hop named like the broker: it advertises BROKER_INFO and
BROKER_TRACE, subscribes to BROKER_CONTROL for this broker and for every broker, and is reached and heard
like any other client.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from broker_runtime import VERSION
from broker_runtime.control.words import BROKER_CONTROL, BROKER_INFO, BROKER_TRACE, EVERY_BROKER
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.language.predicates import Op, predicate
from broker_runtime.language.printing import print_advertisement, print_subscription
from broker_runtime.language.values import Type, Value
from broker_runtime.link.session import CONTROL_LANE, DATA_LANE, Role
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import (
    Advertise,
    ExtendedHead,
    Flag,
    Head,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    decode_publication,
    encode_publication,
)

if TYPE_CHECKING:
    from broker_runtime.broker import Broker

INFO_ATTRIBUTES: Final = (
    "request",
    "reply",
    "error",
    "state",
    "version",
    "address",
    "uptime_s",
    "neighbours",
    "clients",
    "neighbour_count",
    "client_count",
    "subscriptions",
    "advertisements",
    "publications",
    "unwanted",
    "rate_in",
    "rate_out",
    "queue_length",
    "queueing_ms",
    "matching_us",
    "memory_bytes",
    "dropped",
)
TRACE_ATTRIBUTES: Final = ("id", "from", "to", "hops", "time")
TABLE_ENTRIES_MAX: Final = 2_000
NAMES_MAX: Final = 200
RATE_WINDOW_S: Final = 1.0


class Monitor:
    """A broker's own publisher and subscriber."""

    def __init__(self, broker: Broker, now: float) -> None:
        self._broker = broker
        self._source = f"{broker.id}:{broker.settings.incarnation}"
        self._number = 0
        self._started = now
        self._status_at = now + broker.settings.status_every_s
        self._counted = (now, 0, 0)  # when, records in, records out
        self._rates = (0.0, 0.0)
        for kind, attributes in ((BROKER_INFO, INFO_ATTRIBUTES), (BROKER_TRACE, TRACE_ATTRIBUTES)):
            self._announce(kind, attributes)
        wanted = Subscription(
            (
                predicate(CLASS, Op.EQ, BROKER_CONTROL),
                predicate("broker", Op.IN, (broker.id, EVERY_BROKER)),
                predicate("command", Op.PRESENT, Type.STRING),
            )
        )
        broker.forward(broker.inject(Subscribe(self._next_id(), wanted), broker.id))
        broker.endpoint.soon(self._status_at)

    def tick(self, now: float) -> float:
        """Publish the status when it is due; when to come again."""
        if now >= self._status_at:
            self._status_at = now + self._broker.settings.status_every_s
            self.publish(self.status(now), now)
        return self._status_at

    def status(self, now: float) -> dict[str, Value]:
        broker = self._broker
        sessions = list(broker.endpoint.sessions.values())
        neighbours = [
            f"{s.peer}:{'up' if s.connection is not None else 'down'}"
            for s in sessions
            if s.role is Role.BROKER
        ]
        clients = [s.peer for s in sessions if s.role is Role.CLIENT]
        rate_in, rate_out = self._current_rates(now)
        return {
            "state": "paused" if broker.paused else "running",
            "version": VERSION,
            "address": broker.settings.address,
            "uptime_s": round(now - self._started, 3),
            "neighbours": ",".join(neighbours[:NAMES_MAX]),
            "clients": ",".join(clients[:NAMES_MAX]),
            "neighbour_count": len(neighbours),
            "client_count": len(clients),
            "subscriptions": len(broker.router.subscriptions),
            "advertisements": len(broker.router.advertisements),
            "publications": broker.intake.publications,
            "unwanted": broker.intake.unwanted,
            "rate_in": round(rate_in, 3),
            "rate_out": round(rate_out, 3),
            "queue_length": sum(len(s.data.unsent) for s in sessions),
            "queueing_ms": round(1e3 * broker.endpoint.queueing_s / max(1, broker.intake.publications), 6),
            "matching_us": round(1e6 * broker.intake.matching_s / max(1, broker.intake.matchings), 3),
            "memory_bytes": broker.instruments.memory(),
            "dropped": sum(s.dropped for s in sessions),
        }

    def trace(
        self, head: Head | ExtendedHead, came_from: str, goes_to: list[str], hops: int, now: float
    ) -> None:
        """Report that a traced publication came by (O7)."""
        if head.content.get(CLASS) == BROKER_TRACE:
            return
        report: dict[str, Value] = {
            "id": f"{head.source}:{head.number}",
            "from": came_from,
            "to": ",".join(goes_to),
            "hops": hops,
            "time": now,
        }
        self.publish(report, now, kind=BROKER_TRACE)

    def obey(self, head: Head | ExtendedHead, payload: bytes, now: float) -> None:
        """Carry out a BROKER_CONTROL publication and say so in a BROKER_INFO."""
        content: dict[str, Value] = dict(head.content)
        if content.get(CLASS) != BROKER_CONTROL:
            return
        command = str(content["command"])
        reply: dict[str, Value] = {"request": str(content.get("request", "")), "reply": command}
        action = self._actions().get(command)
        answer = b""
        try:
            if action is None:
                raise ValueError(f"unknown command {command!r}; known are {', '.join(self._actions())}")
            answer = action(content, payload, now)
        except (ValueError, WireError) as error:
            reply["error"] = str(error)
        self.publish({**self.status(now), **reply}, now, payload=answer)
        if command == "shutdown" and "error" not in reply:
            self._broker.stop("shut down by BROKER_CONTROL", now)

    def publish(
        self, content: dict[str, Value], now: float, kind: str = BROKER_INFO, payload: bytes = b""
    ) -> None:
        broker = self._broker
        self._number += 1
        full: dict[str, Value] = {CLASS: kind, "broker": broker.id, **content}
        record = encode_publication(self._source, self._number, now, full, payload, Flag.URGENT)
        head = ExtendedHead(self._source, self._number, now, full)
        hops_to = broker.router.destinations(full, broker.id)
        broker.intake.queue(head, payload, hops_to, record, CONTROL_LANE, now)

    def _actions(self) -> dict[str, Callable[[dict[str, Value], bytes, float], bytes]]:
        return {
            "info": lambda content, payload, now: b"",
            "tables": lambda content, payload, now: self._tables(),
            "links": lambda content, payload, now: msgspec.json.encode(self._link_rows()[:NAMES_MAX]),
            "pause": lambda content, payload, now: self._pause(),
            "resume": lambda content, payload, now: self._resume(),
            "shutdown": lambda content, payload, now: b"",
            "cut": lambda content, payload, now: self._cut(str(content.get("peer", "")), now),
            "inject": self._inject,
        }

    def _pause(self) -> bytes:
        self._broker.pause()
        return b""

    def _resume(self) -> bytes:
        self._broker.resume()
        return b""

    def _cut(self, peer: str, now: float) -> bytes:
        session = self._broker.endpoint.sessions.get(peer)
        if session is None:
            raise ValueError(f"{peer!r} is no neighbour or client of {self._broker.id}")
        self._broker.endpoint.cut(session, now)
        return b""

    def _tables(self) -> bytes:
        """Routing tables and links as JSON, as many entries of each as fit into a record (O4)."""
        entries_max = TABLE_ENTRIES_MAX
        while len(tables := self._tables_of(entries_max)) > self._broker.settings.link.record_bytes_max // 2:
            entries_max //= 2
        return tables

    def _tables_of(self, entries_max: int) -> bytes:
        broker = self._broker
        return msgspec.json.encode(
            {
                "advertisements": [
                    {"id": id_, "hop": hop, "text": print_advertisement(body)}
                    for id_, hop, body in broker.router.advertisement_entries(entries_max)
                ],
                "subscriptions": [
                    {"id": id_, "hop": hop, "text": print_subscription(body)}
                    for id_, hop, body in broker.router.subscription_entries(entries_max)
                ],
                "links": self._link_rows(),
                "overlay": [list(edge) for edge in broker.overlay.edges()],
            }
        )

    def _link_rows(self) -> list[dict[str, object]]:
        return [
            {
                "peer": s.peer,
                "role": s.role.value,
                "up": s.connection is not None,
                "records_in": s.records_in,
                "records_out": s.records_out,
                "bytes_in": s.bytes_in,
                "bytes_out": s.bytes_out,
                "queue_length": len(s.data.unsent),
                "in_flight": s.data.sent - s.data.acked,
                "dropped": s.dropped,
                "blocked_on": list(s.blocked_on),
            }
            for s in self._broker.endpoint.sessions.values()
        ]

    def _inject(self, content: dict[str, Value], payload: bytes, now: float) -> bytes:
        """Act on a message as if the broker's own client had sent it (O6)."""
        kind, text = str(content.get("kind", "")), str(content.get("text", ""))
        moment = datetime.fromtimestamp(now, UTC)
        broker = self._broker
        if kind == "publish":
            self._inject_publication(parse_publication(text, now=moment), payload, now)
            return b""
        message: Advertise | Subscribe | Unadvertise | Unsubscribe
        if kind == "advertise":
            message = Advertise(self._next_id(), parse_advertisement(text, now=moment))
        elif kind == "subscribe":
            message = Subscribe(self._next_id(), parse_subscription(text, now=moment))
        elif kind == "unadvertise":
            message = Unadvertise(text)
        elif kind == "unsubscribe":
            message = Unsubscribe(text)
        else:
            raise ValueError("kind is publish, advertise, subscribe, unadvertise or unsubscribe")
        broker.forward(broker.inject(message, broker.id))
        return message.id.encode()

    def _inject_publication(self, content: dict[str, Value], payload: bytes, now: float) -> None:
        broker = self._broker
        self._number += 1
        record = encode_publication(self._source, self._number, now, content, payload)
        head, _ = decode_publication(record[7:], record[5])
        hops_to = broker.router.destinations(content, broker.id)
        broker.intake.queue(head, payload, hops_to, record, DATA_LANE, now)

    def _announce(self, kind: str, attributes: tuple[str, ...]) -> None:
        promised = Advertisement(
            (
                predicate(CLASS, Op.EQ, kind),
                predicate("broker", Op.EQ, self._broker.id),
                *(predicate(name, Op.PRESENT, Type.ANY) for name in attributes),
            )
        )
        self._broker.forward(self._broker.inject(Advertise(self._next_id(), promised), self._broker.id))

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._source}:{self._number}"

    def _current_rates(self, now: float) -> tuple[float, float]:
        """Records per second in and out, over a second or more however often somebody asks."""
        then, in_then, out_then = self._counted
        span = now - then
        if span >= RATE_WINDOW_S:
            sessions = self._broker.endpoint.sessions.values()
            records_in = sum(s.records_in for s in sessions)
            records_out = sum(s.records_out for s in sessions)
            self._counted = (now, records_in, records_out)
            self._rates = (
                max(0.0, (records_in - in_then) / span),  # sessions that ended take their counts along
                max(0.0, (records_out - out_then) / span),
            )
        return self._rates
