"""Decides how a controller speaks with one agent: requests in order, answers and events as they come.

Two threads serve each session, because a host that hangs must not make anybody else wait: one writes, one
reads. What they learn goes to a `Listener`, which must not block.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from broker_runtime.agent.protocol import (
    BadFrame,
    FrameReader,
    PreambleReader,
    RequestRefused,
    encode,
    request,
    result,
)
from panda.deploy.clocks import Exchange, Offset, offset_of
from panda.hosts.remote import Channel, HostError, Unreachable

READ_BYTES = 1 << 16
REQUEST_TIMEOUT_S = 30.0
HELLO_TIMEOUT_S = 15.0
CLOCK_EXCHANGES = 8

Answer = Callable[[Mapping[str, Any] | Exception], None]


class Listener(Protocol):
    """Told from the session's own threads."""

    def event(self, session: AgentSession, event: Mapping[str, Any]) -> None: ...

    def lost(self, session: AgentSession, reason: str) -> None:
        """Once, unless the session was closed on purpose."""


class AgentSession:
    def __init__(self, host: str, channel: Channel, listener: Listener | None = None) -> None:
        self.host = host
        self.offset: Offset | None = None
        self.hello: Mapping[str, Any] = {}
        self._channel = channel
        self._listener = listener
        self._state = threading.Lock()
        self._number = 0
        self._pending: dict[int, tuple[Answer, list[float]]] = {}
        self._gone = ""
        self._closing = False
        self._exchanges: list[Exchange] = []
        self._out: queue.SimpleQueue[tuple[bytes, list[float]] | None] = queue.SimpleQueue()
        for act, name in ((self._write, "to"), (self._read, "from")):
            threading.Thread(target=act, name=f"{name} {host}", daemon=True).start()

    def open(self, controller: str, *, steer: bool, force: bool = False) -> Mapping[str, Any]:
        """Say hello and compare clocks. RequestRefused when another controller holds the agent."""
        fields = {"controller": controller, "mode": "steer" if steer else "watch", "force": force}
        self.hello = self.request("hello", fields, timeout_s=HELLO_TIMEOUT_S)
        self.compare_clocks()
        return self.hello

    def compare_clocks(self, exchanges: int = CLOCK_EXCHANGES) -> Offset:
        self._exchanges = []
        for _ in range(exchanges):
            self.request("clock")
        self.offset = offset_of(self._exchanges)
        return self.offset

    def request(
        self,
        do: str,
        fields: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Mapping[str, Any]:
        """Ask and wait. RequestRefused, or HostError when there is no answer."""
        answers: queue.SimpleQueue[Mapping[str, Any] | Exception] = queue.SimpleQueue()
        self.ask(do, fields or {}, answers.put)
        try:
            answer = answers.get(timeout=timeout_s)
        except queue.Empty:
            raise Unreachable(self.host, f"its agent did not answer within {timeout_s:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(self, do: str, fields: Mapping[str, Any], answer: Answer) -> None:
        """Ask; the answer, or why there is none, comes later in another thread."""
        with self._state:
            gone = self._gone
            if not gone:
                self._number += 1
                sent: list[float] = [] if do == "clock" else [0.0]
                self._pending[self._number] = (answer, sent)
                self._out.put((encode(request(self._number, do, fields)), sent))
        if gone:
            answer(Unreachable(self.host, gone))

    def close(self) -> None:
        self._closing = True
        self._out.put(None)
        self._channel.close()

    # Threads

    def _write(self) -> None:
        while (item := self._out.get()) is not None:
            data, sent = item
            if not sent:
                sent.append(time.time())
            try:
                self._channel.write(data)
            except HostError as error:
                self._lose(error.reason)
                return

    def _read(self) -> None:
        reader, preamble = FrameReader(), PreambleReader()
        begun = False
        try:
            while data := self._channel.read(READ_BYTES):
                now = time.time()
                if not begun:
                    rest = preamble.feed(data)
                    if rest is None:
                        continue
                    begun, data = True, rest
                for message in reader.feed(data):
                    self._take(message, now)
        except BadFrame as error:
            self._lose(str(error))
            self._channel.close()
            return
        said = (self._channel.said() or ("" if begun else preamble.skipped)).strip().splitlines()
        self._lose(said[-1] if said else "the connection ended")

    def _take(self, message: Mapping[str, Any], now: float) -> None:
        event = message.get("event")
        if isinstance(event, dict):
            if self._listener is not None:
                self._listener.event(self, event)
            return
        with self._state:
            answer, sent = self._pending.pop(int(message.get("id") or 0), (None, [0.0]))
        if answer is None:
            return
        try:
            ok = result(message)
            if sent[0] and "received" in ok:
                exchange = Exchange(sent[0], float(ok["received"]), float(ok["answered"]), now)
                self._exchanges.append(exchange)
            answer(ok)
        except RequestRefused as refused:
            answer(refused)

    def _lose(self, reason: str) -> None:
        with self._state:
            if self._gone:
                return
            self._gone = reason
            pending, self._pending = self._pending, {}
        self._out.put(None)
        for answer, _ in pending.values():
            answer(Unreachable(self.host, reason))
        if self._listener is not None and not self._closing:
            self._listener.lost(self, reason)
