"""Agents in virtual time for the coordinator: they start slowly, crash, lose links and connections."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from panda.deploy.coordinator import (
    Answered,
    Ask,
    Coordinator,
    Finish,
    Go,
    Happened,
    Input,
    Lost,
    Order,
    Present,
    Tell,
    Tick,
)
from panda.deploy.view import RunView
from panda.hosts.host import Host
from panda.plan.model import Plan, PlannedLink, PlannedProcess, PlannedStep


def chain(brokers: int, hosts: int, *, gate_timeout_s: float = 30.0, late: int = 2) -> Plan:
    """Brokers in a chain over some hosts at time 0, and clients later."""
    names = [f"h{n}" for n in range(hosts)]
    processes = [
        PlannedProcess(f"B{n}", names[n % hosts], "runtime", "broker", (), f"id{n}", 1, 0.0)
        for n in range(brokers)
    ]
    processes += [
        PlannedProcess(
            f"C{n}", names[n % hosts], "runtime", "sqpublisher", (), f"c{n}", 2, 1.0 + n, publishes=True
        )
        for n in range(late)
    ]
    return Plan(
        run="r",
        name="chain",
        hosts=tuple(Host(name) for name in names),
        processes=tuple(processes),
        links=tuple(PlannedLink(f"B{n}", f"B{n - 1}") for n in range(1, brokers)),
        steps=tuple(
            PlannedStep(n + 1, each.at_s, "add", each.host, each.id) for n, each in enumerate(processes)
        ),
        gate_timeout_s=gate_timeout_s,
    )


class World:
    """Plays agents against a coordinator; every run of a seed is the same."""

    def __init__(self, plan: Plan, seed: int = 0, **options: Any) -> None:
        self.plan = plan
        self.random = random.Random(seed)
        self.view = RunView(plan)
        self.coordinator = Coordinator(plan, self.view, **options)
        self.now = 0.0
        self.told: list[Tell] = []
        self.finish: Finish | None = None
        self.go: Go | None = None
        self.alive: dict[str, bool] = {}
        self.links: dict[tuple[str, str], bool] = {}
        self.confirmed: dict[str, bool] = {}  # host → whether its part was whole when it last confirmed
        self.confirmed_at_go: dict[str, bool] = {}
        self.started_before_go: list[str] = []
        self.frozen: set[str] = set()
        self.loaded: set[str] = set()
        self.crash: dict[str, float] = {}  # process → seconds after its start
        self.delay_s: Callable[[], float] = lambda: self.random.uniform(0.001, 2.0)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._seq = dict.fromkeys(self.view.hosts, 0)
        self._free_at = dict.fromkeys(self.view.hosts, 0.0)  # a connection keeps order

    def at(self, delay_s: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._number, act))

    def feed(self, event: Input) -> None:
        self.carry_out(self.coordinator.handle(event, self.now))

    def play(self, until_s: float = 200.0) -> Finish | None:
        """Until the coordinator is done, or for so long."""
        for name in self.view.hosts:
            self.feed(Present(name))
        self.carry_out(self.coordinator.begin(self.now))
        while self.finish is None and self.now < until_s:
            wake = self.coordinator.wake_at
            due = self._queue[0][0] if self._queue else until_s
            if wake is not None and wake <= due:
                self.now = max(self.now, wake)
                self.feed(Tick())
            elif self._queue:
                self.now, _, act = heapq.heappop(self._queue)
                act()
            else:
                self.now = until_s
        return self.finish

    def carry_out(self, orders: list[Order]) -> None:
        for order in orders:
            if isinstance(order, Tell):
                self.told.append(order)
            elif isinstance(order, Finish):
                assert self.finish is None, "a deployment ends once"
                self.finish = order
            elif isinstance(order, Go):
                assert self.go is None, "GO is given once"
                self.go = order
                self.confirmed_at_go = dict(self.confirmed)
                for name in self.view.hosts:
                    self.answer(name, "go")
            else:
                self.agent(order)

    def agent(self, ask: Ask) -> None:
        if ask.host in self.frozen:
            return
        if ask.do == "load":
            self.loaded.add(ask.host)
            self.event(ask.host, "loaded")
        elif ask.do == "start":
            assert ask.host in self.loaded, "a host starts what it has been given"
            for process in self.plan.first_phase:
                if process.host == ask.host and process.id not in self.alive:
                    self.start(process.id)
        elif ask.do == "clock":
            self.confirmed[ask.host] = self.whole(ask.host)
        elif ask.do == "stop":
            for process in self.plan.processes:
                if process.host == ask.host:
                    self.alive[process.id] = False
            self.event(ask.host, "stopped")
        self.answer(ask.host, ask.do)

    def answer(self, host: str, do: str) -> None:
        self._in_order(host, lambda: self.feed(Answered(host, do)))

    def event(self, host: str, kind: str, **fields: Any) -> None:
        self._seq[host] += 1
        event = {"seq": self._seq[host], "t": self.now, "kind": kind, **fields}
        self._in_order(host, lambda: self.feed(Happened(host, event)))

    def _in_order(self, host: str, act: Callable[[], None]) -> None:
        arrival = max(self.now + self.random.uniform(0.0001, 0.05), self._free_at[host])
        self._free_at[host] = arrival
        self.at(arrival - self.now, act)

    def start(self, id_: str) -> None:
        process = self.plan.process(id_)
        if process.phase == 2 and self.go is None:
            self.started_before_go.append(id_)
        self.alive[id_] = True
        self.event(process.host, "started", process=id_, pid=1)
        if id_ in self.crash:
            self.at(self.crash[id_], lambda: self.die(id_))
        self.at(self.delay_s(), lambda: self.ready(id_))

    def ready(self, id_: str) -> None:
        if not self.alive.get(id_):
            return
        self.event(self.plan.process(id_).host, "ready", process=id_)
        for link in self.plan.links:
            if id_ in (link.a, link.b):
                self.at(self.delay_s(), lambda a=link.a, b=link.b: self.set_link(a, b, True))

    def set_link(self, a: str, b: str, up: bool) -> None:
        if up and not (self.alive.get(a) and self.alive.get(b)):
            return
        for one, other in ((a, b), (b, a)):
            if self.links.get((one, other), False) != up and self.alive.get(one):
                self.links[(one, other)] = up
                there = self.plan.process(one)
                self.event(there.host, "link", process=one, peer=self.plan.process(other).speaks, up=up)

    def die(self, id_: str) -> None:
        self.alive[id_] = False
        for link in self.plan.links:
            if id_ in (link.a, link.b):
                self.set_link(link.a, link.b, False)
        self.event(self.plan.process(id_).host, "exited", process=id_, code=1, expected=False, last="boom")

    def lose(self, host: str, for_s: float) -> None:
        self.frozen.add(host)
        self.feed(Lost(host, "no answer"))
        self.at(for_s, lambda: self.back(host))

    def back(self, host: str) -> None:
        self.frozen.discard(host)
        self.feed(Present(host))

    def whole(self, host: str) -> bool:
        """Whether the host's part of phase 1 is really there."""
        ends = [pair for link in self.plan.gate_links for pair in ((link.a, link.b), (link.b, link.a))]
        return all(self.alive.get(each.id) for each in self.plan.first_phase if each.host == host) and all(
            self.links.get(pair) for pair in ends if self.plan.process(pair[0]).host == host
        )
