"""A small cluster with names, for scenarios that say what they mean: no faults but those of the test."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from broker_runtime.client_core import Confirmed, Happening, Notification
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.link.session import Policy
from broker_runtime.sim.checkers import check
from broker_runtime.sim.cluster import Cluster, Player
from broker_runtime.sim.options import Options

H = TypeVar("H", bound=Happening)


class World:
    """`World("B1-B3 B2-B3")`: brokers and links. The left one of each pair dials."""

    def __init__(self, links: str, **options: object) -> None:
        edges = [tuple(link.split("-")) for link in links.split() if "-" in link]
        names = sorted({name for link in links.split() for name in link.split("-")})
        self.options = Options(brokers=len(names), **options)  # type: ignore[arg-type]
        self.trace: list[str] = []
        self.cluster = Cluster(
            self.options,
            Random(1),
            edges,  # type: ignore[arg-type]
            names,
            self.trace.append,
        )
        self.network = self.cluster.network
        self.calm()

    def calm(self) -> None:
        assert self.cluster.settle(), self.cluster.history.problems

    def run(self, seconds: float) -> None:
        self.network.run_until(self.network.now + seconds)

    def checked(self) -> None:
        """Become quiet and let every checker look."""
        self.calm()
        assert check(self.cluster.history) == []

    # Clients

    def client(self, id_: str, broker: str, policy: Policy = Policy.BLOCK, queue: int = 0) -> Player:
        player = self.cluster.come(id_, broker, policy, queue)
        self.calm()
        return player

    def advertise(self, player: Player, text: str) -> str:
        return self.cluster.advertise(player, parse_advertisement(text))

    def subscribe(self, player: Player, text: str) -> str:
        return self.cluster.subscribe(player, parse_subscription(text))

    def publish(self, player: Player, text: str, payload: bytes = b"") -> str:
        return self.cluster.publish(player, parse_publication(text), payload)

    def got(self, player: Player) -> list[str]:
        """The ids of the publications that the client was notified of, in order."""
        return [each.id for each in self.told(player, Notification)]

    def told(self, player: Player, kind: type[H]) -> list[H]:
        return [each for each in player.happenings if isinstance(each, kind)]

    def confirmed(self, player: Player, id_: str) -> bool:
        return any(each.id == id_ for each in self.told(player, Confirmed))

    # Tables

    def subscriptions(self, broker: str) -> dict[str, str]:
        """Subscription id → the hop it came from."""
        entries = self.cluster.brokers[broker].router.subscription_entries(1000)
        return {id_: hop for id_, hop, _ in entries}

    def advertisements(self, broker: str) -> dict[str, str]:
        entries = self.cluster.brokers[broker].router.advertisement_entries(1000)
        return {id_: hop for id_, hop, _ in entries}

    def told_to(self, broker: str, neighbour: str) -> list[str]:
        return list(self.cluster.brokers[broker].router.neighbours[neighbour].subscriptions.told)

    def cut(self, a: str, b: str, *, silently: bool = False) -> None:
        for pipe in list(self.network.nodes[a].pipes.values()):
            if pipe.far.name == b:
                self.network.cut(pipe, silently)

    def logged(self, text: str) -> bool:
        return any(text in line for line in self.trace)
