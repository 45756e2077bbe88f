"""`panda demo`: a broker network on this machine, with a link that breaks while publications flow.

The brokers are processes of their own. Carol reaches Bob through a relay in this process, and the relay
breaks the connection in the middle of a frame: what was on its way is really gone.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli import printing
from panda.cli.exits import Exit

if TYPE_CHECKING:
    import asyncio

    from broker_runtime.client import Client, SubscriptionHandle

SUBSCRIPTION = "[class,eq,'STOCK'],[symbol,eq,'YHOO'],[price,>,18]"
ADVERTISEMENT = (
    "[class,eq,'STOCK'],[symbol,isPresent,@STRING],[price,isPresent,@FLOAT],[n,isPresent,@INTEGER]"
)
START_TIMEOUT_S = 20.0
STEP_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0

Say = Callable[[str], None]


def demo(
    publications: Annotated[
        int, typer.Option(min=1000, max=1_000_000, help="How many to publish while the link breaks.")
    ] = 20_000,
    cuts: Annotated[int, typer.Option(min=0, max=100, help="How often to break the link.")] = 3,
    as_json: printing.JsonOption = False,
) -> None:
    """Start three brokers and two clients, break a link, and see that nothing is lost or repeated."""
    import asyncio

    def say(text: str) -> None:
        if as_json:
            printing.note(text)
        else:
            printing.result({}, text)

    try:
        outcome = asyncio.run(_tell(publications, cuts, say))
    except asyncio.CancelledError:  # SIGTERM; everything has been cleaned up
        raise typer.Exit(Exit.INTERRUPTED) from None
    except DemoFailed as error:
        printing.problem(f"the demo failed: {error}")
        raise typer.Exit(Exit.FAILED) from None
    if as_json:
        printing.result({**asdict(outcome), "held": outcome.held}, "", as_json=True)
    if not outcome.held:
        raise typer.Exit(Exit.FAILED)


class DemoFailed(Exception):
    """Something did not come about in time."""


@dataclass
class Outcome:
    """What was expected, and what came."""

    published: int
    received: int = 0
    lost: int = 0
    repeated: int = 0
    out_of_order: int = 0
    cuts_asked: int = 0
    cuts: int = 0
    resumed: int = 0
    refused_as_expected: bool = False
    seconds: float = 0.0
    logs: str = ""
    processes: dict[str, int] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        wrong = self.lost or self.repeated or self.out_of_order
        broken = self.cuts != self.cuts_asked or self.resumed < self.cuts
        return self.received == self.published and self.refused_as_expected and not wrong and not broken

    def count(self, numbers: list[int]) -> None:
        self.received = len(numbers)
        self.lost = len(set(range(self.published)) - set(numbers))
        self.repeated = len(numbers) - len(set(numbers))
        self.out_of_order = sum(a > b for a, b in pairwise(numbers))


async def _tell(publications: int, cuts: int, say: Say) -> Outcome:
    import asyncio
    import signal

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    folder = Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-demo"
    outcome = Outcome(publications, cuts_asked=cuts, logs=str(folder))
    token = secrets.token_hex(16)
    relay = _Relay()
    brokers = _Brokers(folder, token)
    try:
        alice = await brokers.start("Alice")
        bob = await brokers.start("Bob", alice)
        await brokers.start("Carol", await relay.start(bob))
        outcome.processes = {name: process.pid for name, process in brokers.processes.items()}
        say("Three brokers, each a process of its own, in a chain:")
        say(f"  Alice – Bob – Carol    (pids {', '.join(map(str, outcome.processes.values()))})")
        await _publish_and_receive(brokers, relay, outcome, token, say)
    finally:
        await brokers.stop()
        await relay.stop()
    _report_links(folder, outcome, say)
    say(f"Logs are in {folder}/")
    verdict = "Nothing was lost, repeated or out of order." if outcome.held else "NOT as expected:"
    say(f"{verdict} {_figures(outcome)}")
    return outcome


async def _publish_and_receive(
    brokers: _Brokers, relay: _Relay, outcome: Outcome, token: str, say: Say
) -> None:
    import asyncio

    from broker_runtime.client import ClientError, ClientOptions, connect

    def options(name: str) -> ClientOptions:
        return ClientOptions(log=brokers.folder / f"{name}.jsonl", log_every=1000, run="demo")

    carol, alice = brokers.addresses["Carol"], brokers.addresses["Alice"]
    try:
        async with (
            asyncio.timeout(STEP_TIMEOUT_S + outcome.published / 1000),
            connect(carol, "S0", token=token, options=options("S0")) as subscriber,
            connect(alice, "P0", token=token, options=options("P0")) as publisher,
        ):
            quotes = await subscriber.subscribe(SUBSCRIPTION)
            await publisher.advertise(ADVERTISEMENT)
            await _settle(publisher)
            say(f"S0 subscribes at Carol:   {SUBSCRIPTION}")
            await _first_publication(publisher, quotes, outcome, say)
            await _storm(publisher, quotes, relay, outcome, say)
            await quotes.unsubscribe()
    except TimeoutError:
        raise DemoFailed("the notifications did not all come in time") from None
    except ClientError as error:
        raise DemoFailed(str(error)) from error


async def _settle(publisher: Client) -> None:
    """Wait for the overlay to be whole, then for the subscription to arrive at the publisher's broker."""
    await publisher.control("Carol", "info", timeout_s=START_TIMEOUT_S)
    await publisher.settle()


async def _first_publication(
    publisher: Client, quotes: SubscriptionHandle, outcome: Outcome, say: Say
) -> None:
    from broker_runtime.client import NotAdvertised
    from broker_runtime.language import print_publication

    way = await publisher.trace("[class,'STOCK'],[symbol,'YHOO'],[price,18.5],[n,-1]")
    say("P0 publishes at Alice:    [class,'STOCK'],[symbol,'YHOO'],[price,18.5],[n,-1]")
    notification = await quotes.get(STEP_TIMEOUT_S)
    delay_ms = 1000 * (time.time() - notification.time)
    say(f"S0 is notified:           {print_publication(notification.content)}")
    brokers = " – ".join(step.broker for step in way.steps)
    say(f"  by way of {brokers}, {delay_ms:.1f} ms after it was published")
    try:
        await publisher.publish("[class,'WEATHER'],[rain,true]")
    except NotAdvertised as error:
        outcome.refused_as_expected = True
        say(f"P0 may not publish what it did not advertise: {error}")


async def _storm(
    publisher: Client, quotes: SubscriptionHandle, relay: _Relay, outcome: Outcome, say: Say
) -> None:
    """Publish in a stream and break the link Bob–Carol on the way.

    The subscriber's progress decides when: so the link is up before each cut, and as the publisher is never
    far ahead, there is something to break after it.
    """
    import asyncio

    count, cuts = outcome.published, outcome.cuts_asked
    say(f"Now {count} publications, while the link Bob – Carol is cut {cuts} times in mid-frame …")
    stretch = count // (cuts + 1)
    numbers: list[int] = []
    progress = asyncio.Event()

    async def publish() -> None:
        for number in range(count):
            while number - len(numbers) > stretch // 2:
                progress.clear()
                await progress.wait()
            await publisher.drain()
            publisher.publish_soon({"class": "STOCK", "symbol": "YHOO", "price": 18.01 + number, "n": number})
        await publisher.flush()

    started = time.monotonic()
    publishing = asyncio.create_task(publish())
    try:
        while len(numbers) < count:
            numbers.append(int(str((await quotes.get(STEP_TIMEOUT_S)).content["n"])))
            progress.set()
            if len(numbers) % stretch == 0 and len(numbers) // stretch <= cuts:
                relay.cut()
        await publishing
    finally:
        publishing.cancel()
    outcome.seconds = round(time.monotonic() - started, 3)
    outcome.cuts = relay.cuts
    numbers += [int(str((await quotes.get()).content["n"])) for _ in range(quotes.waiting)]
    outcome.count(numbers)


def _report_links(folder: Path, outcome: Outcome, say: Say) -> None:
    """What Carol's log says about her link: when it broke, and when it went on."""
    down_at: float | None = None
    for line in (folder / "Carol.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["kind"] == "link_down" and not event["ended"]:
            down_at = event["t"]
        elif event["kind"] == "link_up" and event["resumed"] and down_at is not None:
            outcome.resumed += 1
            away_ms = 1000 * (event["t"] - down_at)
            say(f"  cut {outcome.resumed}: Carol was without Bob for {away_ms:.0f} ms, then went on")
            down_at = None


def _figures(outcome: Outcome) -> str:
    rate = outcome.received / outcome.seconds if outcome.seconds else 0.0
    return (
        f"{outcome.published} published, {outcome.received} received, {outcome.lost} lost,"
        f" {outcome.repeated} repeated, {outcome.out_of_order} out of order, {outcome.cuts} cuts,"
        f" {outcome.resumed} resumed, in {outcome.seconds:.1f} s ({rate:.0f} per second)."
    )


class _Brokers:
    """The broker processes; each is ended by its own pid."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = folder
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.addresses: dict[str, str] = {}
        self._environment = {**os.environ, "PANDA_TOKEN": token}
        folder.mkdir(parents=True, exist_ok=True)

    async def start(self, name: str, neighbour: str = "") -> str:
        """The address, once the broker listens."""
        import asyncio

        command = [sys.executable, "-m", "broker_runtime", "broker", "-i", name, "-p", "0"]
        command += ["--log", str(self.folder / f"{name}.jsonl"), "--log-every", "1000", "--run", "demo"]
        command += ["-n", neighbour] if neighbour else []
        with (self.folder / f"{name}.stderr").open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                start_new_session=True,  # an interrupt at the terminal reaches us, and we end them
            )
        self.processes[name] = process
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = (await process.stdout.readline()).decode().split()
        except TimeoutError:
            line = []
        if line[:2] != ["ready", name]:
            said = (self.folder / f"{name}.stderr").read_text().strip()
            raise DemoFailed(f"broker {name} did not start: {said or 'no answer'}")
        self.addresses[name] = line[2]
        return line[2]

    async def stop(self) -> None:
        import asyncio

        for process in self.processes.values():
            if process.returncode is None:
                process.terminate()
        for process in self.processes.values():
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


class _Relay:
    """Passes bytes on between two brokers, until told to break the connection in the middle of a frame."""

    def __init__(self) -> None:
        self.cuts = 0
        self._cutting = False
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()

    async def start(self, target: str) -> str:
        import asyncio

        host, _, port = target.rpartition(":")

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._pumps.add(task)
            try:
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
                await asyncio.gather(
                    self._pump(reader, far_writer, writer, may_cut=False),
                    self._pump(far_reader, writer, far_writer, may_cut=True),
                )
            except (OSError, asyncio.CancelledError):
                writer.transport.abort()
            finally:
                self._pumps.discard(task)

        self._server = await asyncio.start_server(connected, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Have the next bytes from Bob to Carol broken off."""
        self._cutting = True

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        may_cut: bool,
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if may_cut and self._cutting and len(data) > 100:
                    self._cutting = False
                    self.cuts += 1
                    writer.write(data[: len(data) // 2])
                    break
                writer.write(data)
                await writer.drain()
        finally:
            writer.transport.abort()
            other.transport.abort()

    async def stop(self) -> None:
        import asyncio

        if self._server is not None:
            self._server.close()
        for task in list(self._pumps):
            task.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
