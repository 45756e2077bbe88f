"""Decides where every message goes next, from what came from where; never sends anything itself.

Three tables (PADRES, section 1.2.2): the neighbours; the SRT, advertisements with their last hop; the PRT,
subscriptions with their last hop. Advertisements go to every neighbour, subscriptions to the last hops of
the advertisements they overlap, publications to the last hops of the subscriptions they match. Entries are
keyed by (last hop, id). An advertisement that arrives by a second way, as happens for a moment when two
links close a cycle at once, is kept aside and takes over when the first way is withdrawn; the tree that
its first arrivals form is where a tree id per advertisement will sit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.matching import default_advertisement_table, default_engine
from broker_runtime.matching.engine import AdvertisementTable, MatchingEngine
from broker_runtime.routing.forwarding import Changes, Covering, Forwarding
from broker_runtime.wire.records import (
    Advertise,
    Confirm,
    Message,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

Hop = str
Key = tuple[Hop, str]
Forward = tuple[Hop, Message]


class Duplicate(ValueError):
    """The id is in use at this hop."""


class Neighbour:
    """What one neighbouring broker is told."""

    __slots__ = ("advertisements", "subscriptions")

    def __init__(
        self, advertisements: Forwarding[Advertisement], subscriptions: Forwarding[Subscription]
    ) -> None:
        self.advertisements = advertisements
        self.subscriptions = subscriptions


class Withdrawal:
    """One unsubscription that a hop asked for, and how many neighbours have not confirmed it yet."""

    __slots__ = ("key", "out")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.out = 0


class Router:
    """The tables of one broker."""

    def __init__(
        self,
        covering: Covering = Covering.ACTIVE,
        engine: Callable[[], MatchingEngine[Key]] = default_engine,
        advertisements: Callable[[], AdvertisementTable[Key]] = default_advertisement_table,
        advertisement_covering: Covering | None = None,
    ) -> None:
        self.covering = covering
        self.advertisement_covering = advertisement_covering or covering
        self.neighbours: dict[Hop, Neighbour] = {}
        self.subscriptions = engine()
        self.advertisements = advertisements()
        self.match = self.subscriptions.match
        self._subscriptions_of: dict[Hop, dict[str, None]] = {}
        self._hops_of: dict[str, tuple[Hop, ...]] = {}  # subscription id → where it came from
        self._advertisements_of: dict[Hop, dict[str, Advertisement]] = {}
        self._way_of: dict[str, Hop] = {}  # advertisement id → the hop it first came from
        self._other_ways: dict[str, dict[Hop, Advertisement]] = {}
        self._awaited: dict[Key, deque[Withdrawal | None]] = {}  # told to a neighbour, oldest first, for whom
        self._unconfirmed: dict[Key, deque[Withdrawal]] = {}  # asked by a hop, oldest first

    # Hops

    def neighbour_up(self, hop: Hop) -> list[Forward]:
        """A link to a broker is there, with nothing told in either direction."""
        if hop in self.neighbours:
            raise Duplicate(hop)
        self.neighbours[hop] = Neighbour(
            Forwarding(
                self.advertisement_covering, self._covering_advertisements, self._covered_advertisements
            ),
            Forwarding(self.covering, self._covering_subscriptions, self._covered_subscriptions),
        )
        changes: Changes[Advertisement] = Changes()
        for id_, way in self._way_of.items():
            self.neighbours[hop].advertisements.add(id_, self._advertisements_of[way][id_], changes)
        return self._advertised(hop, changes)

    def hop_down(self, hop: Hop) -> list[Forward]:
        """A neighbour or client is gone: everything that came from it is withdrawn."""
        self.neighbours.pop(hop, None)
        out = self._stop_waiting_for(hop)
        for id_ in [i for i, ways in self._other_ways.items() if hop in ways]:
            self._forget_other_way(id_, hop)
        for id_ in list(self._advertisements_of.get(hop, ())):
            out += self.unadvertise(id_, hop)
        self._advertisements_of.pop(hop, None)
        ids = self._subscriptions_of.pop(hop, {})
        for id_ in ids:
            self.subscriptions.remove((hop, id_))
            self._forget_hop(id_, hop)
        for name, neighbour in self.neighbours.items():
            gone = [id_ for id_ in ids if not self._has_other_source(id_, name)]
            changes: Changes[Subscription] = Changes()
            neighbour.subscriptions.remove(gone, changes)
            out += self._subscribed(name, changes)
        return out

    # Advertisements

    def advertise(self, id_: str, advertisement: Advertisement, hop: Hop) -> list[Forward]:
        way = self._way_of.get(id_)
        if way == hop or (way is not None and hop in self._other_ways.get(id_, ())):
            raise Duplicate(id_)
        if way is not None:
            self._other_ways.setdefault(id_, {})[hop] = advertisement
            return []
        self.advertisements.add((hop, id_), advertisement)
        self._advertisements_of.setdefault(hop, {})[id_] = advertisement
        self._way_of[id_] = hop
        out: list[Forward] = []
        for name, neighbour in self.neighbours.items():
            if name != hop:
                changes: Changes[Advertisement] = Changes()
                neighbour.advertisements.add(id_, advertisement, changes)
                out += self._advertised(name, changes)
        if hop in self.neighbours:
            out += self._pull_subscriptions(advertisement, hop)
        return out

    def unadvertise(self, id_: str, hop: Hop) -> list[Forward]:
        if self._way_of.get(id_) != hop:
            self._forget_other_way(id_, hop)
            return []
        self.advertisements.remove((hop, id_))
        advertisement = self._advertisements_of[hop].pop(id_)
        del self._way_of[id_]
        out: list[Forward] = []
        for name, neighbour in self.neighbours.items():
            if name != hop:
                changes: Changes[Advertisement] = Changes()
                neighbour.advertisements.remove((id_,), changes)
                out += self._advertised(name, changes)
        if hop in self.neighbours:
            out += self._release_subscriptions(advertisement, hop)
        for other, again in self._other_ways.pop(id_, {}).items():
            out += self.advertise(id_, again, other)
        return out

    def promised(self, hop: Hop) -> Iterable[Advertisement]:
        """The advertisements that this hop has made: a view that stays true."""
        return self._advertisements_of.setdefault(hop, {}).values()

    # Subscriptions

    def subscribe(self, id_: str, subscription: Subscription, hop: Hop) -> list[Forward]:
        key = (hop, id_)
        if key in self.subscriptions:
            raise Duplicate(id_)
        self.subscriptions.add(key, subscription)
        self._subscriptions_of.setdefault(hop, {})[id_] = None
        self._hops_of[id_] = (*self._hops_of.get(id_, ()), hop)
        out: list[Forward] = []
        ways = dict.fromkeys(way for way, _ in self.advertisements.overlapping(subscription))
        for way in ways:
            if way != hop and way in self.neighbours:
                changes: Changes[Subscription] = Changes()
                self.neighbours[way].subscriptions.add(id_, subscription, changes)
                out += self._subscribed(way, changes)
        return out

    def unsubscribe(self, id_: str, hop: Hop) -> list[Forward]:
        """The forwards include a Confirm to the hop once nobody further on holds the subscription."""
        if (hop, id_) not in self.subscriptions:
            return self._confirm_when_gone(id_, hop)
        self.subscriptions.remove((hop, id_))
        del self._subscriptions_of[hop][id_]
        self._forget_hop(id_, hop)
        out: list[Forward] = []
        withdrawal = Withdrawal((hop, id_))
        for name, neighbour in self.neighbours.items():
            if id_ in neighbour.subscriptions.wanted and not self._has_other_source(id_, name):
                changes: Changes[Subscription] = Changes()
                neighbour.subscriptions.remove((id_,), changes)
                out += self._subscribed(name, changes, withdrawal if name != hop else None)
            waiting = self._awaited.get((name, id_)) if name != hop else None  # two would wait for each other
            if waiting and waiting[-1] is None:  # withdrawn before, for covering, and not confirmed yet
                waiting[-1] = withdrawal
                withdrawal.out += 1
        self._unconfirmed.setdefault((hop, id_), deque()).append(withdrawal)
        return out + self._confirmed((hop, id_))

    def _confirm_when_gone(self, id_: str, hop: Hop) -> list[Forward]:
        """It is not here any more; neighbours that were told to withdraw it may not have done so yet."""
        withdrawal = Withdrawal((hop, id_))
        for name in self.neighbours:
            waiting = self._awaited.get((name, id_))
            if name != hop and waiting and waiting[-1] is None:
                waiting[-1] = withdrawal
                withdrawal.out += 1
        self._unconfirmed.setdefault((hop, id_), deque()).append(withdrawal)
        return self._confirmed((hop, id_))

    def confirm(self, id_: str, hop: Hop) -> list[Forward]:
        """A neighbour has carried out the oldest unsubscription of this id that it was told."""
        waiting = self._awaited.get((hop, id_))
        if not waiting:
            return []
        withdrawal = waiting.popleft()
        if not waiting:
            del self._awaited[(hop, id_)]
        return self._confirmed_one(withdrawal)

    # Publications

    def destinations(self, content: Content, hop: Hop) -> list[Hop]:
        """The hops that want the publication; a broker never gets back what it sent."""
        hops = dict.fromkeys(key[0] for key in self.match(content))
        if hop in self.neighbours:
            hops.pop(hop, None)
        return list(hops)

    def induced(self, content: Content, hop: Hop) -> bool:
        """Whether the hop has advertised such publications."""
        return any(each.induces(content) for each in self.promised(hop))

    # What is in the tables

    def advertisement_entries(self, entries_max: int) -> Iterator[tuple[str, Hop, Advertisement]]:
        entries = ((i, hop, body) for hop, own in self._advertisements_of.items() for i, body in own.items())
        return islice(entries, entries_max)

    def subscription_entries(self, entries_max: int) -> Iterator[tuple[str, Hop, Subscription]]:
        for hop, id_ in islice(
            ((hop, i) for hop, own in self._subscriptions_of.items() for i in own), entries_max
        ):
            body = self.subscriptions.get((hop, id_))
            assert body is not None
            yield id_, hop, body

    # Inside

    def _pull_subscriptions(self, advertisement: Advertisement, hop: Hop) -> list[Forward]:
        """A late advertisement draws the earlier subscriptions that overlap it."""
        changes: Changes[Subscription] = Changes()
        forwarding = self.neighbours[hop].subscriptions
        for key in self.subscriptions.overlapping_advertisement(advertisement):
            if key[0] != hop:
                subscription = self.subscriptions.get(key)
                assert subscription is not None
                forwarding.add(key[1], subscription, changes)
        return self._subscribed(hop, changes)

    def _release_subscriptions(self, advertisement: Advertisement, hop: Hop) -> list[Forward]:
        """Subscriptions that went to the hop for this advertisement alone are taken back."""
        forwarding = self.neighbours[hop].subscriptions
        gone = [
            id_
            for _, id_ in self.subscriptions.overlapping_advertisement(advertisement)
            if id_ in forwarding.wanted
            and not any(way == hop for way, _ in self.advertisements.overlapping(forwarding.wanted[id_]))
        ]
        changes: Changes[Subscription] = Changes()
        forwarding.remove(gone, changes)
        return self._subscribed(hop, changes)

    def _has_other_source(self, id_: str, neighbour: Hop) -> bool:
        """Whether the subscription came from another hop than this one: never on a tree, but while a cycle
        is being cut, a client's own subscription can come back to its broker."""
        return any(hop != neighbour for hop in self._hops_of.get(id_, ()))

    def _forget_hop(self, id_: str, hop: Hop) -> None:
        left = tuple(other for other in self._hops_of[id_] if other != hop)
        if left:
            self._hops_of[id_] = left
        else:
            del self._hops_of[id_]

    def _forget_other_way(self, id_: str, hop: Hop) -> None:
        ways = self._other_ways.get(id_, {})
        ways.pop(hop, None)
        if not ways:
            self._other_ways.pop(id_, None)

    def _advertised(self, hop: Hop, changes: Changes[Advertisement]) -> list[Forward]:
        out: list[Forward] = [(hop, Advertise(id_, body)) for id_, body in changes.tell.items()]
        out += [(hop, Unadvertise(id_)) for id_ in changes.withdraw]
        return out

    def _subscribed(
        self, hop: Hop, changes: Changes[Subscription], withdrawal: Withdrawal | None = None
    ) -> list[Forward]:
        out: list[Forward] = [(hop, Subscribe(id_, body)) for id_, body in changes.tell.items()]
        for id_ in changes.withdraw:
            out.append((hop, Unsubscribe(id_)))
            asked = withdrawal if withdrawal is not None and id_ == withdrawal.key[1] else None
            self._awaited.setdefault((hop, id_), deque()).append(asked)
            if asked is not None:
                asked.out += 1
        return out

    def _confirmed_one(self, withdrawal: Withdrawal | None) -> list[Forward]:
        if withdrawal is None:
            return []
        withdrawal.out -= 1
        return self._confirmed(withdrawal.key)

    def _confirmed(self, key: Key) -> list[Forward]:
        """Confirmations for a hop, in the order in which it asked: it counts on that."""
        out: list[Forward] = []
        asked = self._unconfirmed.get(key)
        while asked and not asked[0].out:
            asked.popleft()
            out.append((key[0], Confirm(key[1])))
        if asked is not None and not asked:
            del self._unconfirmed[key]
        return out

    def _stop_waiting_for(self, hop: Hop) -> list[Forward]:
        """The neighbour is gone, and with it what it was to withdraw."""
        for key in [key for key in self._unconfirmed if key[0] == hop]:
            del self._unconfirmed[key]
        out: list[Forward] = []
        for key in [key for key in self._awaited if key[0] == hop]:
            for withdrawal in self._awaited.pop(key):
                out += self._confirmed_one(withdrawal)
        return out

    def _covering_subscriptions(self, body: Subscription) -> list[str]:
        return [id_ for _, id_ in self.subscriptions.covering(body)]

    def _covered_subscriptions(self, body: Subscription) -> list[str]:
        return [id_ for _, id_ in self.subscriptions.covered(body)]

    def _covering_advertisements(self, body: Advertisement) -> list[str]:
        return [id_ for _, id_ in self.advertisements.covering(body)]

    def _covered_advertisements(self, body: Advertisement) -> list[str]:
        return [id_ for _, id_ in self.advertisements.covered(body)]
