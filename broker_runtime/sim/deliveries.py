"""Decides which publications had to arrive, which might, and which must not; the oracle is one table.

What must arrive: a publication that was acknowledged, by a publisher whose advertisement for it had settled
before, at every client with a matching subscription that had settled before and was not withdrawn in the
same window, whose session went on, and whose way to the publisher's broker lost no session and no broker in
that window. Broken and resumed connections, lost and repeated frames, pauses, back-pressure and what other
clients do are no excuse. Neither is the publisher's leaving after the acknowledgement: what it withdraws
follows its publications on the same links.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from broker_runtime.client_core import Acknowledged, Confirmed, Connected, Noticed, Refused
from broker_runtime.language.messages import Advertisement, Content, Subscription
from broker_runtime.link.session import Policy
from broker_runtime.sim import history as past
from broker_runtime.sim.history import Arrival, Call, History


def exactly_once(history: History) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    tangled = tangled_windows(history)
    for arrival in history.arrivals:
        key = (arrival.client, arrival.id)
        if key in seen and arrival.window not in tangled:
            yield f"{arrival.client} got {arrival.id} twice"
        seen.add(key)


def in_order(history: History) -> Iterator[str]:
    """Per publisher and lane, numbers only grow at each subscriber."""
    last: dict[tuple[str, str, bool], int] = {}
    tangled = tangled_windows(history)
    for arrival in history.arrivals:
        key = (arrival.client, arrival.source, arrival.urgent)
        before = last.get(key, 0)
        if arrival.number < before and arrival.window not in tangled:
            yield f"{arrival.client} got {arrival.id} after number {before}"
        last[key] = max(before, arrival.number)


def nothing_unexpected(history: History) -> Iterator[str]:
    """Every arrival was published, was not refused, and matches what its receiver then asked for."""
    published = {call.id: call for call in history.calls if call.kind == past.PUBLISH}
    refused = {h.happening.id for h in history.happened if isinstance(h.happening, Refused)}
    asked = _Asked(history)
    for arrival in history.arrivals:
        call = published.get(arrival.id)
        if call is not None:
            if call.body != arrival.content:
                yield f"{arrival.client} got {arrival.id} as {arrival.content}, not {call.body}"
            if arrival.id in refused:
                yield f"{arrival.client} got {arrival.id}, which was refused"
        elif arrival.source.partition(":")[0] not in history.brokers:
            yield f"{arrival.client} got {arrival.id}, which nobody published"
        if not asked.at(arrival):
            yield f"{arrival.client} got {arrival.id} {arrival.content} without a subscription for it"


class _Asked:
    """Which subscriptions a client had at a moment: from the call until the confirmed withdrawal."""

    def __init__(self, history: History) -> None:
        self._spans: dict[str, list[tuple[int, int, Subscription]]] = defaultdict(list)
        ends = {
            (h.client, h.happening.id): h.order
            for h in history.happened
            if isinstance(h.happening, Confirmed)
        }
        for call in history.calls:
            if call.kind == past.SUBSCRIBE:
                assert isinstance(call.body, Subscription)
                end = ends.get((call.client, call.id), 1 << 60)
                self._spans[call.client].append((call.order, end, call.body))

    def at(self, arrival: Arrival) -> bool:
        return any(
            start < arrival.order < end and subscription.matches(arrival.content)
            for start, end, subscription in self._spans[arrival.client]
        )


Owed = dict[tuple[str, int], dict[str, list[Call]]]  # subscriber and window → publisher → publications


def owed_deliveries(history: History) -> Owed:
    """What must have arrived, in the order of publication."""
    excuses = Excuses(history)
    settled = Settled(history)
    acknowledged = _acknowledged(history)
    owed: Owed = defaultdict(lambda: defaultdict(list))
    for call in history.calls:
        if call.kind != past.PUBLISH or call.id not in acknowledged:
            continue
        if excuses.publisher(call, acknowledged[call.id]) or not settled.advertised(call):
            continue
        content: Content = call.body  # type: ignore[assignment]
        for client in settled.subscribers(content, call.window):
            excused = excuses.subscriber(client, call.window)
            if not excused and not excuses.way(call.client, client, call.window):
                owed[(client, call.window)][call.client].append(call)
    return owed


def nothing_missing(history: History) -> Iterator[str]:
    got: dict[str, set[str]] = defaultdict(set)
    for arrival in history.arrivals:
        got[arrival.client].add(arrival.id)
    for (client, window), by_publisher in owed_deliveries(history).items():
        missing = [call for calls in by_publisher.values() for call in calls if call.id not in got[client]]
        if missing:
            yield from _judge(history, client, window, missing, by_publisher, got[client])


def _judge(
    history: History,
    client: str,
    window: int,
    missing: list[Call],
    by_publisher: dict[str, list[Call]],
    got: set[str],
) -> Iterator[str]:
    first = missing[0]
    text = f"{client} did not get {first.id} {first.body} of window {window}, {len(missing)} in all"
    if history.clients[client].policy is not Policy.DROP_OLDEST:
        yield text
        return
    told = sum(
        h.happening.count
        for h in history.happened
        if h.client == client and isinstance(h.happening, Noticed) and h.happening.code == "DROPPED"
    )
    if len(missing) > told:
        yield f"{text}, and was told of {told} dropped"
    # The last to come is never the oldest. It is the last of its publisher, of those that may have come.
    refused = {h.happening.id for h in history.happened if isinstance(h.happening, Refused)}
    settled = Settled(history)
    last: dict[str, str] = {}
    for call in history.calls:
        if call.kind == past.PUBLISH and call.window == window and call.id not in refused:
            content: Content = call.body  # type: ignore[assignment]
            if client in settled.subscribers(content, window, ever=True):
                last[call.client] = call.id
    owed = {call.id for calls in by_publisher.values() for call in calls}
    if all(id_ in owed and id_ not in got for id_ in last.values()):
        yield f"{text}: the newest were dropped"


def _acknowledged(history: History) -> dict[str, int]:
    """Publication → order of its acknowledgement, without those refused."""
    acknowledged: dict[str, int] = {}
    for h in history.happened:
        if isinstance(h.happening, Acknowledged):
            acknowledged.setdefault(h.happening.id, h.order)
    for h in history.happened:
        if isinstance(h.happening, Refused):
            acknowledged.pop(h.happening.id, None)
    return acknowledged


class Settled:
    """Advertisements and subscriptions that a quiet network had heard of."""

    def __init__(self, history: History) -> None:
        refused = {h.happening.id for h in history.happened if isinstance(h.happening, Refused)}
        withdrawn: dict[str, Call] = {
            call.id: call for call in history.calls if call.kind in (past.UNADVERTISE, past.UNSUBSCRIBE)
        }
        self._advertised: dict[str, list[tuple[Call, Call | None, Advertisement]]] = defaultdict(list)
        self._subscribed: list[tuple[Call, Call | None, Subscription]] = []
        for call in history.calls:
            if call.id in refused:
                continue
            if isinstance(call.body, Advertisement):
                self._advertised[call.client].append((call, withdrawn.get(call.id), call.body))
            elif isinstance(call.body, Subscription):
                self._subscribed.append((call, withdrawn.get(call.id), call.body))

    def advertised(self, publication: Call) -> bool:
        content: Content = publication.body  # type: ignore[assignment]
        return any(
            call.window < publication.window
            and (end is None or end.order > publication.order)
            and advertisement.induces(content)
            for call, end, advertisement in self._advertised[publication.client]
        )

    def subscribers(self, content: Content, window: int, ever: bool = False) -> Iterable[str]:
        """Clients with a matching subscription through the whole window, or at any time in it."""
        return dict.fromkeys(
            call.client
            for call, end, subscription in self._subscribed
            if (call.window <= window if ever else call.window < window)
            and (end is None or (end.window >= window if ever else end.window > window))
            and subscription.matches(content)
        )


class Excuses:
    """Why a publication need not have arrived."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._tangled = tangled_windows(history)
        self._fresh: dict[str, list[tuple[int, int]]] = defaultdict(list)  # client → window, order
        for h in history.happened:
            if isinstance(h.happening, Connected) and not h.happening.resumed:
                self._fresh[h.client].append((h.window, h.order))
        self._left: dict[str, int] = {client: window for window, client in history.departures}
        self._ended: dict[int, set[tuple[str, str]]] = defaultdict(set)
        for window, a, b in (*history.links_ended, *history.links_opened):
            self._ended[window] |= {(a, b), (b, a)}
        self._restarted: dict[int, set[str]] = defaultdict(set)
        for window, broker in history.restarts:
            self._restarted[window].add(broker)

    def publisher(self, publication: Call, acknowledged: int) -> bool:
        """Its session, and with it its advertisements, began in this window before the acknowledgement."""
        return any(
            window == publication.window and order < acknowledged
            for window, order in self._fresh[publication.client]
        )

    def subscriber(self, client: str, window: int) -> bool:
        return self._left.get(client, 1 << 60) <= window or any(w == window for w, _ in self._fresh[client])

    def way(self, publisher: str, subscriber: str, window: int) -> bool:
        """A session or a broker between the two was lost."""
        if window in self._tangled:
            return True
        clients = self._history.clients
        brokers = way(self._history.tree, clients[publisher].broker, clients[subscriber].broker)
        if self._restarted[window].intersection(brokers):
            return True
        return any(pair in self._ended[window] for pair in pairwise(brokers))


def tangled_windows(history: History) -> set[int]:
    """Windows in which links beyond the tree came or went: two ways may have existed for a moment."""
    if not history.extra_links:
        return set()
    tree = {*history.tree, *((b, a) for a, b in history.tree)}
    return {
        window for window, a, b in (*history.links_opened, *history.links_ended) if (a, b) not in tree
    } | _other_trees(history)


def _other_trees(history: History) -> set[int]:
    """Windows that began or ended with another tree than the given one."""
    windows: set[int] = set()
    for window, states in enumerate(history.quiet):
        if any(state.edges != history.tree for state in states.values()):
            windows |= {window, window + 1}
    return windows


def way(tree: Iterable[tuple[str, str]], start: str, end: str) -> list[str]:
    """The brokers from start to end along the tree."""
    neighbours: dict[str, list[str]] = defaultdict(list)
    for a, b in tree:
        neighbours[a].append(b)
        neighbours[b].append(a)
    before = {start: ""}
    queue = [start]
    for here in queue:
        for there in neighbours[here]:
            if there not in before:
                before[there] = here
                queue.append(there)
    brokers = [end]
    while before[brokers[-1]]:
        brokers.append(before[brokers[-1]])
    return brokers[::-1]
