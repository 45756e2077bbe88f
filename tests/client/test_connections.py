"""A client gets in or is told why not; it comes back by itself; a slow program pushes back."""

import asyncio
from pathlib import Path

import pytest

from broker_runtime.client import (
    Change,
    ClientClosed,
    ClientOptions,
    Connected,
    Disconnected,
    IdInUse,
    LinkSettings,
    NotAdmitted,
    Noticed,
    Policy,
    PublicationLost,
    Unreachable,
    VersionMismatch,
    WrongToken,
    connect,
    find_token,
)
from broker_runtime.wire.frames import Greeting, encode_handshake
from tests.client.test_messages import EVERY_STOCK, STOCK, stock
from tests.support.local_brokers import LocalBrokers


async def test_an_unreachable_broker_is_retried_until_the_time_is_over(brokers: LocalBrokers) -> None:
    address = await brokers.start("A")
    await brokers.stop("A")
    with pytest.raises(Unreachable, match=f"no broker at {address}"):
        await connect(address, options=ClientOptions(connect_timeout_s=0.3))


async def test_a_broker_that_comes_up_late_is_reached(brokers: LocalBrokers) -> None:
    address = await brokers.start("A")
    await brokers.stop("A")
    opening = asyncio.create_task(connect(address, "C").open())
    await asyncio.sleep(0)
    await brokers.start("A", port=int(address.rpartition(":")[2]))
    client = await opening
    assert client.broker == "A"
    await client.close()


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_a_wrong_token_is_refused_and_never_shown(brokers: LocalBrokers, token: str) -> None:
    address = await brokers.start("A", token="s3cret")
    with pytest.raises(WrongToken) as refused:
        await connect(address, "C", token=token)
    assert "s3cret" not in str(refused.value)
    async with connect(address, "C", token="s3cret") as client:
        assert "s3cret" not in repr(client)
        assert "s3cret" not in repr(vars(client))


def test_a_token_comes_from_argument_file_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PANDA_TOKEN", "of the environment")
    (tmp_path / "token").write_text("of the file\n")
    (tmp_path / "empty").write_text("\n")
    assert find_token("of the argument", tmp_path / "token") == "of the argument"
    assert find_token(file=tmp_path / "token") == "of the file"
    assert find_token() == "of the environment"
    with pytest.raises(ValueError, match="must hold one token"):
        find_token(file=tmp_path / "empty")


async def test_an_id_in_use_is_refused_at_once(brokers: LocalBrokers) -> None:
    address = await brokers.start("A")
    async with connect(address, "C") as first:
        with pytest.raises(IdInUse, match="C is connected already"):
            await connect(address, "C")
        assert first.connected


async def test_the_brokers_own_id_is_refused(brokers: LocalBrokers) -> None:
    with pytest.raises(NotAdmitted) as refused:
        await connect(await brokers.start("A"), "A")
    assert refused.value.code == "SELF"


async def test_a_broker_of_another_version_is_refused() -> None:
    greeting = Greeting(version=99, broker="A", challenge=b"c" * 16, token_required=False)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode_handshake(greeting))
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    gone = asyncio.Event()
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(VersionMismatch, match="version 99"):
            await connect(f"127.0.0.1:{port}", "C")
        await gone.wait()


async def test_a_client_that_is_not_open_says_how_to_open_it(brokers: LocalBrokers) -> None:
    client = connect(await brokers.start("A"), "C")
    with pytest.raises(ClientClosed, match="async with"):
        await client.publish(stock(1))


async def test_a_call_given_up_leaves_nothing_behind(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "C") as c:
        for call, text in ((c.subscribe, EVERY_STOCK), (c.advertise, STOCK)):
            calling = asyncio.create_task(call(text))
            await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        tables = (await c.control("A", "tables")).tables()
        ours = [entry for table in ("subscriptions", "advertisements") for entry in tables[table]]
        assert not any("STOCK" in entry["text"] for entry in ours)


async def test_after_a_restart_subscriptions_and_advertisements_stand_again(brokers: LocalBrokers) -> None:
    changes: asyncio.Queue[Change] = asyncio.Queue()
    options = ClientOptions(on_change=changes.put_nowait)
    async with connect(await brokers.start("A"), "C", options=options) as c:
        sub = await c.subscribe(EVERY_STOCK)
        await c.advertise(STOCK)
        assert await changes.get() == Connected("A", resumed=False)
        await brokers.restart("A")
        while not isinstance(await asyncio.wait_for(changes.get(), 10), Connected):
            pass
        await c.publish(stock(1))
        assert (await sub.get(5)).content["price"] == 1


async def test_a_broken_connection_is_resumed_without_loss(brokers: LocalBrokers) -> None:
    changes: asyncio.Queue[Change] = asyncio.Queue()
    address = await brokers.start("A")
    async with (
        connect(address, "P") as p,
        connect(address, "S", options=ClientOptions(on_change=changes.put_nowait)) as s,
    ):
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        assert isinstance(await changes.get(), Connected)
        for n in range(300):
            p.publish_soon(stock(n))
            if n == 100:
                await p.flush()
                break_connections(s)
        await p.flush()
        assert [(await sub.get(5)).content["price"] for _ in range(300)] == list(range(300))
        assert isinstance(await changes.get(), Disconnected)
        assert await changes.get() == Connected("A", resumed=True)


def break_connections(client: object) -> None:
    for wire in list(client._shell._wires.values()):  # type: ignore[attr-defined]
        wire.transport.abort()


async def test_a_publication_without_answer_is_reported_lost(brokers: LocalBrokers) -> None:
    async with connect(await brokers.start("A"), "P") as p:
        await p.advertise(STOCK)
        await p.control("A", "pause")
        publishing = asyncio.create_task(p.publish(stock(1)))
        await p.control("A", "info")
        await brokers.restart("A")
        with pytest.raises(PublicationLost):
            await asyncio.wait_for(publishing, 10)


async def test_a_slow_program_pushes_back_to_the_publisher(brokers: LocalBrokers) -> None:
    link = LinkSettings(queue_length_max=50, window_records=50)
    address = await brokers.start("A", link=link)
    slow = ClientOptions(notifications_max=50, link=link)
    async with (
        connect(address, "P", options=ClientOptions(link=link)) as p,
        connect(address, "S", options=slow) as s,
    ):
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        await p.control("A", "info")
        publishing = asyncio.create_task(p.publish_all(stock(n) for n in range(3000)))
        for _ in range(50):  # rounds through the broker: what can move has moved, and then stands still
            await p.control("A", "info")
        assert not publishing.done()
        assert sub.waiting <= 150
        assert [(await sub.get(5)).content["price"] for _ in range(3000)] == list(range(3000))
        assert await publishing == 3000


async def test_a_slow_subscriber_may_choose_to_lose_the_oldest(brokers: LocalBrokers) -> None:
    link = LinkSettings(queue_length_max=50, window_records=50)
    address = await brokers.start("A", link=link)
    notices: asyncio.Queue[Change] = asyncio.Queue()
    options = ClientOptions(
        notifications_max=20, policy=Policy.DROP_OLDEST, link=link, on_change=notices.put_nowait
    )
    async with connect(address, "P") as p, connect(address, "S", options=options) as s:
        sub = await s.subscribe(EVERY_STOCK)
        await p.advertise(STOCK)
        assert await p.publish_all(stock(n) for n in range(2000)) == 2000
        got = []
        while 1999 not in got:
            got.append((await sub.get(5)).content["price"])
        assert got == sorted(got)  # type: ignore[type-var]
        assert len(got) < 2000
        while not isinstance(notice := await asyncio.wait_for(notices.get(), 5), Noticed):
            pass
        assert notice.code == "DROPPED"


async def test_a_full_queue_does_not_keep_its_own_subscription_from_ending(brokers: LocalBrokers) -> None:
    options = ClientOptions(notifications_max=10)
    async with connect(await brokers.start("A"), "C", options=options) as c:
        sub = await c.subscribe(EVERY_STOCK)
        await c.advertise(STOCK)
        await c.publish_all(stock(n) for n in range(100))
        await asyncio.wait_for(sub.unsubscribe(), 5)
        assert sub.waiting >= 10
