"""Decides what the clients of a seed ask for and what goes wrong meanwhile.

A program is rounds of chaos, each followed by healing: no more faults, everything paused or held goes on,
and the network has to become quiet. At the end everything is withdrawn, and the tables have to show it.
"""

from __future__ import annotations

from random import Random
from typing import Final

from broker_runtime.control.words import BROKER_CONTROL, BROKER_INFO
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Op, predicate
from broker_runtime.language.values import Type
from broker_runtime.link.session import Policy
from broker_runtime.sim import contents
from broker_runtime.sim.cluster import Cluster, Player
from broker_runtime.sim.options import Options

CONTROLLER: Final = "controller"
SUBSCRIPTIONS_MAX: Final = 14
ADVERTISEMENTS_MAX: Final = 5


class Program:
    """One seed's worth of trouble."""

    def __init__(self, cluster: Cluster, options: Options, random: Random) -> None:
        self.cluster = cluster
        self.options = options
        self.random = random
        self.filters = [contents.subscription(random) for _ in range(8)]  # used again by several clients
        self.promises = [contents.advertisement(random) for _ in range(4)]
        self.promises.append(contents.everything(contents.CLASSES[0]))
        self._paused_by_control: dict[str, None] = {}
        self._down: dict[str, None] = {}
        weighted = [
            (6.0, self._publish),
            (2.0, self._subscribe),
            (1.2, self._unsubscribe),
            (0.7, self._advertise),
            (0.4, self._unadvertise),
            (options.weight_outage, self._outage),
            (options.weight_pause, self._pause),
            (options.weight_control_pause if options.monitors else 0.0, self._control_pause),
            (options.weight_memory, self._memory),
            (options.weight_churn, self._churn),
            (options.weight_hold, self._hold),
            (options.weight_restart, self._restart),
            (options.weight_cycle, self._cycle),
        ]
        self._actions = [action for weight, action in weighted if weight]
        self._weights = [weight for weight, _ in weighted if weight]

    def run(self) -> bool:
        """Whether the network became quiet every time it had to."""
        if not self._begin():
            return False
        return all(self._round() for _ in range(self.options.rounds)) and self._end()

    # Phases

    def _begin(self) -> bool:
        """Brokers find each other; clients come, and most have something to say."""
        random, options = self.random, self.options
        brokers = list(self.cluster.brokers)
        if options.weight_cycle and random.random() < 0.7:
            self._cycle()  # now, before anybody knows the tree: nobody can refuse, and somebody must give way
        if random.random() < 0.5 and not self.cluster.settle():
            return False
        policies = (Policy.BLOCK, Policy.DROP_OLDEST, Policy.DISCONNECT)
        weights = (options.slow_block, options.slow_drop, options.slow_disconnect)
        for i in range(options.clients):
            (policy,) = random.choices(policies, weights)
            queue = random.choice((0, 0, 1, 4))
            self.cluster.come(f"c{i}", random.choice(brokers), policy, queue)
        if options.monitors:
            self._hire_controller(random.choice(brokers))
        for _ in range(options.clients):
            self._advertise()
            self._subscribe()
        return self.cluster.settle()

    def _hire_controller(self, broker: str) -> None:
        controller = self.cluster.come(CONTROLLER, broker)
        attributes = (predicate(name, Op.PRESENT, Type.ANY) for name in ("broker", "command", "request"))
        self.cluster.advertise(
            controller, Advertisement([predicate(CLASS, Op.EQ, BROKER_CONTROL), *attributes])
        )
        self.cluster.subscribe(controller, Subscription([predicate(CLASS, Op.EQ, BROKER_INFO)]))

    def _round(self) -> bool:
        network, random, options = self.cluster.network, self.random, self.options
        start = network.now
        network.chaos = True
        for at in sorted(random.random() * options.chaos_s for _ in range(options.actions)):
            network.run_until(start + at)
            (action,) = random.choices(self._actions, self._weights)
            action()
        network.run_until(start + options.chaos_s)
        self._heal()
        return self.cluster.settle()

    def _heal(self) -> None:
        cluster = self.cluster
        cluster.memory_short.clear()
        cluster.network.heal()
        for name in list(self._down):
            self._revive(name)
        for player in cluster.players.values():
            if player.core.held:
                cluster.release(player)
        self._paused_by_control.clear()
        if self.options.monitors:
            self._resume_until_quiet(cluster.history.window)

    def _resume_until_quiet(self, window: int) -> None:
        """An order to pause may still be on its way, behind a connection that has to be resumed first."""
        cluster = self.cluster
        if cluster.history.window == window:
            for name, broker in cluster.brokers.items():
                if broker.paused:
                    cluster.command(name, "resume")
            cluster.network.at(cluster.now + 1.0, self._resume_until_quiet, window)

    def _end(self) -> bool:
        """Withdraw everything, in any order; only the brokers' own monitors remain."""
        cluster = self.cluster
        for a, b in cluster.extra:
            cluster.command(a, "disconnect", b)
        things = [(p, id_) for p in cluster.players.values() for id_ in (*p.subscriptions, *p.advertisements)]
        self.random.shuffle(things)
        for player, id_ in things:
            if id_ in player.subscriptions:
                cluster.unsubscribe(player, id_)
            else:
                cluster.unadvertise(player, id_)
        cluster.history.withdrawn = True
        return cluster.settle()

    # What clients do

    def _someone(self) -> Player:
        others = [player for player in self.cluster.players.values() if player.id != CONTROLLER]
        return self.random.choice(others) if others else self._newcomer()

    def _newcomer(self) -> Player:
        gone = [f"c{i}" for i in range(self.options.clients) if f"c{i}" not in self.cluster.players]
        return self.cluster.come(self.random.choice(gone), self.random.choice(list(self.cluster.brokers)))

    def _publish(self) -> None:
        """A burst, of one client or of many."""
        random = self.random
        player = self._someone()
        alone = random.random() < 0.5
        for _ in range(random.randint(1, self.options.burst_max)):
            if not alone:
                player = self._someone()
            if player.core.full:
                continue
            promised = list(player.advertisements.values())
            allowed = random.choice(promised) if promised and random.random() < 0.92 else None
            payload = random.randbytes(random.randint(1, 9)) if random.random() < 0.1 else b""
            said = contents.content(random, allowed)
            if allowed is None and random.random() < 0.2:  # an order that nobody allowed him to give
                said = {CLASS: BROKER_CONTROL, "broker": "*", "command": "shutdown"}
            self.cluster.publish(player, said, payload)

    def _subscribe(self) -> None:
        player = self._someone()
        if len(player.subscriptions) < SUBSCRIPTIONS_MAX:
            wanted = self.random.choice(self.filters)
            if self.random.random() < 0.5:
                wanted = contents.subscription(self.random)
            self.cluster.subscribe(player, wanted)

    def _unsubscribe(self) -> None:
        """With publications around it: what only this one covered must be served without a gap."""
        player = self._someone()
        if player.subscriptions:
            self._publish_meanwhile()
            self.cluster.unsubscribe(player, self.random.choice(list(player.subscriptions)))

    def _publish_meanwhile(self) -> None:
        network, options = self.cluster.network, self.options
        span = options.delay_s * options.delay_spread * options.brokers
        for _ in range(self.random.randint(0, 4)):
            network.at(network.now + span * self.random.random(), self._publish)

    def _advertise(self) -> None:
        player = self._someone()
        if len(player.advertisements) < ADVERTISEMENTS_MAX:
            promise = self.random.choice(self.promises)
            if self.random.random() < 0.4:
                promise = contents.advertisement(self.random)
            self.cluster.advertise(player, promise)

    def _unadvertise(self) -> None:
        player = self._someone()
        if player.advertisements:
            self._publish_meanwhile()
            self.cluster.unadvertise(player, self.random.choice(list(player.advertisements)))

    def _churn(self) -> None:
        cluster, random = self.cluster, self.random
        if len(cluster.players) <= self.options.clients // 2 or random.random() < 0.3:
            if any(f"c{i}" not in cluster.players for i in range(self.options.clients)):
                self._newcomer()
            return
        player = self._someone()
        if random.random() < 0.5:
            cluster.leave(player)
        else:
            cluster.crash(player, quietly=random.random() < 0.5)
        if random.random() < 0.5:
            broker = player.broker if random.random() < 0.5 else random.choice(list(cluster.brokers))
            cluster.come(player.id, broker)

    def _hold(self) -> None:
        player = self._someone()
        if player.core.held:
            self.cluster.release(player)
        else:
            self.cluster.hold(player)

    # What goes wrong

    def _outage(self) -> None:
        random, options = self.random, self.options
        pairs = [*self.cluster.edges, *((p.id, p.broker) for p in self.cluster.players.values())]
        a, b = random.choice(pairs)
        seconds = random.random() * options.session_expiry_s * 0.5
        if random.random() < options.outage_beyond_expiry:
            seconds += options.session_expiry_s
        self.cluster.network.take_down(a, b, seconds, silently=random.random() < 0.5)

    def _pause(self) -> None:
        network = self.cluster.network
        node = network.nodes[self.random.choice([*self.cluster.brokers, *self.cluster.players])]
        if node.alive and not node.paused:
            network.pause(node)
            seconds = self.random.random() * self.options.chaos_s * 0.6
            network.at(network.now + seconds, self._unpause, node.name, node.generation)

    def _unpause(self, name: str, generation: int) -> None:
        node = self.cluster.network.nodes[name]
        if node.generation == generation and node.paused:
            self.cluster.network.resume(node)

    def _control_pause(self) -> None:
        """Pause or resume a broker as an operator would: by a publication."""
        controller = self.cluster.players.get(CONTROLLER)
        if controller is None:
            return
        name = self.random.choice(list(self.cluster.brokers))
        word = "resume" if name in self._paused_by_control else "pause"
        self._paused_by_control[name] = None
        self.cluster.publish(
            controller, {CLASS: BROKER_CONTROL, "broker": name, "command": word, "request": "r"}
        )

    def _memory(self) -> None:
        name = self.random.choice(list(self.cluster.brokers))
        self.cluster.memory_short[name] = not self.cluster.memory_short.get(name, False)

    def _restart(self) -> None:
        """A broker loses its process, and everything it knew."""
        random, network = self.random, self.cluster.network
        name = random.choice(list(self.cluster.brokers))
        if name in self._down:
            return
        self._down[name] = None
        self._paused_by_control.pop(name, None)
        if random.random() < 0.3 and not network.nodes[name].paused:
            self.cluster.stop_broker(name)
        else:
            self.cluster.kill_broker(name, quietly=random.random() < 0.5)
        network.at(network.now + random.random() * 3.0, self._revive, name)

    def _revive(self, name: str) -> None:
        if name in self._down:
            del self._down[name]
            self.cluster.start_broker(name)

    def _cycle(self) -> None:
        """Ask for links that the tree does not have, one or two at once."""
        cluster, random = self.cluster, self.random
        names = list(cluster.brokers)
        taken = {*cluster.edges, *((b, a) for a, b in cluster.edges), *cluster.extra}
        free = [(a, b) for a in names for b in names if a != b and (a, b) not in taken]
        if not free:
            return
        cluster.history.extra_links = True
        for a, b in random.sample(free, min(len(free), random.randint(1, 2))):
            cluster.network.note(f"{a} is told to connect to {b}")
            cluster.extra.append((a, b))
            cluster.command(a, "connect", b)
