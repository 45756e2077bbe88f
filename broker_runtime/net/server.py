"""Decides how a broker becomes a process: listen, make the broker, serve until told to stop."""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import signal
import time
from dataclasses import replace
from typing import Final

from broker_runtime.addresses import Address
from broker_runtime.broker import Broker, BrokerSettings, Instruments
from broker_runtime.net.clock import now
from broker_runtime.net.faults import Faults
from broker_runtime.net.line import Line
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.shell import Shell, Wire
from broker_runtime.seam import Command

_PAGE_BYTES: Final = resource.getpagesize()
COLLECTOR_THRESHOLDS: Final = (50_000, 25, 100)


def memory_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 — read on every status
        return int(file.read().split()[1]) * _PAGE_BYTES


def _spare_the_collector() -> None:
    """Tables are large, live long and hold no cycles: walking them for garbage would only stop the broker."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


class BrokerServer:
    """A broker that listens."""

    def __init__(self, settings: BrokerSettings, log: LogWriter, line: Line | None = None) -> None:
        self._settings = settings
        self._log = log
        self._line = line
        self._started = False
        self._stop_asked = ""  # why to stop, when that is asked before the start
        self._server: asyncio.Server
        self._shell: Shell
        self.faults: Faults
        self.broker: Broker
        self.address: Address

    async def start(self, listen: Address) -> None:
        """Listen, then dial the neighbours. OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        shell = self._shell = Shell(self._log)
        self._server = await loop.create_server(
            lambda: Wire(shell), listen.host, listen.port, backlog=1024, start_serving=False
        )
        port = self._server.sockets[0].getsockname()[1]
        self.address = Address(listen.host, port, self._settings.id)
        source = random.SystemRandom()
        settings = replace(
            self._settings,
            address=self._settings.address or str(self.address),
            incarnation=source.randbytes(4).hex(),
            boot=time.time_ns() // 1_000_000,
        )
        instruments = Instruments(time.perf_counter, memory_bytes, time.process_time)
        self.broker = Broker(settings, source, now(), instruments)
        _spare_the_collector()
        shell.start(self.broker)
        self.faults = Faults(shell, self.broker.endpoint, source, self._log)
        if self._line is not None:
            await self._line.open(self.faults)
        shell.carry_out(self.broker.endpoint.drain_effects())
        self._started = True
        await self._server.start_serving()
        self._log.write("ready", {"address": str(self.address)})
        self._log.flush()

    def take_signals(self) -> None:
        """Have SIGTERM and SIGINT stop the broker, also one that has not started yet."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop, signal.Signals(number).name)

    async def run_until_stopped(self) -> str:
        self.take_signals()
        return await self.stopped()

    async def stopped(self) -> str:
        """Serve until a signal, `request_stop` or a shutdown command; why it ended."""
        if self._stop_asked:
            self.request_stop(self._stop_asked)
        return await asyncio.shield(self._shell.exited)

    def request_stop(self, reason: str = "stopped") -> None:
        if not self._started:
            self._stop_asked = reason
        elif not self._shell.exited.done():
            self._shell.feed(Command("stop", reason))

    def command(self, word: str, argument: str) -> None:
        self._shell.feed(Command(word, argument))

    async def close(self) -> None:
        self._server.close()
        self.request_stop()
        await self._shell.close()
        self.faults.close()
        if self._line is not None:
            await self._line.close()
        await self._server.wait_closed()
