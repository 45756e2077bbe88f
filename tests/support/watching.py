"""A network as the console sees it, made up: what it is told of, and what it asks for."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from textual.app import App
from textual.pilot import Pilot

from broker_runtime.client import BrokerInfo, Client, connect
from panda_tui.app import ConsoleApp
from panda_tui.deeds import Deed
from panda_tui.model import Broker, Connection, Link, Load, Overlay, Snapshot, State
from panda_tui.model import Client as Guest
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.watch import Away, Piece, Tell, Watch

AT = 1_000_000.0


def network(*links: tuple[str, str], clients: Mapping[str, str] | None = None, rate: float = 10.0) -> Overlay:
    """All of it up and running; each broker carries a little more than the one before it."""
    names = sorted({name for link in links for name in link})
    guests = clients or {}
    beside = {
        name: tuple(sorted({other for link in links if name in link for other in link} - {name}))
        for name in names
    }
    return Overlay(
        tuple(
            Broker(
                id=name,
                state=State.RUNNING,
                load=Load(rate_in=rate * i, rate_out=rate * i, queue_length=i, memory_bytes=20 << 20),
                heard_at=AT,
                address=f"127.0.0.1:{10000 + i}",
                host="h1",
                process=f"Broker{name}",
                clients=tuple(sorted(each for each, broker in guests.items() if broker == name)),
                neighbours=beside[name],
            )
            for i, name in enumerate(names, 1)
        ),
        tuple(Link(a, b, True, True, rate=rate) for a, b in sorted({(min(x), max(x)) for x in links})),
        tuple(Guest(name, guests[name]) for name in sorted(guests)),
    )


def changed(overlay: Overlay, broker: str, **changes: object) -> Overlay:
    brokers = tuple(
        replace(each, **changes) if each.id == broker else each  # type: ignore[arg-type]
        for each in overlay.brokers
    )
    return replace(overlay, brokers=brokers)


class FakeWatch:
    """Tells what the test says; brokers with an address in `addresses` are real and can be reached."""

    def __init__(self, overlay: Overlay | None = None) -> None:
        self.snapshot = Snapshot(
            at=AT, state="running", connection=Connection.CONNECTED, overlay=overlay or Overlay()
        )
        self.client: Client | None = None
        self.addresses: dict[str, str] = {}
        self.answers: dict[tuple[str, str], BrokerInfo] = {}
        self.asked: list[tuple[str, str]] = []
        self.paces: list[float] = []
        self.logs: dict[str, str] = {}
        self._tell: Tell | None = None

    def start(self, tell: Tell) -> None:
        self._tell = tell
        tell(self.snapshot)

    def take(self, overlay: Overlay, at: float = AT) -> None:
        self.snapshot = replace(self.snapshot, overlay=overlay, at=at)
        if self._tell is not None:
            self._tell(self.snapshot)

    def pace(self, every_s: float) -> None:
        self.paces.append(every_s)

    async def control(self, broker: str, command: str, **fields: str) -> BrokerInfo:
        self.asked.append((broker, command))
        if (broker, command) in self.answers:
            return self.answers[broker, command]
        async with self.visit(broker) as client:
            return await client.control(broker, command, **fields)

    @asynccontextmanager
    async def visit(self, broker: str, id_: str = "") -> AsyncIterator[Client]:
        if broker not in self.addresses:
            raise Away(f"{broker} is nowhere")
        async with connect(self.addresses[broker], id_) as client:
            yield client

    def read_log(self, process: str, stream: str, offset: int, length: int) -> Piece:
        data = self.logs.get(process, "").encode()
        return Piece(data[offset : offset + length], len(data))

    def told(self) -> tuple[tuple[float, str], ...]:
        return ()

    async def close(self) -> None:
        pass


class ScreenApp(ConsoleApp):
    """The console with one screen in front, and what that screen asked of it."""

    def __init__(self, screen: ConsoleScreen, watch: Watch) -> None:
        super().__init__(watch=watch)
        self.front = screen
        self.opened: list[str] = []
        self.deeds: list[Deed] = []
        self.logs: dict[str, str] = {}

    async def on_mount(self) -> None:
        await self.push_screen(self.front)

    @property
    def fake(self) -> FakeWatch:
        assert isinstance(self.watched, FakeWatch)
        return self.watched

    def open_broker(self, id_: str) -> None:
        self.opened.append(id_)

    def carry_out(self, deed: Deed) -> None:
        self.deeds.append(deed)
        super().carry_out(deed)


def screen_text(app: App[None]) -> str:
    """What is on the terminal, without colours."""
    rows = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in rows)


async def until(pilot: Pilot[None], condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Let the app go on until the condition holds; the screen is shown if it never does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come about\n{screen_text(pilot.app)}")
        await pilot.pause(0.02)


async def until_seen(pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: text in screen_text(pilot.app))
