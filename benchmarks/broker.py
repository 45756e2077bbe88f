"""One broker on loopback beside two bare relays: messages per second, CPU per message, latency.

Every figure of the broker stands beside the baseline measured in the same run, because machines differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import relay
from benchmarks.light import CONTENT, BrokerLink, publications, publish_for, receive
from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.language import parse_advertisement, parse_subscription
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer
from broker_runtime.wire.records import Advertise, Subscribe

_spawn = multiprocessing.get_context("spawn")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
ADVERTISEMENT = (
    "[class,eq,'STOCK'],[symbol,isPresent,@STRING],[price,>,0.0],[volume,>=,0],[note,isPresent,@STRING]"
)
RECORD_BYTES = len(publications("P:bench")[0])


@dataclass
class Rate:
    name: str
    messages_per_s: float
    deliveries_per_s: float
    cpu_us_per_message: float


@dataclass
class Latency:
    name: str
    p50_us: float
    p99_us: float


def _serve_broker(port: int, log_path: str, log_every: int, profile: str) -> None:
    async def run() -> None:
        log = LogWriter(Path(log_path) if log_path else None, "B1")
        server = BrokerServer(BrokerSettings(id="B1", log_every=log_every), log)
        await server.start(Address("127.0.0.1", port))
        await server.run_until_stopped()
        await server.close()

    if profile:
        import cProfile

        cProfile.runctx("asyncio.run(run())", globals(), {"run": run}, profile)
    else:
        asyncio.run(run())


def _serve_relay(port: int, decoding: bool) -> None:
    asyncio.run(relay.serve(port, decoding))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _process(target: Callable[..., None], *arguments: Any) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and pid."""
    port = _free_port()
    process = _spawn.Process(target=target, args=(port, *arguments), daemon=True)
    process.start()
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        assert process.pid is not None
        yield port, process.pid
    finally:
        process.terminate()
        process.join(5)
        process.kill()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


# Subscribers live in a process of their own, so that publisher and subscriber do not wait for each other.


def _subscriber_process(
    port: int, subscriptions: list[list[str]], record_bytes: int, started: Any, stop: Any, count: Any
) -> None:
    links = []
    for i, texts in enumerate(subscriptions):
        link = BrokerLink(port, f"S{i}")
        link.issue([Subscribe(f"{link.source}:{j + 1}", parse_subscription(t)) for j, t in enumerate(texts)])
        links.append(link)
    started.set()

    def done(so_far: int) -> bool:
        count.value = so_far
        return bool(stop.is_set())

    receive(links, record_bytes, done)


def _relay_subscriber(
    port: int, connections: int, record_bytes: int, started: Any, stop: Any, count: Any
) -> None:
    import selectors

    selector = selectors.DefaultSelector()
    for _ in range(connections):
        link = socket.create_connection(("127.0.0.1", port))
        link.sendall(b"S")
        assert link.recv(1) == b"+"
        selector.register(link, selectors.EVENT_READ, link)
    started.set()
    received = 0
    while not stop.is_set():
        for key, _ in selector.select(0.05):
            received += len(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]
        count.value = received // record_bytes


@contextmanager
def _subscribers(target: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    started, stop, count = _spawn.Event(), _spawn.Event(), _spawn.Value("q", 0)
    process = _spawn.Process(target=target, args=(*arguments, started, stop, count), daemon=True)
    process.start()
    if not started.wait(120):
        raise RuntimeError("the subscribers did not get ready")
    try:
        yield count
    finally:
        stop.set()
        process.join(5)
        process.kill()


def _settled(count: Any, expected: int) -> None:
    """Wait until everything that was published has been counted."""
    for _ in range(1_000):
        if count.value >= expected:
            return
        time.sleep(0.01)
    raise RuntimeError(f"{expected} deliveries expected, {count.value} came")


def broker_rate(
    name: str,
    subscriptions: list[list[str]],
    contents: Sequence[dict[str, object]],
    fan_out: int,
    seconds: float,
    log: tuple[str, int] = ("", 0),
    profile: str = "",
) -> Rate:
    with _process(_serve_broker, *log, profile) as (port, pid):
        publisher = BrokerLink(port, "P")
        publisher.issue([Advertise(f"{publisher.source}:1", parse_advertisement(ADVERTISEMENT))])
        records = publications(publisher.source, contents)
        size = len(records[0])
        with _subscribers(_subscriber_process, port, subscriptions, size) as count:
            publish_for(publisher, records, 0.3)
            warm = publisher.acked - 1
            _settled(count, warm * fan_out)
            cpu, began = _cpu_s(pid), time.perf_counter()
            published = publish_for(publisher, records, seconds)
            _settled(count, (warm + published) * fan_out)
            took = time.perf_counter() - began
            used = _cpu_s(pid) - cpu
        publisher.socket.close()
    return Rate(name, published / took, published * fan_out / took, used / published * 1e6)


def relay_rate(name: str, decoding: bool, connections: int, seconds: float) -> Rate:
    record = publications("P:bench")[0]
    batch = record * 250
    with (
        _process(_serve_relay, decoding) as (port, pid),
        _subscribers(_relay_subscriber, port, connections, len(record)) as count,
    ):
        publisher = socket.create_connection(("127.0.0.1", port))
        publisher.sendall(b"P" + batch)
        _settled(count, 250 * connections)
        cpu, began, published = _cpu_s(pid), time.perf_counter(), 250
        while time.perf_counter() - began < seconds:
            publisher.sendall(batch)
            published += 250
        _settled(count, published * connections)
        took = time.perf_counter() - began
        used = _cpu_s(pid) - cpu
        publisher.close()
    return Rate(name, published / took, published * connections / took, used / published * 1e6)


def broker_latency(name: str, count: int, rate: float = 0.0) -> Latency:
    with _process(_serve_broker, "", 0, "") as (port, _):
        publisher, subscriber = BrokerLink(port, "P"), BrokerLink(port, "S")
        publisher.issue([Advertise(f"{publisher.source}:1", parse_advertisement(ADVERTISEMENT))])
        wanted = parse_subscription("[class,eq,'STOCK'],[symbol,eq,'YHOO'],[price,>,10.0]")
        subscriber.issue([Subscribe(f"{subscriber.source}:1", wanted)])
        record = publications(publisher.source)[0]

        def send(n: int) -> None:
            publisher.send(record * n, n)

        def read(wait: bool) -> int:
            publisher.read(wait=False)
            return subscriber.read(wait=wait, record_bytes=len(record))

        return _latency(name, count, rate, send, read)


def relay_latency(name: str, decoding: bool, count: int, rate: float = 0.0) -> Latency:
    record = publications("P:bench")[0]
    with _process(_serve_relay, decoding) as (port, _):
        subscriber = socket.create_connection(("127.0.0.1", port))
        subscriber.sendall(b"S")
        assert subscriber.recv(1) == b"+"
        publisher = socket.create_connection(("127.0.0.1", port))
        publisher.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        publisher.sendall(b"P")
        left = 0

        def read(wait: bool) -> int:
            nonlocal left
            try:
                data = subscriber.recv(1 << 20, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0
            left += len(data)
            whole, left = divmod(left, len(record))
            return whole

        return _latency(name, count, rate, lambda n: publisher.sendall(record * n), read)


def _latency(
    name: str, count: int, rate: float, send: Callable[[int], None], read: Callable[[bool], int]
) -> Latency:
    """With no rate one message is in flight at a time; with one, messages leave every millisecond."""
    took: list[float] = []
    if not rate:
        for _ in range(count):
            began = time.perf_counter()
            send(1)
            while not read(True):
                pass
            took.append(time.perf_counter() - began)
    else:
        sent_at: list[float] = []
        began = time.perf_counter()
        received = 0
        while received < count:
            now = time.perf_counter()
            due = min(count, int((now - began) * rate)) - len(sent_at)
            if due >= max(1, rate / 1000) or (due and len(sent_at) + due == count):
                sent_at += [time.perf_counter()] * due
                send(due)
            came = read(False)
            now = time.perf_counter()
            took += [now - sent_at[received + i] for i in range(came)]
            received += came
    cuts = statistics.quantiles(took[len(took) // 10 :], n=100)
    return Latency(name, cuts[49] * 1e6, cuts[98] * 1e6)


def _subscriptions_10k() -> tuple[list[list[str]], list[dict[str, object]]]:
    """Ten connections with a thousand three-predicate subscriptions each; each publication matches ten."""
    texts = [f"[class,eq,'STOCK'],[symbol,eq,'S{k:04}'],[price,>,{k % 20}.5]" for k in range(1000)]
    contents: list[dict[str, object]] = [{**CONTENT, "symbol": f"S{(k * 7) % 1000:04}"} for k in range(1000)]
    return [texts] * 10, contents


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks broker", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
    parser.add_argument("--quick", action="store_true", help="one second each")
    parser.add_argument("--profile", metavar="FILE", default="", help="profile the 1→1 broker with cProfile")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    options = parser.parse_args(argv)
    seconds = 1.0 if options.quick else options.seconds
    one = [["[class,eq,'STOCK'],[symbol,eq,'YHOO'],[price,>,10.0]"]]
    if options.profile:
        print(broker_rate("profiled", one, [CONTENT], 1, seconds, profile=options.profile))
        return 0
    rates = _rates(seconds, one)
    latencies = _latencies(2_000 if options.quick else 10_000, rates)
    _report(rates, latencies)
    if options.json:
        figures = {"rates": [asdict(r) for r in rates], "latencies": [asdict(x) for x in latencies]}
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


def _rates(seconds: float, one: list[list[str]]) -> list[Rate]:
    many, contents = _subscriptions_10k()
    log = Path(f"/tmp/panda-bench-{os.getpid()}.jsonl")
    try:
        return [
            relay_rate("relay, framing", False, 1, seconds),
            relay_rate("relay, decoding", True, 1, seconds),
            broker_rate("broker 1→1", one, [CONTENT], 1, seconds),
            broker_rate("broker 1→1, counts logged", one, [CONTENT], 1, seconds, (str(log), 0)),
            broker_rate("broker 1→1, all logged", one, [CONTENT], 1, seconds, (str(log), 1)),
            broker_rate("broker 10,000 subs, 10 match", many, contents, 10, seconds),
            broker_rate("broker 1→100", one * 100, [CONTENT], 100, seconds),
            relay_rate("relay, framing, 1→100", False, 100, seconds),
        ]
    finally:
        log.unlink(missing_ok=True)


def _latencies(count: int, rates: list[Rate]) -> list[Latency]:
    half = next(r for r in rates if r.name == "broker 1→1").messages_per_s / 2
    return [
        relay_latency("relay, framing, one in flight", False, count),
        relay_latency("relay, decoding, one in flight", True, count),
        broker_latency("broker, one in flight", count),
        relay_latency("relay, framing, at the broker's half load", False, count * 20, half),
        broker_latency("broker, at half load", count * 20, half),
    ]


def _report(rates: list[Rate], latencies: list[Latency]) -> None:
    print(f"{RECORD_BYTES}-byte records, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    print(f"{'':34}{'messages/s':>12}{'deliveries/s':>14}{'CPU µs/msg':>12}")
    for r in rates:
        print(f"{r.name:34}{r.messages_per_s:12,.0f}{r.deliveries_per_s:14,.0f}{r.cpu_us_per_message:12.2f}")
    print(f"\n{'':44}{'p50 µs':>10}{'p99 µs':>10}")
    for x in latencies:
        print(f"{x.name:44}{x.p50_us:10.0f}{x.p99_us:10.0f}")
    by_name = {r.name: r for r in rates}
    plain, decoding = by_name["broker 1→1, counts logged"], by_name["relay, decoding"]
    goals = (
        ("1→1 against the decoding relay", plain.messages_per_s / decoding.messages_per_s, 0.25),
        (
            "10,000 subs: notifications against 1→1 messages",
            by_name["broker 10,000 subs, 10 match"].deliveries_per_s / plain.messages_per_s,
            1.0,
        ),
        (
            "1→100: deliveries against 1→1",
            by_name["broker 1→100"].deliveries_per_s / plain.messages_per_s,
            5.0,
        ),
        (
            "one in flight: relay's p50 × 3 against broker's",
            3 * latencies[0].p50_us / latencies[2].p50_us,
            1.0,
        ),
    )
    print()
    for text, ratio, goal in goals:
        print(f"{text:52}{ratio:8.2f}   goal {goal:.2f}   {'reached' if ratio >= goal else 'NOT REACHED'}")


if __name__ == "__main__":
    sys.exit(main())
