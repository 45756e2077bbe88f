"""Decides how a program meets `ClientCore`: calls that wait for their answer, queues with a bound."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from broker_runtime.addresses import parse_address
from broker_runtime.client.control import BrokerInfo, ControlDesk, Trace
from broker_runtime.client.errors import (
    ClientClosed,
    ClientError,
    NotAllPublished,
    PublicationLost,
    QueueFull,
    Unreachable,
    message_refused,
    not_admitted,
)
from broker_runtime.client.handles import AdvertisementHandle, Handler, SubscriptionHandle
from broker_runtime.client.records import Recorder
from broker_runtime.client.tokens import find_token
from broker_runtime.client_core import (
    Acknowledged,
    ClientCore,
    ClientSettings,
    Confirmed,
    Connected,
    Disconnected,
    Failed,
    Happening,
    Lost,
    Noticed,
    Notification,
    Refused,
)
from broker_runtime.language.identifiers import check_id
from broker_runtime.language.messages import Advertisement, Subscription
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.language.values import Value
from broker_runtime.link.session import LinkSettings, Policy
from broker_runtime.net.clock import now
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.shell import Shell
from broker_runtime.seam import Command, DialFailed, Effect, Input

ERRORS_KEPT_MAX: Final = 100
CLOSE_TIMEOUT_S: Final = 5.0

Change = Connected | Disconnected | Noticed
Publication = str | Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """What a program may choose, beside address, id and token."""

    connect_timeout_s: float = 10.0  # how long an unreachable broker is dialled at first
    notifications_max: int = 10_000  # held for the program; beyond it the broker has to wait
    policy: Policy = Policy.BLOCK  # what the broker does when this client does not keep up
    broker_queue_length_max: int = 0  # of the broker's queue for this client; 0 takes the broker's own
    on_change: Callable[[Change], None] | None = None
    log: Path | None = None
    log_every: int = 0  # log each publication whose number is a multiple; 0 logs none, 1 all
    run: str = ""
    link: LinkSettings = field(default_factory=LinkSettings)


def connect(
    address: str,
    id: str = "",  # noqa: A002 — the word that users know
    *,
    token: str = "",
    token_file: Path | str | None = None,
    options: ClientOptions | None = None,
) -> Client:
    """A client of the broker at `host:port`: `async with connect(…) as c`, or `c = await connect(…)`."""
    return Client(address, id, find_token(token, token_file), options or ClientOptions())


class Client:
    """One client, connected to one broker; reconnects and resumes by itself."""

    def __init__(self, address: str, id_: str, token: str, options: ClientOptions) -> None:
        source = random.SystemRandom()
        self.id = check_id(id_) if id_ else f"client-{source.randbytes(4).hex()}"
        self.address = str(parse_address(address))
        self.options = options
        self.broker = ""  # the broker's id, once connected
        self._settings = ClientSettings(
            id=self.id,
            address=self.address,
            token=token,
            incarnation=source.randbytes(4).hex(),
            policy=options.policy,
            queue_length_max=options.broker_queue_length_max,
            link=options.link,
        )
        self.source = f"{self.id}:{self._settings.incarnation}"  # begins the ids of all its messages
        self._random = source
        self._core: ClientCore
        self._shell: Shell | None = None
        self._loop: asyncio.AbstractEventLoop
        self._opened: asyncio.Future[None]
        self._record: Recorder
        self._unreachable = "no answer"
        self._error: ClientError | None = None
        self._answers: dict[str, asyncio.Future[None]] = {}  # by message id: acknowledged or refused
        self._confirmations: dict[str, asyncio.Future[None]] = {}
        self._withdrawn: dict[str, None] = {}  # unadvertisements that wait for their acknowledgement
        self._sinks: dict[str, Callable[[Notification], None]] = {}
        self._subscriptions: dict[str, SubscriptionHandle] = {}
        self._failures: list[ClientError] = []  # of publications that nobody awaits
        self._failure_count = 0
        self._queued = 0
        self._change: asyncio.Future[None] | None = None
        self._push_planned = False
        self._desk = ControlDesk(self)

    def __repr__(self) -> str:
        return f"<client {self.id} of {self.broker or 'no broker yet'} at {self.address}>"

    # Opening and closing

    def __await__(self) -> Generator[object, None, Client]:
        return self.open().__await__()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(CLOSE_TIMEOUT_S if error is None else 0.0)

    async def open(self) -> Client:
        """Connect. Unreachable after `connect_timeout_s`, NotAdmitted when the broker says no for good."""
        if self._shell is not None:
            return self
        self._check_usable()
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.create_future()
        log = LogWriter(self.options.log, self.id, self.options.run)
        self._record = Recorder(log, self.id, self.options.log_every)
        self._core = ClientCore(self._settings, self._random, now())
        self._shell = Shell(log, after=self._pump)
        self._shell.start(self)
        self._shell.carry_out(self._core.endpoint.drain_effects())
        try:
            async with asyncio.timeout(self.options.connect_timeout_s):
                await self._opened
        except TimeoutError:
            error = Unreachable(f"no broker at {self.address}: {self._unreachable}")
            await self._end(error)
            raise error from None
        except BaseException:
            await self._end(ClientClosed("the client did not open"))
            raise
        return self

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Say goodbye, once what was published is acknowledged or the time is over.

        Subscriptions end; notifications not handled yet are dropped.
        """
        if self._shell is None or self._shell.exited.done():
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._until(lambda: not self._core.unacknowledged)
        except (TimeoutError, ClientError):
            pass
        await self._end(ClientClosed(f"client {self.id} was closed"))

    async def _end(self, error: ClientError) -> None:
        shell = self._shell
        assert shell is not None
        if not shell.exited.done():
            shell.feed(Command("stop", "closed"))
        self._fail(error)
        for handle in list(self._subscriptions.values()):
            await handle.stop_handler()
        await shell.close()

    # Messages

    async def advertise(self, advertisement: str | Advertisement) -> AdvertisementHandle:
        """Completes when the first broker has taken it; MessageRefused when it will not."""
        if isinstance(advertisement, str):
            advertisement = parse_advertisement(advertisement, now=datetime.now(UTC))
        self._check_usable()
        id_ = self._core.advertise(advertisement)
        await self._answer(id_)
        return AdvertisementHandle(self, id_, advertisement)

    async def unadvertise(self, id_: str) -> None:
        self._check_usable()
        self._core.unadvertise(id_)
        self._withdrawn[id_] = None
        await self._answer(id_)

    async def subscribe(
        self, subscription: str | Subscription, handler: Handler | None = None
    ) -> SubscriptionHandle:
        """Completes when the first broker has taken it. With a handler, notifications go there, in order."""
        if isinstance(subscription, str):
            subscription = parse_subscription(subscription, now=datetime.now(UTC))
        self._check_usable()
        handle = SubscriptionHandle(self, subscription, handler)
        handle.id = self._core.subscribe(subscription)
        self._subscriptions[handle.id] = handle
        self._sinks[handle.id] = handle.push
        try:
            await self._answer(handle.id)
        except ClientError as error:
            self._forget(handle, error)
            raise
        return handle

    async def subscribe_with(self, subscription: Subscription, sink: Callable[[Notification], None]) -> str:
        """Subscribe for the client's own purposes: the sink is called at once and never queues."""
        self._check_usable()
        id_ = self._core.subscribe(subscription)
        self._sinks[id_] = sink
        await self._answer(id_)
        return id_

    async def unsubscribe(self, handle: SubscriptionHandle) -> None:
        """Completes when every broker that held the subscription has let go of it."""
        self._check_usable()
        self._core.unsubscribe(handle.id)
        self._forget(handle, None)
        self._plan_push()
        await self._future(self._confirmations, handle.id)

    async def publish(self, publication: Publication, payload: bytes = b"", trace: bool = False) -> str:
        """Completes when the first broker has taken it, with its id.

        NotAdvertised or MessageRefused when the broker will not, PublicationLost when that is unknown.
        """
        content = _content(publication)
        await self.drain()
        id_ = self._issue(content, payload, trace)
        await self._answer(id_)
        return id_

    def publish_soon(self, publication: Publication, payload: bytes = b"") -> str:
        """Queue a publication and go on; QueueFull when there is no room (`drain` waits for it)."""
        self._check_usable()
        if self._core.full:
            raise QueueFull("too many publications wait to be sent: await drain() before the next")
        id_ = self._issue(_content(publication), payload, trace=False)
        self._plan_push()
        return id_

    async def publish_all(self, publications: Iterable[Publication]) -> int:
        """Publish many as fast as the broker takes them; how many. Errors as `flush`."""
        count = 0
        for publication in publications:
            if self._core.full:
                await self.drain()
            self.publish_soon(publication)
            count += 1
        await self.flush()
        return count

    async def drain(self) -> None:
        """Wait until there is room for a publication."""
        self._check_usable()
        if self._core.full:
            self._push()
            await self._until(lambda: not self._core.full)

    async def flush(self) -> None:
        """Wait until the broker has answered everything; NotAllPublished when it did not take it all."""
        self._check_usable()
        self._push()
        await self._until(lambda: not self._core.unacknowledged)
        if self._failures:
            failures, count = self._failures, self._failure_count
            self._failures, self._failure_count = [], 0
            raise NotAllPublished(failures, count)

    async def settle(self) -> None:
        """Wait until the whole network has acted on what this client advertised and subscribed so far.

        A publication right after `advertise` may find no way to a distant subscriber; after `settle` it
        does. Waits as long as a broker on the way is paused or down. Brokers without a monitor are passed
        over; so are those behind a broker that has a subscription to all of BROKER_TRACE.
        """
        await self._desk.settle()

    @property
    def connected(self) -> bool:
        return self._shell is not None and not self._shell.exited.done() and self._core.connected

    @property
    def unacknowledged(self) -> int:
        return self._core.unacknowledged

    # Monitor and control

    async def control(
        self, broker: str, command: str, *, timeout_s: float = 10.0, payload: bytes = b"", **fields: Value
    ) -> BrokerInfo:
        """Have a broker carry out a command; its answer. ControlFailed, or NoAnswer when none comes."""
        return await self._desk.control(broker, command, payload, fields, timeout_s)

    async def brokers(self, timeout_s: float = 10.0) -> list[BrokerInfo]:
        """Every broker that can be reached from here, by id."""
        return await self._desk.brokers(timeout_s)

    async def trace(
        self, publication: Publication, payload: bytes = b"", *, timeout_s: float = 10.0
    ) -> Trace:
        """Publish, and find the way that the publication took through the network."""
        return await self._desk.trace(publication, payload, timeout_s)

    # The seam

    def handle(self, event: Input, at: float) -> list[Effect]:
        if isinstance(event, DialFailed):
            self._unreachable = event.reason
        return self._core.handle(event, at)

    def _pump(self) -> None:
        """Pass on what happened since the last input."""
        for happening in self._core.happenings():
            if happening.__class__ is Notification:
                self._notify(happening)
            else:
                self._happened(happening)
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    def _notify(self, notification: Notification) -> None:
        self._record.delivered(notification)
        for id_ in notification.subscriptions:
            sink = self._sinks.get(id_)
            if sink is not None:
                sink(notification)

    def _happened(self, happening: Happening) -> None:
        if isinstance(happening, Acknowledged):
            self._record.acknowledged(happening.id)
            self._withdrawn.pop(happening.id, None)
            _settle(self._answers.pop(happening.id, None), None)
        elif isinstance(happening, Confirmed):
            _settle(self._confirmations.pop(happening.id, None), None)
        elif isinstance(happening, Refused):
            self._refused(happening.id, message_refused(happening.id, happening.code, happening.message))
        elif isinstance(happening, Lost):
            self._refused(happening.id, PublicationLost(happening.id))
        elif isinstance(happening, Failed):
            self._fail(not_admitted(happening.code, happening.message))
        elif isinstance(happening, Connected | Disconnected | Noticed):
            self._changed(happening)

    def _changed(self, change: Change) -> None:
        self._record.changed(change)
        if isinstance(change, Connected):
            self.broker = change.broker
            if not change.resumed:  # an advertisement withdrawn from the old session is gone with it
                for id_ in self._withdrawn:
                    _settle(self._answers.pop(id_, None), None)
                self._withdrawn.clear()
                self._desk.forget_routes()
            _settle(self._opened, None)
        elif isinstance(change, Noticed) and change.code == "ID_IN_USE" and not self._opened.done():
            self._fail(not_admitted(change.code, change.message))
        if self.options.on_change is not None:
            self.options.on_change(change)

    def _refused(self, id_: str, error: ClientError) -> None:
        self._record.failed(id_)
        answer = self._answers.pop(id_, None)
        handle = self._subscriptions.get(id_)
        if answer is not None:
            _settle(answer, error)
        elif handle is not None:  # refused when it was issued again, after a reconnect
            self._forget(handle, error)
        else:
            self._failure_count += 1
            if len(self._failures) < ERRORS_KEPT_MAX:
                self._failures.append(error)

    # Bound of the notifications held

    def notification_queued(self) -> None:
        self._queued += 1
        if self._queued >= self.options.notifications_max:
            self._core.hold()

    def notification_taken(self, count: int = 1) -> None:
        self._queued -= count
        if self._core.held and self._queued * 2 <= self.options.notifications_max:
            self._core.release(now())
            self._plan_push()

    # Inside

    def _issue(self, content: Mapping[str, object], payload: bytes, trace: bool) -> str:
        at = now()
        id_ = self._core.publish(content, at, payload, trace)
        self._record.published(id_, at)
        return id_

    async def _answer(self, id_: str) -> None:
        self._plan_push()
        await self._future(self._answers, id_)

    async def _future(self, futures: dict[str, asyncio.Future[None]], id_: str) -> None:
        future = futures[id_] = self._loop.create_future()
        try:
            await future
        finally:
            futures.pop(id_, None)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._check_usable()
            if self._change is None:
                self._change = self._loop.create_future()
            await asyncio.shield(self._change)
        self._check_usable()

    def _plan_push(self) -> None:
        """Send at the end of this turn of the loop: calls made together leave in one write."""
        if not self._push_planned:
            self._push_planned = True
            self._loop.call_soon(self._push)

    def _push(self) -> None:
        self._push_planned = False
        if self._shell is not None and not self._shell.exited.done():
            self._shell.carry_out(self._core.flush())
            self._pump()

    def _forget(self, handle: SubscriptionHandle, error: ClientError | None) -> None:
        self._sinks.pop(handle.id, None)
        self._subscriptions.pop(handle.id, None)
        handle.end(error)
        self.notification_taken(handle.uncount())

    def _fail(self, error: ClientError) -> None:
        """Nothing works from here on: tell everybody who waits."""
        if self._error is None:
            self._error = error
        _settle(self._opened, self._error)
        for futures in (self._answers, self._confirmations):
            for future in list(futures.values()):
                _settle(future, self._error)
        closed = isinstance(self._error, ClientClosed)
        for handle in self._subscriptions.values():
            handle.end(None if closed else self._error)
        self._desk.fail(self._error)
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    def _check_usable(self) -> None:
        if self._error is not None:
            raise self._error


def _content(publication: Publication) -> Mapping[str, object]:
    if isinstance(publication, str):
        return parse_publication(publication, now=datetime.now(UTC))
    return publication


def _settle(future: asyncio.Future[None] | None, error: ClientError | None) -> None:
    """Complete a future that may be cancelled, done or not there."""
    if future is None or future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # somebody may have stopped waiting: that is no fault to report
