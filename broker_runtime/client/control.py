"""Decides how a client steers brokers and follows messages, all of it by publish/subscribe.

A command is a BROKER_CONTROL publication with a request id; its answer is the BROKER_INFO publication with
the same id. A route to a broker may not have formed yet, so a broker is first asked `info`, which may be
asked again and again, and gets its command, which may not, once it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from broker_runtime.client.errors import ClientError, ControlFailed, NoAnswer
from broker_runtime.client_core import Notification
from broker_runtime.control.words import BROKER_CONTROL, BROKER_INFO, BROKER_TRACE
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.predicates import Op, predicate
from broker_runtime.language.values import Type, Value

if TYPE_CHECKING:
    from broker_runtime.client.connection import Client

CONTROL_ATTRIBUTES: Final = ("request", "kind", "text", "peer")
ASK_AGAIN_MIN_S: Final = 0.05
ASK_AGAIN_MAX_S: Final = 1.0


class BrokerInfo(msgspec.Struct, frozen=True):
    """What a broker says of itself; `payload` is a command's answer."""

    broker: str
    content: Mapping[str, Value]
    payload: bytes = b""

    def tables(self) -> dict[str, Any]:
        """The answer to `tables`: advertisements, subscriptions, links and the overlay."""
        found: dict[str, Any] = msgspec.json.decode(self.payload)
        return found


class Step(msgspec.Struct, frozen=True):
    """A traced publication at one broker: where from, where to, after how many hops, when."""

    broker: str
    came_from: str
    goes_to: tuple[str, ...]
    hops: int
    time: float


class Trace(msgspec.Struct, frozen=True):
    """The way of one publication, in order; `complete` says whether every broker on it reported."""

    id: str
    steps: tuple[Step, ...]
    complete: bool


class ControlDesk:
    """A client's requests to brokers and the answers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ready = asyncio.Lock()
        self._is_ready = False
        self._number = 0
        self._answers: dict[str, asyncio.Future[BrokerInfo]] = {}
        self._reached: dict[str, None] = {}  # brokers that have answered in this session
        self._traced: dict[str, dict[str, Step]] | None = None  # while tracing: by publication, by broker
        self._tracing = asyncio.Lock()
        self._reported = asyncio.Event()

    async def control(
        self, broker: str, command: str, payload: bytes, fields: Mapping[str, Value], timeout_s: float
    ) -> BrokerInfo:
        for name in fields:
            if name not in CONTROL_ATTRIBUTES:
                raise ValueError(f"a command has no field {name!r}; it may have kind, text and peer")
        try:
            async with asyncio.timeout(timeout_s):
                await self._reach(broker)
                answer = await self._ask(broker, command, payload, fields, again=False)
        except TimeoutError:
            raise NoAnswer(
                f"{broker} did not answer within {timeout_s:g} s: it may be down, without a monitor,"
                " or behind a paused broker (then connect to that one)"
            ) from None
        error = answer.content.get("error")
        if error:
            raise ControlFailed(broker, str(error))
        return answer

    async def brokers(self, timeout_s: float) -> list[BrokerInfo]:
        own = self._client.broker
        known = await self._known(timeout_s)
        asked = [self.control(broker, "info", b"", {}, timeout_s) for broker in sorted({own, *known})]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, NoAnswer):
                raise answer
        return [answer for answer in answers if isinstance(answer, BrokerInfo)]

    async def trace(self, publication: str | Mapping[str, object], payload: bytes, timeout_s: float) -> Trace:
        brokers = {info.broker for info in await self.brokers(timeout_s)}
        async with self._tracing:
            return await self._trace(publication, payload, brokers, timeout_s)

    async def _trace(
        self,
        publication: str | Mapping[str, object],
        payload: bytes,
        brokers: set[str],
        timeout_s: float,
    ) -> Trace:
        self._traced = {}
        try:
            id_ = await self._client.publish(publication, payload, trace=True)
            complete = True
            try:
                async with asyncio.timeout(timeout_s):
                    while not self._all_reported(id_, brokers):
                        self._reported.clear()
                        await self._reported.wait()
            except TimeoutError:
                complete = False
            steps = self._traced.get(id_, {}).values()
            return Trace(id_, tuple(sorted(steps, key=lambda step: (step.hops, step.broker))), complete)
        finally:
            self._traced = None

    async def settle(self) -> None:
        """Wait until every broker has acted on all that this client advertised and subscribed before.

        Links keep order, so a subscription that goes to every broker, and the confirmation that all have
        let go of it, push everything before them through, in both directions.
        """
        client = self._client
        nothing = self._next_request()
        probe = Subscription((predicate(CLASS, Op.EQ, BROKER_TRACE), predicate("id", Op.EQ, nothing)))
        handle = await client.subscribe(probe)
        await handle.unsubscribe()

    def forget_routes(self) -> None:
        self._reached.clear()

    def fail(self, error: ClientError) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)
                answer.exception()

    # Inside

    async def _reach(self, broker: str) -> None:
        """Have the broker answer once: then requests reach it and answers come back."""
        await self._prepare()
        if broker not in self._reached:
            await self._ask(broker, "info", b"", {}, again=True)
            self._reached[broker] = None

    async def _prepare(self) -> None:
        async with self._ready:
            if self._is_ready:
                return
            client = self._client
            for class_, name, prefix, sink in (
                (BROKER_TRACE, "id", f"{client.source}:", self._take_report),
                (BROKER_INFO, "request", f"{client.source}/", self._take_answer),
            ):
                wanted = (predicate(CLASS, Op.EQ, class_), predicate(name, Op.PREFIX, prefix))
                await client.subscribe_with(Subscription(wanted), sink)
            await client.advertise(
                Advertisement(
                    (
                        predicate(CLASS, Op.EQ, BROKER_CONTROL),
                        predicate("broker", Op.PRESENT, Type.STRING),
                        predicate("command", Op.PRESENT, Type.STRING),
                        *(predicate(name, Op.PRESENT, Type.STRING) for name in CONTROL_ATTRIBUTES),
                    )
                )
            )
            self._is_ready = True

    async def _known(self, timeout_s: float) -> set[str]:
        """The brokers of the overlay, as the client's own broker knows it."""
        answer = await self.control(self._client.broker, "tables", b"", {}, timeout_s)
        return {broker for edge in answer.tables()["overlay"] for broker in edge[-2:]}

    async def _ask(
        self, broker: str, command: str, payload: bytes, fields: Mapping[str, Value], *, again: bool
    ) -> BrokerInfo:
        request = self._next_request()
        content = {CLASS: BROKER_CONTROL, "broker": broker, "command": command, "request": request, **fields}
        answer: asyncio.Future[BrokerInfo] = asyncio.get_running_loop().create_future()
        self._answers[request] = answer
        pause_s = ASK_AGAIN_MIN_S
        try:
            while True:
                await self._client.publish(content, payload)
                if not again:
                    return await answer
                done, _ = await asyncio.wait((answer,), timeout=pause_s)
                if done:
                    return answer.result()
                pause_s = min(pause_s * 2, ASK_AGAIN_MAX_S)
        finally:
            self._answers.pop(request, None)

    def _take_answer(self, notification: Notification) -> None:
        answer = self._answers.get(str(notification.content.get("request", "")))
        if answer is not None and not answer.done():
            broker = str(notification.content["broker"])
            answer.set_result(BrokerInfo(broker, notification.content, notification.payload))

    def _take_report(self, notification: Notification) -> None:
        if self._traced is None:
            return
        content = notification.content
        goes_to = tuple(hop for hop in str(content["to"]).split(",") if hop)
        hops, time = content["hops"], content["time"]
        assert isinstance(hops, int)
        assert isinstance(time, float | int)
        step = Step(str(content["broker"]), str(content["from"]), goes_to, hops, float(time))
        self._traced.setdefault(str(content["id"]), {})[step.broker] = step
        self._reported.set()

    def _all_reported(self, id_: str, brokers: set[str]) -> bool:
        assert self._traced is not None
        steps = self._traced.get(id_, {})
        expected = {self._client.broker}.union(*(step.goes_to for step in steps.values())) & brokers
        return expected <= set(steps)

    def _next_request(self) -> str:
        self._number += 1
        return f"{self._client.source}/{self._number}"


class Steering:
    """The verbs of a client that concern brokers and ways rather than its own messages."""

    desk: ControlDesk

    async def control(
        self, broker: str, command: str, *, timeout_s: float = 10.0, payload: bytes = b"", **fields: Value
    ) -> BrokerInfo:
        """Have a broker carry out a command; its answer. ControlFailed, or NoAnswer when none comes."""
        return await self.desk.control(broker, command, payload, fields, timeout_s)

    async def brokers(self, timeout_s: float = 10.0) -> list[BrokerInfo]:
        """Every broker that can be reached from here and answers, by id."""
        return await self.desk.brokers(timeout_s)

    async def trace(
        self, publication: str | Mapping[str, object], payload: bytes = b"", *, timeout_s: float = 10.0
    ) -> Trace:
        """Publish, and find the way that the publication took through the network."""
        return await self.desk.trace(publication, payload, timeout_s)

    async def settle(self) -> None:
        """Wait until the whole network has acted on what this client advertised and subscribed so far.

        A publication right after `advertise` may find no way to a distant subscriber; after `settle` it
        does. Waits as long as a broker on the way is paused or down. Brokers without a monitor are passed
        over; so are those behind a broker that has a subscription to all of BROKER_TRACE.
        """
        await self.desk.settle()
