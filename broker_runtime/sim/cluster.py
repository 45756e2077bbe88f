"""Decides how brokers and clients live on the virtual network, and when that network is quiet.

The cores are the real ones. What clients ask and what becomes of it is written into the history; nothing
here judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from broker_runtime.broker import Broker, BrokerSettings, Instruments
from broker_runtime.client_core import ClientCore, ClientSettings, Confirmed, Happening
from broker_runtime.control.words import CONTROL_CLASSES
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.values import Value
from broker_runtime.link.session import Policy, Session
from broker_runtime.matching.scan import AdvertisementScan, ScanEngine
from broker_runtime.routing.router import Router
from broker_runtime.seam import Command, Log
from broker_runtime.sim import history as past
from broker_runtime.sim.history import Arrival, Call, Client, Confirmation, Happened, History
from broker_runtime.sim.network import Network, Node, Trace
from broker_runtime.sim.options import Options
from broker_runtime.sim.quiet import broker_state, restlessness
from broker_runtime.wire.records import PUBLISH, Flag, decode_publication

STEP_S: Final = 0.25
MEMORY_LIMIT_BYTES: Final = 1000


class ClientProcess(ClientCore):
    """A client whose arrivals can be seen before it drops those it has no subscription for."""

    def __init__(self, settings: ClientSettings, random: Random, now: float) -> None:
        super().__init__(settings, random, now)
        self.arrived: list[tuple[str, int, bool, Mapping[str, Value], bytes]] = []

    def _deliver(self, body: bytes, flags: int, hops: int) -> None:
        head, payload = decode_publication(body, flags)
        self.arrived.append((head.source, head.number, bool(flags & Flag.URGENT), head.content, payload))
        super()._deliver(body, flags, hops)


@dataclass(slots=True, eq=False)
class Player:
    """One incarnation of a client, with what it has asked for and not withdrawn."""

    id: str
    broker: str
    core: ClientProcess
    node: Node
    advertisements: dict[str, Advertisement] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    happenings: list[Happening] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.core.source


class Cluster:
    """A tree of brokers and the clients that come and go."""

    def __init__(
        self,
        options: Options,
        random: Random,
        edges: list[tuple[str, str]] | None = None,
        brokers: list[str] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.options = options
        self.random = random
        names = brokers or [f"B{i}" for i in range(options.brokers)]
        self.edges = edges if edges is not None else tree(names, options.shape, random)
        self.network = Network(options, random, trace)
        self.network.on_log = self._logged
        self.network.after = self._check_bounds
        self.history = History(
            tuple(sorted(_edge(a, b) for a, b in self.edges)),
            tuple(names),
            options.covering,
            options.monitors,
        )
        self.brokers: dict[str, Broker] = {}
        self.players: dict[str, Player] = {}  # who is there, by id
        self.extra: list[tuple[str, str]] = []  # links asked for beyond the tree
        self.memory_short: dict[str, bool] = {}
        self._boots: dict[str, int] = {}
        self._incarnations: dict[str, int] = {}
        for name in names:
            self.start_broker(name)

    @property
    def now(self) -> float:
        return self.network.now

    # Brokers

    def start_broker(self, name: str) -> None:
        options = self.options
        boot = self._boots[name] = self._boots.get(name, 0) + 1
        ends = ((a, b) if a == name else (b, a) for a, b in self.edges if name in (a, b))
        dialled = [far for near, far in ends if options.dialled_from_both_ends or (near, far) in self.edges]
        settings = BrokerSettings(
            id=name,
            address=name,
            neighbours=tuple(dialled),
            token=options.token,
            log_every=options.log_every,
            incarnation=str(boot),
            boot=boot,
            covering=options.covering,
            status_every_s=options.status_every_s if options.monitors else 0.0,
            memory_watermark_bytes=MEMORY_LIMIT_BYTES if options.weight_memory else 0,
            link=options.link,
        )
        router = Router(options.covering, ScanEngine, AdvertisementScan) if options.scan_engine else None

        def memory() -> int:
            return 2 * MEMORY_LIMIT_BYTES if self.memory_short.get(name) else 0

        broker = Broker(settings, self.random, self.now, Instruments(memory=memory), router)
        self.brokers[name] = broker
        if name in self.network.nodes:
            self.network.revive(self.network.nodes[name], broker)
        else:
            self.network.add(name, broker, listens=True)
        self.network.carry_out(self.network.nodes[name], broker.endpoint.drain_effects())

    def kill_broker(self, name: str, quietly: bool) -> None:
        """The broker's process ends without a word, and with everything it knew."""
        self.network.note(f"{name} is killed")
        self.history.restarts.append((self.history.window, name))
        self.network.remove(self.network.nodes[name], quietly)

    def stop_broker(self, name: str) -> None:
        """The broker says goodbye and ends."""
        self.command(name, "stop")
        self.kill_broker(name, quietly=False)

    def command(self, broker: str, word: str, argument: str = "") -> None:
        node = self.network.nodes[broker]
        if node.alive:
            self.network.hand(node, Command(word, argument))

    # Clients

    def come(self, id_: str, broker: str, policy: Policy = Policy.BLOCK, queue: int = 0) -> Player:
        """A client starts; one that was here before comes back as a new incarnation."""
        incarnation = self._incarnations[id_] = self._incarnations.get(id_, 0) + 1
        settings = ClientSettings(
            id=id_,
            address=broker,
            token=self.options.token,
            incarnation=str(incarnation),
            policy=policy,
            queue_length_max=queue,
            link=self.options.link,
        )
        core = ClientProcess(settings, self.random, self.now)
        network = self.network
        if id_ in network.nodes:
            network.revive(network.nodes[id_], core)
        else:
            network.add(id_, core)
        player = Player(id_, broker, core, network.nodes[id_])
        self.players[id_] = player
        self.history.clients[player.key] = Client(player.key, id_, broker, policy)
        network.note(f"{player.key} comes to {broker}")
        network.carry_out(player.node, core.flush())
        return player

    def leave(self, player: Player) -> None:
        self._depart(player)
        self.network.carry_out(player.node, player.core.handle(Command("stop", "bye"), self.now))
        self.network.remove(player.node, quietly=False)

    def crash(self, player: Player, quietly: bool) -> None:
        self._depart(player)
        self.network.remove(player.node, quietly)

    def _depart(self, player: Player) -> None:
        self.network.note(f"{player.key} goes")
        self.history.departures.append((self.history.window, player.key))
        del self.players[player.id]

    # Calls of clients

    def advertise(self, player: Player, advertisement: Advertisement) -> str:
        id_ = player.core.advertise(advertisement)
        player.advertisements[id_] = advertisement
        self._called(player, past.ADVERTISE, id_, advertisement)
        return id_

    def unadvertise(self, player: Player, id_: str) -> None:
        del player.advertisements[id_]
        player.core.unadvertise(id_)
        self._called(player, past.UNADVERTISE, id_, None)

    def subscribe(self, player: Player, subscription: Subscription) -> str:
        id_ = player.core.subscribe(subscription)
        player.subscriptions[id_] = subscription
        self._called(player, past.SUBSCRIBE, id_, subscription)
        return id_

    def unsubscribe(self, player: Player, id_: str) -> None:
        del player.subscriptions[id_]
        player.core.unsubscribe(id_)
        self._called(player, past.UNSUBSCRIBE, id_, None)

    def publish(self, player: Player, content: Mapping[str, Value], payload: bytes = b"") -> str:
        id_ = player.core.publish(content, self.now, payload)
        self._called(player, past.PUBLISH, id_, content, content[CLASS] in CONTROL_CLASSES)
        return id_

    def hold(self, player: Player) -> None:
        self.network.note(f"{player.key} takes nothing more")
        player.core.hold()

    def release(self, player: Player) -> None:
        self.network.note(f"{player.key} takes again")
        player.core.release(self.now)
        self.network.carry_out(player.node, player.core.flush())

    def _called(self, player: Player, kind: str, id_: str, body: object, urgent: bool = False) -> None:
        history = self.history
        self.network.note(f"{player.key} calls {kind} {id_} {body}")
        history.calls.append(
            Call(
                history.next_order(),
                history.window,
                player.key,
                kind,
                id_,
                body,
                player.core.endpoint.sessions != {},
                urgent,
            )
        )
        if not player.node.paused:
            self.network.carry_out(player.node, player.core.flush())

    # Quiet

    def settle(self) -> bool:
        """Run until the network is quiet, and begin a new window; False when it is stuck."""
        limit = self.now + self.options.calm_within_s
        reasons: list[str] = []
        while (why := self.restless()) and self.now < limit:
            reasons.append(why)
            self.network.run_until(self.now + STEP_S)
        if why:
            often = max(reasons, key=reasons.count)
            self.history.problems.append(
                f"convergence: not quiet after {self.options.calm_within_s} s: {often}"
            )
            return False
        self.network.note(f"quiet: window {self.history.window} ends")
        self.history.quiet.append({name: broker_state(each) for name, each in self.brokers.items()})
        self.history.window += 1
        return True

    def restless(self) -> str:
        return restlessness(
            self.network, self.brokers, {p.id: (p.core, p.broker) for p in self.players.values()}
        )

    # What the network tells

    def _logged(self, node: Node, log: Log) -> None:
        if log.kind == "link_up" and not log.fields["resumed"]:
            self.history.links_opened.append((self.history.window, node.name, str(log.fields["peer"])))
        elif log.kind == "link_down" and log.fields["ended"]:
            self.history.links_ended.append((self.history.window, node.name, str(log.fields["peer"])))

    def _check_bounds(self, node: Node) -> None:
        broker = self.brokers.get(node.name)
        if broker is None:
            player = self.players.get(node.name)
            if player is not None:
                self._collect(player)
            return
        window = self.options.window_records
        for session in broker.endpoint.sessions.values():
            if len(session.data.unsent) > session.queue_length_max:
                self._check_queue(node.name, session, len(broker.endpoint.sessions))
            for lane in session.lanes:
                if lane.sent - lane.acked > window or lane.queued - lane.taken > window:
                    self.history.problems.append(
                        f"bounded queues: {lane.sent - lane.acked} records in flight from {node.name} to"
                        f" {session.peer} and {lane.queued - lane.taken} held, window {window}"
                    )

    def _check_queue(self, name: str, session: Session, sources: int) -> None:
        """At its bound a queue stops its sources, of which each has one window on its way."""
        length = sum(record[4] == PUBLISH for record in session.data.unsent)
        bound = session.queue_length_max + sources * self.options.window_records
        if length > bound:
            self.history.problems.append(
                f"bounded queues: {length} publications wait at {name} for {session.peer}, bound {bound}"
            )

    def _collect(self, player: Player) -> None:
        history, core = self.history, player.core
        for arrival in core.arrived:
            history.arrivals.append(Arrival(history.next_order(), history.window, player.key, *arrival))
        core.arrived.clear()
        for happening in core.happenings():
            self.network.note(f"{player.key} = {happening}")
            player.happenings.append(happening)
            history.happened.append(Happened(history.next_order(), history.window, player.key, happening))
            if isinstance(happening, Confirmed):
                holders = tuple(
                    name
                    for name, broker in self.brokers.items()
                    if any(id_ == happening.id for id_, _, _ in broker.router.subscription_entries(10_000))
                )
                history.confirmations.append(Confirmation(history.window, player.key, happening.id, holders))


def tree(names: list[str], shape: str, random: Random) -> list[tuple[str, str]]:
    """Edges from each broker to an earlier one."""
    edges = []
    for i in range(1, len(names)):
        parent = i - 1 if shape == "chain" else 0 if shape == "star" else random.randrange(i)
        edges.append((names[i], names[parent]))
    return edges


def _edge(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)
