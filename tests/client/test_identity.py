"""An id belongs to whoever is connected under it."""

from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.client import connect
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer
from tests.support.local_brokers import LocalBrokers


async def test_a_second_broker_of_a_taken_id_does_not_disturb_the_first(brokers: LocalBrokers) -> None:
    await brokers.start("A")
    await brokers.start("B", "A")
    refusals: list[str] = []

    class Listening(LogWriter):
        def write(self, kind, fields):  # type: ignore[no-untyped-def]
            refusals.append(str(fields.get("message", "")))

    second = BrokerServer(BrokerSettings(id="B", neighbours=(brokers.addresses["A"],)), Listening(None, "B"))
    async with connect(brokers.addresses["A"]) as client:
        await client.control("B", "info")
        session = brokers.servers["A"].broker.endpoint.sessions["B"]
        await second.start(Address("127.0.0.1", 0))
        try:
            while "a broker B is connected already" not in refusals:
                await client.control("B", "info")
        finally:
            await second.close()
        assert brokers.servers["A"].broker.endpoint.sessions["B"] is session
        assert not session.ended
