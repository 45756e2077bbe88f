"""Decides all that is in the logs of a generated run besides publications: starts, links, faults, ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from tests.spark.generator.files import LogFile
from tests.spark.generator.journals import Journals
from tests.spark.generator.traffic import Traffic
from tests.spark.generator.truth import FaultInterval, Truth
from tests.spark.generator.world import TAKEN_S, Client, Fault, Subscription, World

VERSION = "0.1.0"
Happening = tuple[float, Callable[[], None]]


def topology_text(world: World) -> str:
    """What somebody could have written to get this run."""
    lines = []
    for broker in world.brokers:
        neighbour = f" -n {world.brokers[broker.dials].address}" if broker.dials is not None else ""
        lines.append(
            f"0.0 ADD {broker.id} {broker.host} startbroker.sh"
            f" -hostname {broker.host} -p {broker.port} -i {broker.id}{neighbour}"
        )
    timed: list[tuple[float, str]] = []
    for number, client in enumerate(world.clients):
        timed.append((client.started - world.t0, _added(world, number, client)))
        if client.ended < float("inf"):
            verb = "KILL" if client.killed else "REMOVE"
            timed.append((client.ended - world.t0, f"{verb} {client.id} {client.host}"))
    for fault in world.faults:
        timed += [(at - world.t0, text) for at, text in _faulty(world, fault)]
    lines += [f"{at_s:.3f} {text}" for at_s, text in sorted(timed)]
    return "\n".join(["# A generated run.", *lines, ""])


def _added(world: World, number: int, client: Client) -> str:
    begin = f"ADD {client.id} {client.host}"
    where = f"-i {client.id} -b {world.brokers[client.broker].address}"
    if client.publishes:
        count = max(1, world.publications)
        return f"{begin} startworkload.sh publish {where} --count {count} --rate {world.options.rate_per_s:g}"
    texts = [
        each.filter.text
        for each in world.subscriptions
        if each.client == number and each.filter.judged and each.confirmed < client.started + 1
    ]
    if not texts:
        return f"{begin} startclient.sh {where}"
    return f"{begin} startsubscriber.sh {where} " + " ".join(map(_quoted, texts))


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'


def _faulty(world: World, fault: Fault) -> Iterator[tuple[float, str]]:
    for_s = f"{round(1000 * (fault.until - fault.at))}ms"
    if fault.kind == "cut":
        a, b = (world.brokers[n].id for n in fault.brokers)
        yield fault.at, f"CUT {a} {b} for {for_s}"
    elif fault.kind == "pause":
        assert fault.client is not None
        client = world.clients[fault.client]
        yield fault.at, f"PAUSE {client.id} {client.host} for {for_s}"
    else:
        broker = world.brokers[fault.brokers[0]]
        yield fault.at, f"KILL {broker.id} {broker.host}"
        yield fault.until, f"RESTART {broker.id} {broker.host}"


class Story:
    def __init__(
        self, world: World, logs: dict[str, LogFile], traffic: Traffic, journals: Journals, truth: Truth
    ) -> None:
        self.world = world
        self.logs = logs
        self.traffic = traffic
        self.journals = journals
        self.truth = truth

    def say(self, who: str, t: float, kind: str, **fields: object) -> None:
        log = self.logs.get(who)
        if log is not None:
            log.add(t, kind, **fields)

    # The beginning

    def begin(self) -> None:
        self.journals.begin()
        self.journals.steps()
        began = self.world.options.began
        for n, broker in enumerate(self.world.brokers):
            self._broker_starts(n, began + 0.6)
            if broker.dials is not None:
                self._link_up(n, broker.dials, began + 0.8, resumed=False)
        for n in range(len(self.world.clients)):
            self._client_starts(n)

    def _broker_starts(self, n: int, t: float) -> None:
        broker = self.world.brokers[n]
        self.traffic.began[n] = t
        self.say(broker.id, t, "start", version=VERSION, broker=broker.id, address=broker.address)
        self.say(broker.id, t + 0.001, "ready", address=broker.address)

    def _link_up(self, a: int, b: int, t: float, *, resumed: bool) -> None:
        for one, other in ((a, b), (b, a)):
            here, there = self.world.brokers[one], self.world.brokers[other]
            self.say(here.id, t, "link_up", peer=there.id, resumed=resumed)
            self.journals.link(here.host, t + 0.001, here.id, there.id, True)
            if not resumed:
                self.traffic.open(one, there.id)

    def _client_starts(self, n: int) -> None:
        client = self.world.clients[n]
        t = client.started
        self.say(client.id, t + 0.005, "start", version=VERSION, client=client.id)
        self._connects(n, t + 0.01)
        if client.advertisement is not None:
            told = f'"id":"{client.source}:1","client":"{client.id}",{client.advertisement.fields}'
            self._asks(client, "advertise", t + 0.02, told)
            self.traffic.spread(n, set(range(len(self.world.brokers))))
        for each in self.world.subscriptions:
            if each.client == n and each.confirmed < self.world.publish_from:
                self._subscribes(each, each.confirmed)

    def _connects(self, n: int, t: float) -> None:
        client = self.world.clients[n]
        broker = self.world.brokers[client.broker].id
        self.say(broker, t, "client_up", client=client.id, policy="block", resumed=False)
        self.say(client.id, t + 0.001, "connected", broker=broker, resumed=False)
        self.traffic.open(client.broker, client.id)

    def _asks(self, client: Client, kind: str, t: float, fields: str, *, again: bool = False) -> None:
        """The broker takes it, then the client knows; what it issues again, the client does not log."""
        broker = self.logs.get(self.world.brokers[client.broker].id)
        if broker is not None:
            broker.add_text(t - TAKEN_S, kind, fields)
        if client.id in self.logs and not again:
            self.logs[client.id].add_text(t, kind, f'{fields},"ack_s":0.0015')

    def _subscribes(self, each: Subscription, t: float, *, again: bool = False) -> None:
        client = self.world.clients[each.client]
        told = f'"id":"{each.id}","client":"{client.id}",{each.filter.fields}'
        self._asks(client, "subscribe", t, told, again=again)
        publishing = {self.world.clients[n].broker for n in self.world.publishers}
        self.traffic.spread(each.client, publishing)
        for broker in {b for target in publishing for b in self.world.path(client.broker, target)}:
            self.traffic.subscriptions[broker] += 1

    # In mid-run

    def happenings(self) -> list[Happening]:
        found: list[Happening] = []
        for each in self.world.subscriptions:
            if each.confirmed > self.world.publish_from:
                found.append((each.taken, partial(self._subscribes, each, each.confirmed)))
            if each.withdrawn is not None:
                found.append((each.withdrawn, partial(self._withdraws, each)))
        found += [
            (client.ended, partial(self._client_ends, n, client.ended))
            for n, client in enumerate(self.world.clients)
            if client.ended < float("inf")
        ]
        for fault in self.world.faults:
            self._truth_of(fault)
            if fault.kind == "cut":
                found.append((fault.at, partial(self._cut, fault)))
            elif fault.kind == "restart":
                found.append((fault.at, partial(self._kill, fault)))
                found.append((fault.until, partial(self._restart, fault)))
        return found

    def _truth_of(self, fault: Fault) -> None:
        kind = "kill" if fault.kind == "restart" else fault.kind
        names = [self.world.brokers[n].id for n in fault.brokers]
        if fault.client is not None:
            names.append(self.world.clients[fault.client].id)
        a, b = sorted(names) if len(names) > 1 else (names[0], "")
        t0 = self.world.t0
        self.truth.faults.append(FaultInterval(kind, a, b, fault.at - t0, fault.until - t0))

    def _withdraws(self, each: Subscription) -> None:
        assert each.withdrawn is not None
        client = self.world.clients[each.client]
        told = {"id": each.id, "client": client.id}
        self.say(client.id, each.withdrawn, "unsubscribe", **told)
        broker = self.world.brokers[client.broker].id
        self.say(broker, each.withdrawn + TAKEN_S, "unsubscribe", **told)

    def _client_ends(self, n: int, t: float) -> None:
        client = self.world.clients[n]
        broker = self.world.brokers[client.broker].id
        if client.killed:
            if client.id in self.logs:
                self.logs[client.id].plant("truncated", 0)
            self.journals.exited(client.host, t, client.id, signal=9)
            reason = "closed by the peer"
        else:
            self.say(client.id, t, "disconnected", reason="closed")
            self.journals.exited(client.host, t, client.id)
            reason = "closed"
        self.traffic.end(client.broker, client.id, t + 0.001)
        self.say(broker, t + 0.001, "client_down", client=client.id, reason=reason, ended=True)

    def _cut(self, fault: Fault) -> None:
        a, b = fault.brokers
        lasts_s = round(fault.until - fault.at, 6)
        for one, other in ((a, b), (b, a)):
            here, there = self.world.brokers[one], self.world.brokers[other]
            about = {"fault": "cut", "peer": there.id}
            self.say(here.id, fault.at, "fault", **about, for_s=lasts_s)
            self.say(
                here.id, fault.at + 0.001, "link_down", peer=there.id, reason="cut by a fault", ended=False
            )
            self.say(here.id, fault.until, "heal", **about, lasted_s=lasts_s)
            fields = {"process": here.id, **about, "value": None}
            self.journals.event(here.host, fault.at, "fault", **fields, until=("t", fault.until))
            self.journals.link(here.host, fault.at + 0.002, here.id, there.id, False, "cut by a fault")
            self.journals.event(here.host, fault.until + 0.001, "healed", **fields)
        self._link_up(a, b, fault.healthy - 0.001, resumed=True)

    def _kill(self, fault: Fault) -> None:
        (n,) = fault.brokers
        broker = self.world.brokers[n]
        self.journals.exited(broker.host, fault.at, broker.id, signal=9)
        self.traffic.kill(n)
        for other in broker.neighbours:
            peer = self.world.brokers[other]
            told = {"peer": broker.id, "reason": "closed by the peer"}
            self.say(peer.id, fault.at + 0.002, "link_down", **told, ended=False)
            self.journals.link(peer.host, fault.at + 0.003, peer.id, broker.id, False, "closed by the peer")
        for client in self._there(n, fault.at):
            self.say(client.id, fault.at + 0.002, "disconnected", reason="closed by the peer")

    def _restart(self, fault: Fault) -> None:
        (n,) = fault.brokers
        broker = self.world.brokers[n]
        self._broker_starts(n, fault.until + 0.001)
        t = fault.until + 0.25 * (fault.healthy - fault.until)
        for other in broker.neighbours:
            self.traffic.end(other, broker.id, t)
            self._link_up(n, other, t + 0.0001, resumed=False)
        for client in self._there(n, fault.at):
            number = self.world.clients.index(client)
            t = fault.until + 0.5 * (fault.healthy - fault.until)
            self._connects(number, t)
            for each in self.world.subscriptions:
                if each.client == number and each.confirmed < t and (each.withdrawn or float("inf")) > t:
                    self._subscribes(each, t + 0.004, again=True)

    def _there(self, broker: int, t: float) -> list[Client]:
        return [
            each for each in self.world.clients if each.broker == broker and each.started < t < each.ended
        ]

    # The end

    def end(self, t: float) -> None:
        """Publishers have done their work; then everything else is stopped at about `t`."""
        for n, client in enumerate(self.world.clients):
            if client.publishes:
                self._client_ends(n, t - 1.0)
        for n, client in enumerate(self.world.clients):
            if not client.publishes and client.ended == float("inf"):
                self._client_ends(n, t - 0.3)
        for n, broker in enumerate(self.world.brokers):
            self.traffic.stop(n, t)
            self.say(broker.id, t, "stop", reason="SIGTERM")
            for other in broker.neighbours:
                peer = self.world.brokers[other].id
                self.say(broker.id, t + 0.0002, "link_down", peer=peer, reason="SIGTERM", ended=True)
                self.journals.link(broker.host, t + 0.001, broker.id, peer, False, "SIGTERM")
            self.journals.exited(broker.host, t + 0.001, broker.id)
        self.journals.end(t)
