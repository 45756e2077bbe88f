"""Decides what a full queue does to those who feed it, and when they may go on; never looks at a message.

A destination at its bound follows its policy. With `block`, the sources that feed it are held: their input is
received but not taken, so not acknowledged, and their own windows close in turn. On an overlay without cycles
these waits cannot form a circle, because what came from a link never goes back to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker_runtime.link.endpoint import Endpoint
from broker_runtime.link.session import DATA_LANE, Policy, Session
from broker_runtime.wire.frames import WireError
from broker_runtime.wire.records import Notice, encode


class Pressure:
    """Who holds up whom at one broker."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pressed: list[tuple[Session, Session]] = []  # (source, full destination)
        self._congested: dict[str, Session] = {}  # destinations that hold others up, or dropped something
        self._waiting: dict[str, Session] = {}  # sources whose input may go on

    @property
    def at_rest(self) -> bool:
        return not (self._pressed or self._congested or self._waiting)

    def fed(self, source: Session, destinations: dict[str, Session]) -> None:
        """A source has added to the queues of these destinations."""
        self._endpoint.dirty.update(destinations)
        for destination in destinations.values():
            if destination.full:
                self._pressed.append((source, destination))

    def wake(self, sessions: Mapping[str, Session]) -> None:
        """What held the input of these sessions may be over."""
        self._waiting.update(sessions)

    def settle(self, now: float) -> None:
        """Send what is ready, then deal with full queues and with input that may go on."""
        endpoint = self._endpoint
        endpoint.flush()
        while self._pressed or self._waiting or self._congested:
            for source, destination in self._pressed:
                self._press(source, destination, now)
            self._pressed.clear()
            self._release_drained()
            if not self._waiting:
                break
            waiting, self._waiting = self._waiting, {}
            for session in waiting.values():
                if not session.ended:
                    endpoint.resume_input(session, now)
            endpoint.flush()

    def forget(self, session: Session) -> None:
        """The session has ended: it holds nobody up, and waits for nobody."""
        for destination in session.blocked_on.values():
            destination.blocking.pop(session.peer, None)
        self._release(session)
        self._congested.pop(session.peer, None)
        self._waiting.pop(session.peer, None)

    def _press(self, source: Session, destination: Session, now: float) -> None:
        if destination.ended or not destination.full:
            return
        if destination.policy is Policy.BLOCK:
            source.blocked_on[destination.peer] = destination
            destination.blocking[source.peer] = source
            self._congested[destination.peer] = destination
        elif destination.policy is Policy.DISCONNECT:
            slow = f"{len(destination.data.unsent)} notifications wait, which is the limit"
            self._endpoint.break_off(destination, WireError("SLOW_SUBSCRIBER", slow), now)
        else:
            kept = destination.queue_length_max, destination.settings.queue_bytes_max
            dropped = destination.data.drop_oldest(*kept)
            destination.dropped += dropped
            destination.dropped_untold += dropped
            self._congested[destination.peer] = destination

    def _release_drained(self) -> None:
        for session in list(self._congested.values()):
            if session.drained:
                del self._congested[session.peer]
                self._release(session)
                self._tell_dropped(session)

    def _release(self, destination: Session) -> None:
        for source in destination.blocking.values():
            source.blocked_on.pop(destination.peer, None)
            if not source.blocked_on:
                self._waiting[source.peer] = source
        destination.blocking.clear()

    def _tell_dropped(self, session: Session) -> None:
        if session.dropped_untold and not session.ended:
            text = "notifications were dropped because they were not taken in time"
            session.offer(DATA_LANE, encode(Notice("DROPPED", text, session.dropped_untold)))
            session.dropped_untold = 0
            self._endpoint.mark(session)
            self._endpoint.flush()
