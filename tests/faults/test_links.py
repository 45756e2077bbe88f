"""A faulty link is a bad network, nothing more: what is sent over it comes once and in order, if it heals.

Two brokers, B dials A; a publisher at A, a subscriber at B.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.client import Client, ClientOptions, Disconnected, SubscriptionHandle, connect
from broker_runtime.link.session import LinkSettings
from broker_runtime.net.detour import BURST_S, frames_of
from broker_runtime.net.faults import FAULTS_MAX, Fault, read_fault
from broker_runtime.wire.frames import data_header, encode_ack
from tests.support.local_brokers import LocalBrokers

TIMEOUT_S = 20.0
QUICK = LinkSettings(
    heartbeat_s=0.1,
    dead_after_s=1.0,
    handshake_timeout_s=0.3,
    dial_backoff_min_s=0.01,
    dial_backoff_max_s=0.05,
)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():  # noqa: ASYNC110 — the state of a core has no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def publisher_and_subscriber(
    brokers: LocalBrokers, link: LinkSettings = QUICK
) -> AsyncIterator[tuple[Client, SubscriptionHandle]]:
    await brokers.start("A", link=link)
    await brokers.start("B", "A", link=link)
    await until(lambda: linked(brokers))
    async with (
        connect(brokers.addresses["A"], "P") as publisher,
        connect(brokers.addresses["B"], "S") as subscriber,
    ):
        await publisher.advertise("[class,eq,'X'],[n,isPresent,@INTEGER]")
        sub = await subscriber.subscribe("[class,eq,'X']")
        await publisher.settle()
        await subscriber.settle()
        yield publisher, sub


def linked(brokers: LocalBrokers) -> bool:
    pairs = (("A", "B"), ("B", "A"))
    sessions = [brokers.servers[one].broker.endpoint.sessions.get(other) for one, other in pairs]
    return all(session is not None and session.connection is not None for session in sessions)


def order(brokers: LocalBrokers, broker: str, **fields: object) -> None:
    brokers.servers[broker].faults.obey(fields)


async def publish(client: Client, numbers: range, payload: bytes = b"") -> None:
    """One by one, so that many frames leave."""
    for n in numbers:
        await client.publish({"class": "X", "n": n}, payload)


async def received(sub: SubscriptionHandle, count: int) -> list[object]:
    return [(await sub.get(TIMEOUT_S)).content["n"] for _ in range(count)]


async def nothing_more(sub: SubscriptionHandle, publisher: Client, last: int) -> None:
    """One more publication comes next: nothing was repeated."""
    await publish(publisher, range(last, last + 1))
    assert await received(sub, 1) == [last]


@pytest.mark.parametrize("where", ["A", "B"])
async def test_what_is_published_while_a_link_is_cut_comes_when_it_heals(
    brokers: LocalBrokers, where: str
) -> None:
    other = "B" if where == "A" else "A"
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        flowing = asyncio.create_task(publish(publisher, range(200)))
        await received(sub, 20)
        order(brokers, where, fault="cut", peer=other)
        await until(lambda: not linked(brokers))
        seen_by_a = brokers.servers["A"]._shell._next_id
        await flowing
        dials = brokers.servers["B"].broker.endpoint.targets[brokers.addresses["A"]]
        await until(lambda: dials.backoff_s == QUICK.dial_backoff_max_s)  # B tried, and tried again
        assert not linked(brokers)
        assert (brokers.servers["A"]._shell._next_id > seen_by_a) is (where == "A")  # B was not let out
        assert len(brokers.logs[where].of("link_up")) == 1
        assert brokers.logs[where].of("link_down")[0]["reason"] == "cut by a fault"
        order(brokers, where, heal=other)
        assert await received(sub, 180) == list(range(20, 200))
        await nothing_more(sub, publisher, 200)
        assert [up["resumed"] for up in brokers.logs["A"].of("link_up")] == [False, True]


async def test_a_delayed_link_is_late_and_keeps_order(brokers: LocalBrokers) -> None:
    loop = asyncio.get_running_loop()
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        order(brokers, "A", fault="delay", peer="B", value=0.25)
        began = loop.time()
        await publish(publisher, range(50))
        assert await received(sub, 1) == [0]
        assert loop.time() - began >= 0.25
        assert await received(sub, 49) == list(range(1, 50))
        order(brokers, "A", fault="delay", peer="B", value=0.01)  # what comes now does not overtake
        await publish(publisher, range(50, 100))
        assert await received(sub, 50) == list(range(50, 100))
        assert linked(brokers)
        assert len(brokers.logs["A"].of("link_up")) == 1  # no connection was lost over it


async def test_what_a_delay_holds_leaves_when_it_heals(brokers: LocalBrokers) -> None:
    async with publisher_and_subscriber(brokers, LinkSettings()) as (publisher, sub):
        order(brokers, "A", fault="delay", peer="B", value=60)
        await publish(publisher, range(20))
        order(brokers, "A", heal="*")
        await publish(publisher, range(20, 40))
        assert await received(sub, 40) == list(range(40))
        assert len(brokers.logs["A"].of("link_up")) == 1


async def test_what_is_lost_by_the_frame_comes_once_and_in_order(brokers: LocalBrokers) -> None:
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        order(brokers, "A", fault="loss", peer="B", value=0.3)
        order(brokers, "B", fault="loss", peer="A", value=0.3)
        await publish(publisher, range(300))
        await until(lambda: any(up["resumed"] for up in brokers.logs["A"].of("link_up")))
        order(brokers, "A", heal="B")
        order(brokers, "B", heal="A")
        assert await received(sub, 300) == list(range(300))
        await nothing_more(sub, publisher, 300)


async def test_a_handshake_is_lost_like_anything_else(brokers: LocalBrokers) -> None:
    """The fault waits for a peer that is not there yet."""
    await brokers.start("A", link=QUICK)
    order(brokers, "A", fault="loss", peer="B", value=1)
    await brokers.start("B", "A", link=QUICK)
    await until(lambda: brokers.logs["A"].of("link_down"))
    assert not brokers.logs["B"].of("link_up")
    order(brokers, "A", heal="B")
    await until(lambda: linked(brokers))


async def test_a_cut_waits_for_a_peer_that_is_not_there_yet(brokers: LocalBrokers) -> None:
    await brokers.start("A", link=QUICK)
    order(brokers, "A", fault="cut", peer="B")
    await brokers.start("B", "A", link=QUICK)
    await until(lambda: brokers.logs["B"].of("dial_failed"))
    assert not brokers.logs["A"].of("link_up")
    order(brokers, "A", heal="B")
    await until(lambda: linked(brokers))


async def test_a_paced_link_takes_its_time(brokers: LocalBrokers) -> None:
    loop = asyncio.get_running_loop()
    count, size, rate = 40, 1000, 80_000
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        order(brokers, "A", fault="rate", peer="B", value=rate)
        began = loop.time()
        await publish(publisher, range(count), bytes(size))
        assert await received(sub, count) == list(range(count))
        assert loop.time() - began >= count * size / rate - BURST_S - size / rate
        assert len(brokers.logs["A"].of("link_up")) == 1


async def test_faults_combine_and_heal_together(brokers: LocalBrokers) -> None:
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        for kind, value in (("delay", 0.02), ("loss", 0.1), ("rate", 50_000), ("loss", 0.2)):
            order(brokers, "A", fault=kind, peer="B", value=value)
        order(brokers, "A", fault="cut", peer="B", for_s=0.2)
        await publish(publisher, range(100))
        await until(lambda: brokers.logs["A"].of("heal"))
        await until(lambda: linked(brokers))
        order(brokers, "A", heal="*")
        assert await received(sub, 100) == list(range(100))
        await nothing_more(sub, publisher, 100)
        log = brokers.logs["A"]
        assert [(each["fault"], each.get("value")) for each in log.of("fault")] == [
            ("delay", 0.02),
            ("loss", 0.1),
            ("rate", 50_000),
            ("loss", 0.2),
            ("cut", None),
        ]
        assert sorted(str(each["fault"]) for each in log.of("heal")) == ["cut", "delay", "loss", "rate"]


async def test_a_lease_counts_from_the_last_order(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    order(brokers, "A", fault="delay", peer="B", value=1, for_s=0.02)
    order(brokers, "A", fault="delay", peer="B", value=2)  # replaces it: without an end
    order(brokers, "A", fault="delay", peer="C", value=1, for_s=0.04)
    await until(lambda: brokers.logs["A"].of("heal"))
    assert [each["peer"] for each in brokers.logs["A"].of("heal")] == ["C"]


async def test_a_fault_on_one_peer_leaves_the_others_alone(brokers: LocalBrokers) -> None:
    async with publisher_and_subscriber(brokers) as (publisher, sub):
        order(brokers, "A", fault="delay", peer="B", value=60)
        async with connect(brokers.addresses["A"], "T") as near:
            near_sub = await near.subscribe("[class,eq,'X']")
            await publish(publisher, range(10))
            assert await received(near_sub, 10) == list(range(10))
        order(brokers, "A", heal="B")
        assert await received(sub, 10) == list(range(10))


async def test_a_client_can_be_cut_off_too(brokers: LocalBrokers) -> None:
    changes: asyncio.Queue[object] = asyncio.Queue()
    options = ClientOptions(on_change=changes.put_nowait, link=QUICK)
    address = await brokers.start("A", link=QUICK)
    async with connect(address, "P") as publisher, connect(address, "S", options=options) as subscriber:
        await publisher.advertise("[class,eq,'X'],[n,isPresent,@INTEGER]")
        sub = await subscriber.subscribe("[class,eq,'X']")
        await changes.get()
        order(brokers, "A", fault="cut", peer="S", for_s=0.2)
        await publish(publisher, range(10))
        async with asyncio.timeout(TIMEOUT_S):
            assert isinstance(await changes.get(), Disconnected)
        assert await received(sub, 10) == list(range(10))


async def test_more_held_than_a_transport_would_hold_breaks_the_connection(brokers: LocalBrokers) -> None:
    complaints: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
    wide = LinkSettings(window_bytes=64 << 20)
    async with publisher_and_subscriber(brokers, wide) as (publisher, sub):
        faults = brokers.servers["A"].faults
        faults.complain = lambda number, text: complaints.put_nowait((number, text))
        order(brokers, "A", fault="delay", peer="B", value=60, number=7)
        await publish(publisher, range(20), bytes(1_000_000))
        async with asyncio.timeout(TIMEOUT_S):
            number, text = await complaints.get()
        assert number == 7
        assert "16 MiB" in text
        assert brokers.logs["A"].of("link_down")[0]["reason"] == "a fault holds more than 16 MiB"
        order(brokers, "A", heal="B")
        assert await received(sub, 20) == list(range(20))


async def test_a_broker_with_faulty_links_stops(brokers: LocalBrokers) -> None:
    async with publisher_and_subscriber(brokers) as (publisher, _):
        order(brokers, "A", fault="delay", peer="B", value=60, for_s=600)
        order(brokers, "A", fault="rate", peer="P", value=1, for_s=600)
        await publish(publisher, range(1))
        await brokers.stop("A")


async def test_there_are_only_so_many_faults(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    for n in range(FAULTS_MAX):
        order(brokers, "A", fault="cut", peer=f"B{n}")
    with pytest.raises(ValueError, match="at most"):
        order(brokers, "A", fault="cut", peer="C")
    order(brokers, "A", fault="cut", peer="B0", for_s=5)  # replaces one
    order(brokers, "A", heal="B1")
    order(brokers, "A", fault="cut", peer="C")
    order(brokers, "A", heal="*")
    order(brokers, "A", heal="*")  # nothing to do is no error


json_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([])


@given(
    st.dictionaries(
        st.sampled_from(["fault", "peer", "value", "for_s", "number"]),
        json_values | st.sampled_from(["cut", "delay", "loss", "rate", "Bob"]),
    )
)
def test_an_order_is_a_sensible_fault_or_refused(fields: dict[str, object]) -> None:
    try:
        fault = read_fault(fields)
    except ValueError:
        return
    assert fault.kind == fields["fault"]
    assert fault.peer == fields["peer"]
    assert fault.for_s is None or 0 < fault.for_s < float("inf")
    assert 0 < fault.value < float("inf") or fault.kind == "cut"


def test_a_fault_is_read_as_the_protocol_writes_it() -> None:
    written = {"fault": "delay", "number": 3, "peer": "Bob", "value": 0.05, "for_s": 10.0}
    assert read_fault(written) == Fault("delay", "Bob", 0.05, 10.0, 3)
    assert read_fault({"fault": "cut", "peer": "Bob", "value": None}) == Fault("cut", "Bob")


@given(st.lists(st.binary(max_size=50)))
def test_a_write_falls_into_its_frames(records: list[bytes]) -> None:
    frames = [data_header(0, 1, (0, 0), len(record)) + record for record in records]
    frames.append(encode_ack((1, 2), (3, 4)))
    assert list(frames_of(b"".join(frames))) == frames
