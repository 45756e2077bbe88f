"""Decides whether broken input stays the problem of whoever sent it.

A broker with a well-behaved publisher and subscriber is attacked over many connections; a client dials a
hostile broker; the parsers read damaged text. Nothing may raise, what a peer leaves behind is bounded, a
peer that is turned away is told why, and the well-behaved pair never notices.
"""

from __future__ import annotations

import sys
import traceback
from random import Random
from typing import Final

from broker_runtime.client_core import ClientCore, ClientSettings
from broker_runtime.language.messages import CLASS
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.language.printing import print_advertisement, print_publication, print_subscription
from broker_runtime.language.problems import LanguageError
from broker_runtime.seam import Close, Closed, Dial, Effect, Input, Malformed, Opened, Received, Send, Tick
from broker_runtime.sim import contents, hostile
from broker_runtime.sim.cluster import Cluster
from broker_runtime.sim.network import Node, Pipe
from broker_runtime.sim.options import Options
from broker_runtime.wire.frames import (
    Frame,
    FrameKind,
    FrameReader,
    Greeting,
    Reject,
    Welcome,
    WireError,
    decode_handshake,
    encode_handshake,
)

ROUNDS_PER_NETWORK: Final = 400  # cases before a fresh broker and pair are taken
NAMES: Final = tuple(f"evil{i}" for i in range(6))
CONNECTIONS_MAX: Final = 60
TABLE_ENTRIES_MAX: Final = 200


class Stranger:
    """The far end of an attacking connection: hears what the broker answers."""

    def __init__(self) -> None:
        self.heard: list[Frame] = []
        self.closed = False

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, Received):
            self.heard += event.frames
        elif isinstance(event, Closed):
            self.closed = True
        return []


class Siege:
    """One broker under attack, with two clients that want to go on."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.token = random.choice(("", "open sesame"))
        options = Options(brokers=1, monitors=True, session_expiry_s=3.0, token=self.token)
        self.cluster = Cluster(options, random, brokers=["B"])
        self.network = self.cluster.network
        self.node = self.network.nodes["B"]
        self.publisher = self.cluster.come("P", "B")
        self.subscriber = self.cluster.come("S", "B")
        self.cluster.advertise(self.publisher, parse_advertisement("[class,eq,'peace'],[n,isPresent,*]"))
        self.cluster.subscribe(self.subscriber, parse_subscription("[class,eq,'peace']"))
        self.cluster.settle()
        self._connections = 1_000_000
        self._published = 0
        self.codes: dict[str, int] = {}

    def attack(self) -> None:
        """One connection, from its opening to its end."""
        random, network = self.random, self.network
        stranger = Stranger()
        far = Node("stranger", stranger)
        self._connections += 2
        here, there = self._connections, self._connections + 1
        self.node.pipes[here] = Pipe(self.node, here, far, there, 0.001)
        far.pipes[there] = Pipe(far, there, self.node, here, 0.001)
        reader = FrameReader()
        network.hand(self.node, Opened(here))
        name = random.choice((*NAMES, "P", "S"))
        for data in self._speech(stranger, name):
            if here not in self.node.pipes:
                break
            try:
                frames = reader.feed(data)
            except WireError as error:
                network.hand(self.node, Malformed(here, error.code, error.message))
                break
            if frames:
                network.hand(self.node, Received(here, frames))
            if random.random() < 0.5:
                network.run_until(network.now + 0.002)
        network.run_until(network.now + 0.002)
        if here not in self.node.pipes:
            self._check_dismissal(stranger)
        elif random.random() < 0.9:
            del self.node.pipes[here]
            network.hand(self.node, Closed(here, "gone"))
        else:  # left open: the broker has to notice the silence
            self.node.pipes[here].cut = True

    def _speech(self, stranger: Stranger, name: str) -> list[bytes]:
        random = self.random
        kind = random.random()
        if kind < 0.1:
            return [random.randbytes(random.randint(1, 200)) for _ in range(3)]
        self.network.run_until(self.network.now + 0.002)
        greeting = decode_handshake(*stranger.heard[0])
        assert isinstance(greeting, Greeting)
        role = "client" if random.random() < 0.7 else "broker"
        token = self.token if random.random() < 0.8 else random.choice(("", "guess"))
        honest = hostile.hello(random, name, role, greeting.challenge, "B", token)
        if kind < 0.25:
            return [hostile.lying_handshake(random, honest) for _ in range(2)]
        if kind < 0.3:
            return [hostile.handshake(random) for _ in range(3)]
        source = f"{name}:{honest.incarnation}"
        speech = [encode_handshake(honest)]
        first = 1
        for _ in range(random.randint(1, 6)):
            turn = random.random()
            if turn < 0.75:
                frame, count = hostile.data_frame(random, source, first)
                first += count
                speech.append(frame)
            elif turn < 0.9:
                speech.append(hostile.ack_frame(random))
            else:
                speech.append(hostile.handshake(random))
        if random.random() < 0.1:
            speech = [b"".join(speech)]
        return speech

    def _check_dismissal(self, stranger: Stranger) -> None:
        """Whoever is turned away for cause is told a code and a sentence."""
        for kind, body in stranger.heard:
            if kind == FrameKind.REJECT:
                reject = decode_handshake(kind, body)
                assert isinstance(reject, Reject)
                assert reject.code
                assert reject.message
                self.codes[reject.code] = self.codes.get(reject.code, 0) + 1

    def check_peace(self) -> None:
        """The pair goes on, and what strangers left behind is bounded."""
        network = self.network
        self._published += 1
        id_ = self.cluster.publish(self.publisher, {CLASS: "peace", "n": self._published})
        network.run_until(network.now + 0.05)
        arrived = [arrival.id for arrival in self.cluster.history.arrivals]
        assert arrived.count(id_) == 1, f"{id_} arrived {arrived.count(id_)} times"
        endpoint, router = self.cluster.brokers["B"].endpoint, self.cluster.brokers["B"].router
        assert len(endpoint._connections) <= CONNECTIONS_MAX, "connections pile up"
        assert len(endpoint.sessions) <= len(NAMES) + 2, "sessions pile up"
        assert len(router.subscriptions) + len(router.advertisements) <= TABLE_ENTRIES_MAX, "tables pile up"

    def check_end(self) -> None:
        """Long after the last attack only the pair is left."""
        network, broker = self.network, self.cluster.brokers["B"]
        network.run_until(network.now + 20.0)
        self.check_peace()
        assert sorted(broker.endpoint.sessions) == ["P", "S"], sorted(broker.endpoint.sessions)
        assert len(broker.endpoint._connections) == 2, "connections are left"
        foreign = [
            id_ for id_, hop, _ in broker.router.subscription_entries(1000) if hop not in ("P", "S", "B")
        ]
        assert not foreign, foreign
        assert not broker.router._awaited
        assert not broker.router._unconfirmed


def besiege(seed: int, cases: int) -> dict[str, int]:
    """Attack one broker so many times; AssertionError or whatever the core raised when it fails."""
    siege = Siege(Random(f"siege {seed}"))
    for case in range(cases):
        siege.attack()
        if case % 10 == 9:
            siege.check_peace()
    siege.check_end()
    return siege.codes


def mislead(random: Random) -> None:
    """A client dials a hostile broker."""
    client = ClientCore(ClientSettings(id="c", address="B"), random, 0.0)
    client.advertise(contents.advertisement(random))
    client.subscribe(contents.subscription(random))
    now, connection = 0.0, 0
    reader = FrameReader()
    effects = client.flush()
    for _ in range(8):
        now += random.random()
        if any(isinstance(effect, Dial) for effect in effects):
            connection += 1
            reader = FrameReader()
            effects = client.handle(Opened(connection, "B"), now)
            greeting = Greeting(version=1, broker="B", challenge=b"c" * 16, token_required=False)
            effects += client.handle(Received(connection, [_frame(encode_handshake(greeting))]), now)
            welcome = Welcome(session="aa", incarnation="1", resumed=False, received=(0, 0))
            if random.random() < 0.7:
                effects += client.handle(Received(connection, [_frame(encode_handshake(welcome))]), now)
        data = random.choice((hostile.handshake, hostile.ack_frame, _any_data))(random)
        try:
            frames = reader.feed(data)
            effects = client.handle(Received(connection, frames), now) if frames else []
        except WireError as error:
            effects = client.handle(Malformed(connection, error.code, error.message), now)
        effects += client.handle(Tick(), now)
        assert all(effect.connection for effect in effects if isinstance(effect, Send | Close))
        client.happenings()


def _any_data(random: Random) -> bytes:
    return hostile.data_frame(random, random.choice(("p:1", "c:0")), 1)[0]


def _frame(data: bytes) -> Frame:
    return FrameReader().feed(data)[0]


SCRAPS: Final = (
    "[", "]", ",", "'", "{", "}", "(", ")", "$X", "&&", "||", "eq", "isPresent", "@STRING", "str-prefix",
    "before", "2010-01-01", "NOW", "-1e999", "0x10", "\\", "\x00", "\u2028", "é", "𝄞", "in", "between",
    "9" * 400, "[class,eq,'A']", "a" * 300, "\n", " ", "!=", "true", "nan", "inf",
)  # fmt: skip


def misread(random: Random) -> None:
    """Damaged text is refused with a LanguageError or read; nothing else happens."""
    text = random.choice(
        (
            print_subscription(contents.subscription(random)),
            print_advertisement(contents.advertisement(random)),
            print_publication(contents.content(random, None)),
        )
    )
    for _ in range(random.randint(0, 5)):
        at = random.randint(0, len(text))
        cut = at + random.choice((0, 0, 1, 2, 9))
        text = text[:at] + random.choice((*SCRAPS, "", "")) + text[cut:]
    for parse in (parse_subscription, parse_advertisement, parse_publication):
        try:
            parse(text)
        except LanguageError as refused:
            said = [str(problem) for problem in refused.problems]
        else:
            continue
        assert all(said), text


def fuzz_all(cases: int, seed: int) -> int:
    """So many cases in all: a third each for brokers, clients and text."""
    failed = 0
    codes: dict[str, int] = {}
    third = max(1, cases // 3)
    sieges = max(1, third // ROUNDS_PER_NETWORK)
    for number in range(sieges):
        try:
            for code, count in besiege(seed + number, ROUNDS_PER_NETWORK).items():
                codes[code] = codes.get(code, 0) + count
        except Exception as error:
            failed += 1
            _report(f"besiege({seed + number}, {ROUNDS_PER_NETWORK})", error)
        if number % 20 == 19:
            print(f"{(number + 1) * ROUNDS_PER_NETWORK} attacks, {failed} failed", file=sys.stderr)
    for case in range(third):
        for attack in (mislead, misread):
            try:
                attack(Random(f"{attack.__name__} {seed} {case}"))
            except Exception as error:
                failed += 1
                _report(f'{attack.__name__}(Random("{attack.__name__} {seed} {case}"))', error)
    answers = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
    attacks = sieges * ROUNDS_PER_NETWORK
    print(f"{attacks} attacks on brokers, {third} on clients, {third} texts: {failed} failed")
    print(f"rejected: {answers}")
    return 1 if failed else 0


def _report(call: str, error: Exception) -> None:
    where = traceback.extract_tb(error.__traceback__)[-1]
    print(f"{call}: {type(error).__name__}: {error} ({where.filename}, line {where.lineno})")
    print(f"  python -c 'from broker_runtime.sim.fuzz import *; {call}'")
