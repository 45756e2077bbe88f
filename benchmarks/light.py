"""Publishers and subscribers that cost next to nothing: bytes built beforehand, blocking sockets.

They speak the real protocol (handshake, numbered records, acknowledgements) or, against the baseline
relays, bare records. All of it on loopback.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Sequence

from broker_runtime.link import handshake
from broker_runtime.wire.frames import (
    ACK,
    DATA,
    DATA_HEADER_BYTES,
    PROTOCOL_VERSION,
    FrameReader,
    Greeting,
    Hello,
    Welcome,
    data_header,
    decode_ack,
    decode_data,
    decode_handshake,
    encode_ack,
    encode_handshake,
)
from broker_runtime.wire.records import Message, encode, encode_publication

READ_BYTES = 1 << 20
WINDOW_RECORDS = 16_000
WINDOW_BYTES = 4_000_000
CONTENT = {
    "class": "STOCK",
    "symbol": "YHOO",
    "price": 25.25,
    "volume": 170_300,
    "note": "forty characters of text, more or less.",
}


class BrokerLink:
    """A client's connection to a broker, as small as the protocol allows."""

    def __init__(self, port: int, client: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.source = f"{client}:bench"
        self.reader = FrameReader(64 << 20)
        self.sent = 0
        self.acked = 0
        self.received = 0
        greeting = self._handshake(Greeting)
        assert isinstance(greeting, Greeting)
        self.socket.sendall(
            encode_handshake(
                Hello(
                    version=PROTOCOL_VERSION,
                    role="client",
                    id=client,
                    incarnation="bench",
                    challenge=bytes(handshake.CHALLENGE_BYTES),
                )
            )
        )
        self._handshake(Welcome)

    def _handshake(self, expected: type) -> object:
        while True:
            for kind, body in self.reader.feed(self.socket.recv(READ_BYTES)):
                message = decode_handshake(kind, body)
                assert isinstance(message, expected), message
                return message

    def issue(self, messages: Sequence[Message]) -> None:
        """Send messages and wait until the broker has taken them."""
        records = [encode(message) for message in messages]
        for start in range(0, len(records), 500):
            chunk = records[start : start + 500]
            self.send(b"".join(chunk), len(chunk))
            while self.acked < self.sent:
                self.read(wait=True)

    def send(self, records: bytes, count: int) -> None:
        header = data_header(0, self.sent + 1, (self.received, 0), len(records))
        self.sent += count
        self.socket.sendall(header + records)

    def read(self, wait: bool, record_bytes: int = 0) -> int:
        """Take what has come; how many publications (all of one size) there were."""
        try:
            data = self.socket.recv(READ_BYTES, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        if not data:
            raise ConnectionError("the broker closed the connection")
        came = 0
        for kind, body in self.reader.feed(data):
            if kind == DATA:
                self.acked = decode_data(body).taken[0]
                came += (len(body) - DATA_HEADER_BYTES) // record_bytes if record_bytes else 0
            elif kind == ACK:
                self.acked = decode_ack(body).taken[0]
            else:
                raise ConnectionError(f"the broker said {decode_handshake(kind, body)}")
        if came:
            self.received += came
            self.socket.sendall(encode_ack((self.received, 0), (self.sent, 0)))
        return came


def publications(source: str, contents: Sequence[dict[str, object]] = (CONTENT,)) -> list[bytes]:
    return [encode_publication(source, 1, 1.5, content) for content in contents]  # type: ignore[arg-type]


def publish_for(link: BrokerLink, records: Sequence[bytes], seconds: float, batch: int = 250) -> int:
    """Publish in full batches as fast as the window allows; how many were acknowledged."""
    joined = [
        b"".join(records[(i + j) % len(records)] for j in range(batch))
        for i in range(0, max(1, len(records)), batch)
    ]
    window = min(WINDOW_RECORDS, WINDOW_BYTES // len(records[0]))
    before, turn = link.acked, 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        while link.sent - link.acked + batch > window:
            link.read(wait=True)
        link.send(joined[turn % len(joined)], batch)
        turn += 1
        link.read(wait=False)
    while link.acked < link.sent:
        link.read(wait=True)
    return link.acked - before


def receive(links: Sequence[BrokerLink], record_bytes: int, done: Callable[[int], bool]) -> int:
    """Receive on all links until `done(count)`; how many publications came."""
    selector = selectors.DefaultSelector()
    for link in links:
        selector.register(link.socket, selectors.EVENT_READ, link)
    count = 0
    while not done(count):
        for key, _ in selector.select(0.05):
            count += key.data.read(wait=True, record_bytes=record_bytes)
    selector.close()
    return count
