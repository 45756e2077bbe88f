"""Decides how lines are carried out by a client of one broker, and tells what came of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from broker_runtime.client import (
    AdvertisementHandle,
    Client,
    ClientError,
    NotAdvertised,
    Notification,
    SubscriptionHandle,
    Trace,
)
from broker_runtime.language import (
    CLASS,
    Advertisement,
    Op,
    Type,
    Value,
    parse_advertisement,
    parse_publication,
    parse_subscription,
    predicate,
    print_advertisement,
    print_publication,
    print_subscription,
)
from panda_tui.messages.completion import Vocabulary
from panda_tui.messages.words import WORDS, Line, injection


class Kind(StrEnum):
    DONE = "done"
    PROBLEM = "problem"
    NOTE = "note"
    ARRIVED = "arrived"


Tell = Callable[[Kind, str], None]


class WordRefused(Exception):
    """A line that cannot be carried out; `instead` is one that would help."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.instead = instead


@dataclass(frozen=True, slots=True)
class Standing:
    """What this client has advertised and subscribed, by the names that a person types."""

    advertised: dict[str, AdvertisementHandle]
    subscribed: dict[str, SubscriptionHandle]


class Desk:
    """One stay at one broker. What was advertised and subscribed ends with it."""

    def __init__(self, client: Client, tell: Tell, vocabulary: Vocabulary) -> None:
        self.client = client
        self.standing = Standing({}, {})
        self.counts: dict[str, int] = {}  # notifications, by subscription
        self.traced: Trace | None = None
        self._tell = tell
        self._vocabulary = vocabulary
        self._number = 0

    async def carry_out(self, line: Line) -> None:
        """ClientError, ValueError or WordRefused when it cannot be done."""
        await _ACTS[line.word.name](self, line.rest)

    # Words

    async def advertise(self, text: str) -> None:
        advertisement = parse_advertisement(text, now=datetime.now(UTC))
        self._vocabulary.learn_predicates(advertisement)
        handle = await self.client.advertise(advertisement)
        name = self._name("a")
        self.standing.advertised[name] = handle
        self._tell(Kind.DONE, f"advertised {name}: {print_advertisement(advertisement)}")

    async def subscribe(self, text: str) -> None:
        subscription = parse_subscription(text, now=datetime.now(UTC))
        self._vocabulary.learn_predicates(subscription)
        name = self._name("s")
        self.counts[name] = 0

        def arrived(notification: Notification) -> None:
            self.counts[name] += 1
            self._vocabulary.learn(notification.content)
            payload = f" + {len(notification.payload)} bytes" if notification.payload else ""
            text = print_publication(notification.content)
            self._tell(
                Kind.ARRIVED, f"{name} ← {text}{payload}  {_hops(notification.hops)}, {notification.id}"
            )

        handle = await self.client.subscribe(subscription, arrived)
        self.standing.subscribed[name] = handle
        self._tell(Kind.DONE, f"subscribed {name}: {print_subscription(subscription)}")

    async def publish(self, text: str) -> None:
        content = parse_publication(text, now=datetime.now(UTC))
        self._vocabulary.learn(content)
        try:
            id_ = await self.client.publish(content)
        except NotAdvertised as error:
            raise WordRefused(str(error), f"advertise {print_advertisement(promise_of(content))}") from None
        self._tell(Kind.DONE, f"published {id_}")

    async def trace(self, text: str) -> None:
        content = parse_publication(text, now=datetime.now(UTC))
        self._vocabulary.learn(content)
        try:
            self.traced = await self.client.trace(content)
        except NotAdvertised as error:
            raise WordRefused(str(error), f"advertise {print_advertisement(promise_of(content))}") from None
        self._tell(Kind.DONE, way_of_words(self.traced))

    async def unsubscribe(self, names: str) -> None:
        for name in _chosen(names, list(self.standing.subscribed)):
            await self.standing.subscribed.pop(name).unsubscribe()
            count = self.counts.pop(name)
            ending = "" if count == 1 else "s"
            self._tell(Kind.DONE, f"unsubscribed {name} after {count} notification{ending}")

    async def unadvertise(self, names: str) -> None:
        for name in _chosen(names, list(self.standing.advertised)):
            await self.standing.advertised.pop(name).unadvertise()
            self._tell(Kind.DONE, f"unadvertised {name}")

    async def show_list(self, _: str) -> None:
        self._tell(Kind.NOTE, "\n".join(self.standing_lines()) or "nothing is advertised or subscribed")

    def standing_lines(self) -> list[str]:
        advertised = [
            f"{name}  {print_advertisement(handle.advertisement)}"
            for name, handle in self.standing.advertised.items()
        ]
        subscribed = [
            f"{name}  {print_subscription(handle.subscription)}  ({self.counts[name]})"
            for name, handle in self.standing.subscribed.items()
        ]
        return advertised + subscribed

    async def info(self, broker: str) -> None:
        if broker:
            infos = [await self.client.control(broker, "info")]
        else:
            infos = await self.client.brokers()
        for each in infos:
            about = each.content
            self._tell(
                Kind.NOTE,
                f"{each.broker}: {about.get('state')}, {about.get('subscriptions')} subscriptions,"
                f" {about.get('rate_in')} in/s, {about.get('rate_out')} out/s,"
                f" {about.get('queue_length')} waiting, links {about.get('neighbours') or 'none'}",
            )

    async def settle(self, _: str) -> None:
        await self.client.settle()
        self._tell(Kind.DONE, "every broker has acted on what was advertised and subscribed")

    async def inject(self, rest: str) -> None:
        broker, kind, text = injection(rest)
        answer = await self.client.control(broker, "inject", kind=kind, text=text)
        id_ = answer.payload.decode("utf-8", "replace")
        self._tell(Kind.DONE, f"{answer.broker}: {kind} done {id_}".rstrip())

    async def help(self, _: str) -> None:
        self._tell(Kind.NOTE, "\n".join(f"{word.usage:<46}{word.does}" for word in WORDS))

    def _name(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


_ACTS: Final[dict[str, Callable[[Desk, str], Awaitable[None]]]] = {
    "advertise": Desk.advertise,
    "subscribe": Desk.subscribe,
    "publish": Desk.publish,
    "trace": Desk.trace,
    "unsubscribe": Desk.unsubscribe,
    "unadvertise": Desk.unadvertise,
    "list": Desk.show_list,
    "info": Desk.info,
    "settle": Desk.settle,
    "inject": Desk.inject,
    "help": Desk.help,
}


def promise_of(content: dict[str, Value]) -> Advertisement:
    """The advertisement of publications with this class and these attributes, whatever their values."""
    promised = [predicate(CLASS, Op.EQ, content[CLASS])]
    promised += [predicate(name, Op.PRESENT, Type.ANY) for name in content if name != CLASS]
    return Advertisement(promised)


def way_of_words(trace: Trace) -> str:
    lines = [f"traced {trace.id}" + ("" if trace.complete else ": not every broker has told")]
    first = trace.steps[0].time if trace.steps else 0.0
    lines += [
        f"  {step.broker}: from {step.came_from} to {', '.join(step.goes_to) or 'nobody'},"
        f" {1e3 * (step.time - first):+.1f} ms"
        for step in trace.steps
    ]
    return "\n".join(lines)


def _hops(count: int) -> str:
    return f"{count} hop" if count == 1 else f"{count} hops"


def _chosen(names: str, known: list[str]) -> list[str]:
    if names == "all":
        return known
    chosen = names.split()
    for name in chosen:
        if name not in known:
            raise WordRefused(f"there is no {name}, but {', '.join(known) or 'none at all'}")
    return chosen


FAILURES: Final = (ClientError, WordRefused, ValueError, OSError)
