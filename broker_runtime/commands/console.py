"""Decides what the words of the interactive console do; where lines come from is the caller's business."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from broker_runtime.client import (
    AdvertisementHandle,
    Change,
    Client,
    ClientError,
    Connected,
    Disconnected,
    Notification,
    SubscriptionHandle,
)
from broker_runtime.commands.arguments import settle, told
from broker_runtime.commands.changes import Changes
from broker_runtime.commands.control import COMMANDS, tables_text
from broker_runtime.commands.exits import Refusal
from broker_runtime.commands.monitor import HEADER, status_text
from broker_runtime.commands.shapes import content_data, notification_data, notification_text
from broker_runtime.commands.trace import trace_data, trace_text
from broker_runtime.dialect.options import nearest
from broker_runtime.dialect.readers import positive, seconds
from broker_runtime.language import LanguageError, print_advertisement, print_subscription

BATCH_DEPTH_MAX: Final = 10
WAIT_S: Final = 10.0


class Word(NamedTuple):
    names: tuple[str, ...]
    usage: str
    does: str
    act: Callable[[Console, str], Awaitable[None]]


class Output(Protocol):
    def __call__(self, data: Mapping[str, object], text: str) -> None: ...


class WordRefused(Exception):
    """A line that could not be carried out, with what to tell."""


class Console:
    """One user's words, carried out one after the other."""

    def __init__(self, client: Client, reopen: Callable[[str], Client], output: Output) -> None:
        self.client = client
        self.failures = 0
        self._reopen = reopen
        self._output = output
        self._advertisements: dict[str, AdvertisementHandle] = {}
        self._subscriptions: dict[str, SubscriptionHandle] = {}
        self._number = 0
        self._depth = 0
        self._notified = 0
        self._waited = 0
        self._arrived = asyncio.Event()
        self._changes = Changes()
        self._changes.text(Connected(client.broker, resumed=False))

    async def execute(self, line: str) -> bool:
        """Carry out one line; False when it asks to quit. Refusals are shown and counted."""
        name, _, rest = line.strip().partition(" ")
        if not name or name.startswith("#"):
            return True
        if name in ("quit", "exit", "q"):
            return False
        word = next((word for word in WORDS if name in word.names), None)
        try:
            if word is None:
                known = [name for word in WORDS for name in word.names]
                raise WordRefused(f"unknown word {name!r}{nearest(name, known)}; help shows all words")
            await word.act(self, rest.strip())
        except LanguageError as error:
            problems = [
                {"line": p.line, "column": p.column, "message": p.message, "hint": p.hint}
                for p in error.problems
            ]
            self._fail({"problems": problems}, "\n".join(p.pointing() for p in error.problems))
        except OSError as error:
            self._fail({}, told(error))
        except (ClientError, WordRefused, Refusal, ValueError) as error:
            self._fail({}, str(error))
        return True

    def changed(self, change: Change) -> None:
        """Show what happens to the connection."""
        data: dict[str, object]
        if isinstance(change, Connected):
            data = {"connected": change.broker, "resumed": change.resumed}
        elif isinstance(change, Disconnected):
            data = {"disconnected": change.reason}
        else:
            data = {"notice": change.code, "message": change.message, "count": change.count}
        self._output(data, self._changes.text(change))

    def _fail(self, data: dict[str, object], text: str) -> None:
        self.failures += 1
        self._output({"error": text, **data}, text)

    # Words

    async def advertise(self, text: str) -> None:
        handle = await self.client.advertise(_needed(text, "a [class,eq,'STOCK'],[price,isPresent,@FLOAT]"))
        name = self._name("a")
        self._advertisements[name] = handle
        await settle(self.client)
        self._output({"advertised": name, "id": handle.id}, f"advertised {name}")

    async def subscribe(self, text: str) -> None:
        name = self._name("s")

        def show(notification: Notification) -> None:
            self._notified += 1
            self._arrived.set()
            data = {"notification": notification_data(notification), "subscription": name}
            self._output(data, f"{name}: {notification_text(notification)}")

        handle = await self.client.subscribe(_needed(text, "s [class,eq,'STOCK'],[price,>,10]"), show)
        self._subscriptions[name] = handle
        await settle(self.client)
        self._output({"subscribed": name, "id": handle.id}, f"subscribed {name}")

    async def publish(self, text: str) -> None:
        id_ = await self.client.publish(_needed(text, "p [class,'STOCK'],[price,20]"))
        self._output({"published": id_}, f"published {id_}")

    async def unsubscribe(self, names: str) -> None:
        for name in _chosen(names, self._subscriptions, "subscription", "unsub s1"):
            await self._subscriptions.pop(name).unsubscribe()
            self._output({"unsubscribed": name}, f"unsubscribed {name}")

    async def unadvertise(self, names: str) -> None:
        for name in _chosen(names, self._advertisements, "advertisement", "unadv a1"):
            await self._advertisements.pop(name).unadvertise()
            self._output({"unadvertised": name}, f"unadvertised {name}")

    async def show_list(self, _: str) -> None:
        rows = [(name, print_advertisement(h.advertisement)) for name, h in self._advertisements.items()]
        rows += [(name, print_subscription(h.subscription)) for name, h in self._subscriptions.items()]
        text = "\n".join(f"{name}: {row}" for name, row in rows) or "nothing advertised or subscribed"
        self._output({"list": dict(rows)}, text)

    async def info(self, broker: str) -> None:
        if broker:
            infos = [await self.client.control(broker, "info")]
        else:
            infos = await self.client.brokers()
        text = "\n".join([HEADER, *(status_text(info.content) for info in infos)])
        self._output({"brokers": [content_data(info.content) for info in infos]}, text)

    async def trace(self, text: str) -> None:
        found = await self.client.trace(_needed(text, "trace [class,'STOCK'],[price,20]"))
        self._output({"trace": trace_data(found)}, trace_text(found))

    async def control(self, words: str) -> None:
        command, _, rest = words.partition(" ")
        broker, _, rest = rest.strip().partition(" ")
        if command not in COMMANDS:
            raise WordRefused(f"control {'|'.join(COMMANDS)} [BROKER] [KIND TEXT]")
        kind, _, text = rest.strip().partition(" ")
        fields: dict[str, Any] = {"kind": kind, "text": text.strip()} if kind else {}
        answer = await self.client.control(broker or self.client.broker, command, **fields)
        if command == "tables":
            self._output({"tables": answer.tables(), "broker": answer.broker}, tables_text(answer))
        else:
            said = answer.payload.decode()
            self._output(
                {"done": command, "broker": answer.broker, "answer": said},
                f"{answer.broker}: {command} done {said}".rstrip(),
            )

    async def batch(self, file: str) -> None:
        path = Path(*shlex.split(_needed(file, "batch FILE")))
        if self._depth >= BATCH_DEPTH_MAX:
            raise WordRefused(f"batch files call one another more than {BATCH_DEPTH_MAX} deep")
        lines = (await asyncio.to_thread(path.read_text)).splitlines()
        self._depth += 1
        try:
            for line in lines:
                if not await self.execute(line):
                    return
        finally:
            self._depth -= 1

    async def wait(self, words: str) -> None:
        """Wait for notifications that were not waited for before."""
        given = words.split()
        count = positive(given[0]) if given else 1
        timeout_s = seconds(given[1]) if len(given) > 1 else WAIT_S
        try:
            async with asyncio.timeout(timeout_s):
                while self._notified < self._waited + count:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            came = self._notified - self._waited
            raise WordRefused(f"{came} of {count} notifications came within {timeout_s:g} s") from None
        finally:
            self._waited = min(self._notified, self._waited + count)

    async def connect(self, address: str) -> None:
        """Leave this broker for another, once that has answered; what was advertised and subscribed ends."""
        client = self._reopen(_needed(address, "connect 127.0.0.1:10000"))
        try:
            await client.open()
        except ClientError as error:
            raise WordRefused(f"{error}; still connected to {self.client.broker}") from None
        old, self.client = self.client, client
        self._advertisements.clear()
        self._subscriptions.clear()
        await old.close()
        data = {"connected": client.broker, "resumed": False}
        self._output(data, f"connected to {client.broker}")

    async def help(self, _: str) -> None:
        rows = [f"  {word.usage:<44}{word.does}" for word in WORDS]
        text = "\n".join([*rows, "  quit                                        leave"])
        self._output({"words": [word.usage for word in WORDS]}, text)

    def _name(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


def _needed(text: str, example: str) -> str:
    if not text:
        raise WordRefused(f"something is missing; for example: {example}")
    return text


def _chosen(names: str, known: Mapping[str, object], kind: str, example: str) -> list[str]:
    if names == "all":
        return list(known)
    chosen = _needed(names, example).split()
    for name in chosen:
        if name not in known:
            raise WordRefused(f"there is no {kind} {name}, but {', '.join(known) or 'none at all'}")
    return chosen


WORDS: Final = (
    Word(("a", "advertise"), "a [class,eq,'STOCK'],[price,isPresent,*]", "advertise", Console.advertise),
    Word(("s", "subscribe"), "s [class,eq,'STOCK'],[price,>,10]", "subscribe", Console.subscribe),
    Word(("p", "publish"), "p [class,'STOCK'],[price,20]", "publish", Console.publish),
    Word(("unsub", "unsubscribe"), "unsub s1 | all", "end subscriptions", Console.unsubscribe),
    Word(("unadv", "unadvertise"), "unadv a1 | all", "withdraw advertisements", Console.unadvertise),
    Word(("list", "ls"), "list", "what is advertised and subscribed", Console.show_list),
    Word(("info", "brokers"), "info [BROKER]", "the status of brokers", Console.info),
    Word(("trace",), "trace [class,'STOCK'],[price,20]", "publish, and show the way", Console.trace),
    Word(("control",), "control pause Bob", f"{', '.join(COMMANDS)}", Console.control),
    Word(("batch",), "batch FILE", "carry out the lines of a file", Console.batch),
    Word(("wait",), "wait [COUNT [SECONDS]]", "wait for notifications", Console.wait),
    Word(("connect",), "connect 127.0.0.1:10000", "go to another broker", Console.connect),
    Word(("help", "?"), "help", "this list", Console.help),
)
