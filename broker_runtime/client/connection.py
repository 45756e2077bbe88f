"""Decides how a program meets `ClientCore`: calls that wait for their answer, queues with a bound."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

from broker_runtime.addresses import parse_target
from broker_runtime.client.answers import Answers, settle
from broker_runtime.client.control import ControlDesk, Steering
from broker_runtime.client.errors import (
    ClientClosed,
    ClientError,
    PublicationLost,
    QueueFull,
    Unreachable,
    WrongBroker,
    message_refused,
    not_admitted,
    plain_reason,
)
from broker_runtime.client.handles import AdvertisementHandle, Handler, SubscriptionHandle
from broker_runtime.client.inbox import Inbox
from broker_runtime.client.options import Change, ClientOptions
from broker_runtime.client.records import Recorder
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
from broker_runtime.control.words import CONTROL_CLASSES
from broker_runtime.language.identifiers import check_id
from broker_runtime.language.messages import CLASS, Advertisement, Subscription
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.net.clock import now
from broker_runtime.net.faults import Faults
from broker_runtime.net.line import Line
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.shell import Shell
from broker_runtime.seam import Command, DialFailed, Effect, Input

CLOSE_TIMEOUT_S: Final = 5.0
CANCELLED_TIMEOUT_S: Final = 1.0
PIPELINE: Final = 256  # publications between two looks at the network

Publication = str | Mapping[str, object]


class Client(Steering):
    """One client, connected to one broker; reconnects and resumes by itself."""

    def __init__(
        self, address: str, id_: str, token: str, options: ClientOptions, line: Line | None = None
    ) -> None:
        source = random.SystemRandom()
        self.id = check_id(id_) if id_ else f"client-{source.randbytes(4).hex()}"
        try:
            target = parse_target(address)
        except ValueError as error:
            raise ValueError(f"{address!r}: {error}") from None
        self.address = str(target)
        self._wanted = target.id  # the broker that it has to be, if the address says so
        self.options = options
        self.line = line  # to the agent that started this process, if one did
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
        self._faults: Faults
        self._loop: asyncio.AbstractEventLoop
        self._opened: asyncio.Future[None]
        self._record: Recorder
        self._unreachable = ""  # why the last attempt failed
        self._away = False
        self._error: ClientError | None = None
        self._answers = Answers()
        self.inbox = Inbox(options.notifications_max, self._hold, self._release)
        self._change: asyncio.Future[None] | None = None
        self._push_planned = False
        self.desk = ControlDesk(self)

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
        patience_s = {type(None): CLOSE_TIMEOUT_S, asyncio.CancelledError: CANCELLED_TIMEOUT_S}
        await self.close(patience_s.get(type(error), 0.0))

    async def open(self) -> Client:
        """Connect. Unreachable after `connect_timeout_s`, NotAdmitted when the broker says no for good."""
        if self._shell is not None:
            self._check_usable()
            return self
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.create_future()
        log = LogWriter(self.options.log, self.id, self.options.run)
        self._record = Recorder(log, self.id, self.options.log_every)
        self._core = ClientCore(self._settings, self._random, now())
        self._shell = Shell(log, after=self._pump)
        self._shell.start(self)
        self._faults = Faults(self._shell, self._core.endpoint, self._random, log)
        self._shell.carry_out(self._core.endpoint.drain_effects())
        try:
            async with asyncio.timeout(self.options.connect_timeout_s):
                if self.line is not None:
                    await self.line.open(self._faults)
                await self._opened
        except TimeoutError:
            error = Unreachable(f"no broker at {self.address}: {self._unreachable or 'no answer'}")
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
        for handle in list(self.inbox.handles.values()):
            await handle.stop_handler()
        await shell.close()
        self._faults.close()
        if self.line is not None:
            await self.line.close()

    # Messages

    async def advertise(self, advertisement: str | Advertisement) -> AdvertisementHandle:
        """Completes when the first broker has taken it; MessageRefused when it will not."""
        if isinstance(advertisement, str):
            advertisement = parse_advertisement(advertisement, now=datetime.now(UTC))
        self._check_usable()
        id_ = self._core.advertise(advertisement)
        self._record.asked(id_, advertisement)
        try:
            await self._answer(id_)
        except asyncio.CancelledError:  # nobody will hold it
            self._withdraw_advertisement(id_)
            raise
        return AdvertisementHandle(self, id_, advertisement)

    async def unadvertise(self, id_: str) -> None:
        self._check_usable()
        self._withdraw_advertisement(id_)
        await self._answers.acknowledgement(id_, of_withdrawal=True)

    async def subscribe(
        self, subscription: str | Subscription, handler: Handler | None = None
    ) -> SubscriptionHandle:
        """Completes when the first broker has taken it. With a handler, notifications go there, in order."""
        if isinstance(subscription, str):
            subscription = parse_subscription(subscription, now=datetime.now(UTC))
        self._check_usable()
        handle = SubscriptionHandle(self, subscription, handler)
        handle.id = self._core.subscribe(subscription)
        self._record.asked(handle.id, subscription)
        self.inbox.add(handle)
        try:
            await self._answer(handle.id)
        except ClientError as error:
            self.inbox.forget(handle, error)
            raise
        except asyncio.CancelledError:  # nobody will hold it
            self._withdraw_subscription(handle)
            raise
        return handle

    async def subscribe_with(self, subscription: Subscription, sink: Callable[[Notification], None]) -> str:
        """Subscribe for the client's own purposes: the sink is called at once and never queues."""
        self._check_usable()
        id_ = self._core.subscribe(subscription)
        self.inbox.add_sink(id_, sink)
        await self._answer(id_)
        return id_

    async def unsubscribe(self, handle: SubscriptionHandle) -> None:
        """Completes when every broker that held the subscription has let go of it."""
        self._check_usable()
        self._withdraw_subscription(handle)
        await self._answers.confirmation(handle.id)

    async def publish(self, publication: Publication, payload: bytes = b"", trace: bool = False) -> str:
        """Completes when the first broker has taken it, with its id.

        NotAdvertised or MessageRefused when the broker will not, PublicationLost when that is unknown.
        """
        content = _content(publication)
        self._check_usable()
        if content.get(CLASS) not in CONTROL_CLASSES:  # those have a lane of their own
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
            if count % PIPELINE == 0:
                await asyncio.sleep(0)  # let these leave while the next are made
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
        self._answers.raise_failures()

    async def ended(self) -> None:
        """Wait until the client can go on no longer, and raise why."""
        await self._until(lambda: False)

    @property
    def connected(self) -> bool:
        return self._shell is not None and not self._shell.exited.done() and self._core.connected

    @property
    def unacknowledged(self) -> int:
        return self._core.unacknowledged

    # The seam

    def handle(self, event: Input, at: float) -> list[Effect]:
        if isinstance(event, DialFailed):
            self._dial_failed(plain_reason(event.reason))
        return self._core.handle(event, at)

    def _pump(self) -> None:
        """Pass on what happened since the last input."""
        for happening in self._core.happenings():
            if happening.__class__ is Notification:
                self._record.delivered(happening)
                self.inbox.deliver(happening)
            else:
                self._happened(happening)
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    def _happened(self, happening: Happening) -> None:
        if isinstance(happening, Acknowledged):
            self._record.acknowledged(happening.id)
            self._answers.acknowledged(happening.id)
        elif isinstance(happening, Confirmed):
            self._answers.confirmed(happening.id)
        elif isinstance(happening, Refused):
            self._refused(happening.id, message_refused(happening.id, happening.code, happening.message))
        elif isinstance(happening, Lost):
            self._refused(happening.id, PublicationLost(happening.id))
        elif isinstance(happening, Failed):
            self._fail(not_admitted(happening.code, happening.message))
        elif isinstance(happening, Connected | Disconnected | Noticed):
            self._changed(happening)

    def _dial_failed(self, reason: str) -> None:
        first, self._unreachable = not self._unreachable, reason
        if first and not self._opened.done() and self.options.on_wait is not None:
            self.options.on_wait(reason)

    def _changed(self, change: Change) -> None:
        if isinstance(change, Disconnected):
            if self._away:  # that the session has ended too is no news: the next connect tells
                return
            self._away = True
        self._record.changed(change)
        if isinstance(change, Connected):
            self._away = False
            if self._wanted not in ("", change.broker):
                self._fail(WrongBroker(self.address, self._wanted, change.broker))
                return
            self.broker = change.broker
            if not change.resumed:
                self._answers.session_replaced()
                self.desk.forget_routes()
            settle(self._opened, None)
        elif isinstance(change, Noticed) and change.code == "ID_IN_USE" and not self._opened.done():
            self._fail(not_admitted(change.code, change.message))
            return
        leaving = self._shell is None or self._shell.exited.done()
        if self.options.on_change is not None and not leaving:
            self.options.on_change(change)

    def _refused(self, id_: str, error: ClientError) -> None:
        self._record.failed(id_)
        handle = self.inbox.handles.get(id_)
        if self._answers.refused(id_, error):
            return
        if handle is not None:  # refused when it was issued again, after a reconnect
            self.inbox.forget(handle, error)
        else:
            self._answers.keep_failure(error)

    # Inside

    def _issue(self, content: Mapping[str, object], payload: bytes, trace: bool) -> str:
        at = now()
        id_ = self._core.publish(content, at, payload, trace)
        self._record.published(id_, at, content)
        return id_

    def _withdraw_advertisement(self, id_: str) -> None:
        self._core.unadvertise(id_)
        self._record.unadvertised(id_)
        self._plan_push()

    def _withdraw_subscription(self, handle: SubscriptionHandle) -> None:
        self._core.unsubscribe(handle.id)
        self._record.unsubscribed(handle.id)
        self.inbox.forget(handle)
        self._plan_push()

    async def _answer(self, id_: str) -> None:
        self._plan_push()
        await self._answers.acknowledgement(id_)

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

    def _hold(self) -> None:
        self._core.hold()

    def _release(self) -> None:
        self._core.release(now())
        self._plan_push()

    def _fail(self, error: ClientError) -> None:
        """Nothing works from here on: tell everybody who waits."""
        if self._error is None:
            self._error = error
        settle(self._opened, self._error)
        self._answers.fail_all(self._error)
        self.inbox.end_all(None if isinstance(self._error, ClientClosed) else self._error)
        self.desk.fail(self._error)
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    def _check_usable(self) -> None:
        if self._shell is None:
            raise ClientClosed("the client is not open: await it, or use it in `async with`")
        if self._error is not None:
            raise self._error


def _content(publication: Publication) -> Mapping[str, object]:
    if isinstance(publication, str):
        return parse_publication(publication, now=datetime.now(UTC))
    return publication
