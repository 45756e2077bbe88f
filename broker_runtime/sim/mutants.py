"""Decides which known bugs can be planted in the core, each by a context manager that takes it out again.

Patching happens here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from broker_runtime.broker import Broker
from broker_runtime.client_core import ClientCore
from broker_runtime.intake import Intake
from broker_runtime.language.messages import Subscription
from broker_runtime.link.endpoint import Endpoint
from broker_runtime.link.pressure import Pressure
from broker_runtime.link.session import DATA_LANE, Lane, Session
from broker_runtime.routing.forwarding import Changes, Forwarding
from broker_runtime.routing.overlay import Overlay
from broker_runtime.routing.router import Router
from broker_runtime.wire.frames import DATA_HEADER_BYTES, decode_data
from broker_runtime.wire.records import PUBLISH

Planting = Callable[[], AbstractContextManager[None]]


@contextmanager
def _replaced(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    original = owner.__dict__[name]
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def unsubscribing_forgets_the_covered() -> AbstractContextManager[None]:
    """What only the withdrawn subscription covered is not told again."""

    def remove(self: Forwarding[Any], ids: Any, changes: Changes[Any]) -> None:
        for id_ in ids:
            if self.wanted.pop(id_, None) is not None and id_ in self.told:
                del self.told[id_]
                changes.withdraw[id_] = None

    return _replaced(Forwarding, "remove", remove)


def withdrawing_before_telling() -> AbstractContextManager[None]:
    """The neighbour hears of the withdrawal first, and a publication falls between the two."""
    original = Router._subscribed

    def subscribed(self: Router, *arguments: Any) -> Any:
        return original(self, *arguments)[::-1]

    return _replaced(Router, "_subscribed", subscribed)


def repeated_frames_accepted() -> AbstractContextManager[None]:
    """The numbers of frames are not looked at."""

    def accept(self: Session, lane: Lane, first: int, body: bytes) -> int | None:
        return DATA_HEADER_BYTES if first <= lane.queued + 1 else None

    return _replaced(Session, "accept", accept)


def missing_frames_overlooked() -> AbstractContextManager[None]:
    """A gap in the numbers is taken for the next frame."""
    original = Session.accept

    def accept(self: Session, lane: Lane, first: int, body: bytes) -> int | None:
        if first > lane.queued + 1:
            lane.taken += first - 1 - lane.queued
            lane.queued = first - 1
        return original(self, lane, first, body)

    return _replaced(Session, "accept", accept)


def resuming_sends_nothing_again() -> AbstractContextManager[None]:
    def unreceived(self: Lane, received: int) -> list[tuple[int, list[bytes]]]:
        return []

    return _replaced(Lane, "unreceived", unreceived)


def resuming_sends_one_too_many() -> AbstractContextManager[None]:
    """A record that arrived is sent again under the number of the next."""
    original = Lane.unreceived

    def unreceived(self: Lane, received: int) -> list[tuple[int, list[bytes]]]:
        again = original(self, received)
        for first, batch, _ in self.inflight:
            if first <= received < first + len(batch):
                again.insert(0, (received + 1, batch[received - first :]))
                return again[:1] + again[2:]
        return again

    return _replaced(Lane, "unreceived", unreceived)


def received_is_called_taken() -> AbstractContextManager[None]:
    """Held input is acknowledged, and the window opens for more than the memory is meant to hold."""

    def taken(self: Session) -> tuple[int, int]:
        return (self.data.queued, self.control.queued)

    return _replaced(Session, "taken", property(taken))


def late_advertisements_pull_nothing() -> AbstractContextManager[None]:
    def pull(self: Router, advertisement: object, hop: str) -> list[Any]:
        return []

    return _replaced(Router, "_pull_subscriptions", pull)


def unadvertising_releases_nothing() -> AbstractContextManager[None]:
    def release(self: Router, advertisement: object, hop: str) -> list[Any]:
        return []

    return _replaced(Router, "_release_subscriptions", release)


def publications_go_back() -> AbstractContextManager[None]:
    """A publication with a payload returns to the broker it came from."""

    def destinations(self: Router, content: Any, hop: str) -> list[str]:
        return list(dict.fromkeys(key[0] for key in self.match(content)))

    return _replaced(Router, "destinations", destinations)


def covering_inverted() -> AbstractContextManager[None]:
    original = Forwarding.__init__

    def init(self: Forwarding[Any], mode: Any, covering: Any, covered: Any) -> None:
        original(self, mode, covered, covering)

    return _replaced(Forwarding, "__init__", init)


def covering_is_overlap() -> AbstractContextManager[None]:
    def covering(self: Router, body: Subscription) -> list[str]:
        return [id_ for _, id_ in self.subscriptions.overlapping(body)]

    return _replaced(Router, "_covering_subscriptions", covering)


def held_input_overtaken() -> AbstractContextManager[None]:
    """What comes while older input is held is taken at once when the reason has gone."""

    def resume(self: Endpoint, session: Session, now: float) -> None:
        queue, lane = session.input[DATA_LANE], session.data
        while queue and not self._owner.holding(session, DATA_LANE):
            body, position, count, _ = queue.pop()
            self._owner.take(session, DATA_LANE, body, position, now)
            lane.taken += count
            session.ack_due = True
            self.mark(session)

    return _replaced(Endpoint, "resume_input", resume)


def lost_hops_keep_their_subscriptions() -> AbstractContextManager[None]:
    """Neighbours are not told that the subscriptions of a hop have gone."""
    original = Router.hop_down

    def hop_down(self: Router, hop: str) -> list[Any]:
        return [forward for forward in original(self, hop) if type(forward[1]).__name__ != "Unsubscribe"]

    return _replaced(Router, "hop_down", hop_down)


def lost_hops_forget_the_covered() -> AbstractContextManager[None]:
    """When a hop is lost, what its subscriptions covered is not told."""
    original = Router.hop_down

    def hop_down(self: Router, hop: str) -> list[Any]:
        return [forward for forward in original(self, hop) if type(forward[1]).__name__ != "Subscribe"]

    return _replaced(Router, "hop_down", hop_down)


def confirmed_too_early() -> AbstractContextManager[None]:
    """An unsubscription is confirmed without waiting for the neighbours."""
    original = Router.unsubscribe

    def unsubscribe(self: Router, id_: str, hop: str) -> list[Any]:
        out = original(self, id_, hop)
        for withdrawal in self._unconfirmed.get((hop, id_), ()):
            withdrawal.out = 0
        return out + self._confirmed((hop, id_))

    return _replaced(Router, "unsubscribe", unsubscribe)


def blocked_sources_stay_blocked() -> AbstractContextManager[None]:
    def release_drained(self: Pressure) -> None:
        for session in list(self._congested.values()):
            if session.drained:
                del self._congested[session.peer]

    return _replaced(Pressure, "_release_drained", release_drained)


def full_queues_block_nobody() -> AbstractContextManager[None]:
    def fed(self: Pressure, source: Session, destinations: dict[str, Session]) -> None:
        self._endpoint.dirty.update(destinations)

    return _replaced(Pressure, "fed", fed)


def windows_ignored() -> AbstractContextManager[None]:
    """Everything is sent at once, whatever is unacknowledged."""

    def next_batch(self: Lane, settings: object) -> tuple[int, list[bytes], int] | None:
        batch, size = self.unsent, self.unsent_bytes
        self.unsent, self.unsent_bytes = [], 0
        first = self.sent + 1
        self.sent += len(batch)
        self.inflight.append((first, batch, size))
        self.inflight_bytes += size
        return first, batch, size

    return _replaced(Lane, "next_batch", next_batch)


def cycles_admitted() -> AbstractContextManager[None]:
    def surplus(self: Overlay) -> list[str]:
        return []

    @contextmanager
    def both() -> Iterator[None]:
        def admit(self: Broker, peer: str, role: object) -> None:
            return None

        with _replaced(Overlay, "surplus", surplus), _replaced(Broker, "admit", admit):
            yield

    return both()


def two_links_at_once_close_a_cycle() -> AbstractContextManager[None]:
    """Each link is admitted by brokers that do not know of the other, and none is dropped afterwards."""

    def surplus(self: Overlay) -> list[str]:
        return []

    return _replaced(Overlay, "surplus", surplus)


def the_newest_dropped() -> AbstractContextManager[None]:
    """A slow subscriber loses what came last."""

    def drop(self: Lane, keep: int, keep_bytes: int) -> int:
        dropped = 0
        for i in range(len(self.unsent) - 1, -1, -1):
            if len(self.unsent) > keep and self.unsent[i][4] == PUBLISH:
                self.unsent_bytes -= len(self.unsent[i])
                del self.unsent[i]
                dropped += 1
        return dropped

    return _replaced(Lane, "drop_oldest", drop)


def drops_not_told() -> AbstractContextManager[None]:
    def tell(self: Pressure, session: Session) -> None:
        return None

    return _replaced(Pressure, "_tell_dropped", tell)


def anything_may_be_published() -> AbstractContextManager[None]:
    def permitted(self: Intake, *arguments: object) -> bool:
        return True

    return _replaced(Intake, "_permitted", permitted)


def refusals_overtaken() -> AbstractContextManager[None]:
    """The acknowledgement of a refused publication reaches the client before the refusal."""

    def refuse(self: Session, record: bytes) -> None:
        self.offer(DATA_LANE, record)

    return _replaced(Session, "refuse", refuse)


def held_refusals_overlooked() -> AbstractContextManager[None]:
    """Held input may say that something was refused; the acknowledgement behind it is believed first."""

    def waits(self: ClientCore, session: Session) -> bool:
        return False

    return _replaced(ClientCore, "_refusal_waits", waits)


def acknowledged_over_a_gap() -> AbstractContextManager[None]:
    """A frame's acknowledgement is believed although the frame before it, with a refusal, is missing."""
    original = Endpoint._data

    def data(self: Endpoint, conn: Any, body: bytes, now: float) -> None:
        self._acknowledge(conn.session, decode_data(body).taken, now)
        original(self, conn, body, now)

    return _replaced(Endpoint, "_data", data)


def nothing_issued_again() -> AbstractContextManager[None]:
    """A client whose session was lost does not subscribe again."""
    original = ClientCore.session_opened

    def opened(self: ClientCore, session: Session, now: float) -> None:
        kept, self._subscription_ids = self._subscription_ids, {}
        original(self, session, now)
        self._subscription_ids = kept

    return _replaced(ClientCore, "session_opened", opened)


def peers_that_leave_are_not_dialled() -> AbstractContextManager[None]:
    """After a goodbye the address is given up, though it was to be kept."""
    original = Endpoint._redial

    def redial(self: Endpoint, conn: Any, now: float, reason: str) -> None:
        if reason != "left":
            original(self, conn, now, reason)

    return _replaced(Endpoint, "_redial", redial)


def tables_keep_lost_links() -> AbstractContextManager[None]:
    """A broker that ended a session with a neighbour does not say so to the others."""

    def ended(self: Broker, session: Session, reason: str, now: float) -> None:
        self.forward(self.router.hop_down(session.peer))

    return _replaced(Broker, "session_ended", ended)


MUTANTS: tuple[Planting, ...] = (
    unsubscribing_forgets_the_covered,
    withdrawing_before_telling,
    repeated_frames_accepted,
    missing_frames_overlooked,
    resuming_sends_nothing_again,
    resuming_sends_one_too_many,
    received_is_called_taken,
    late_advertisements_pull_nothing,
    unadvertising_releases_nothing,
    publications_go_back,
    covering_inverted,
    covering_is_overlap,
    held_input_overtaken,
    lost_hops_keep_their_subscriptions,
    lost_hops_forget_the_covered,
    confirmed_too_early,
    blocked_sources_stay_blocked,
    full_queues_block_nobody,
    windows_ignored,
    cycles_admitted,
    two_links_at_once_close_a_cycle,
    the_newest_dropped,
    drops_not_told,
    anything_may_be_published,
    refusals_overtaken,
    held_refusals_overlooked,
    acknowledged_over_a_gap,
    nothing_issued_again,
    peers_that_leave_are_not_dialled,
    tables_keep_lost_links,
)
