"""The blocking client has the same verbs, for programs without asyncio."""

from itertools import islice

import pytest

from broker_runtime.client import BlockingClient, ClientOptions, NotAdvertised, Unreachable
from tests.support.processes import Processes, processes

__all__ = ["processes"]


def test_every_verb_from_a_plain_program(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]
    with BlockingClient(address, "P") as p, BlockingClient(address, "S") as s:
        sub = s.subscribe("[class,eq,'STOCK'],[price,>,1]")
        promise = p.advertise("[class,eq,'STOCK'],[price,isPresent,@INTEGER]")
        p.settle()
        p.publish("[class,'STOCK'],[price,2]")
        assert sub.get(5).content["price"] == 2
        assert p.publish_all({"class": "STOCK", "price": n} for n in range(2, 50)) == 48
        assert [n.content["price"] for n in islice(sub, 48)] == list(range(2, 50))
        assert [info.broker for info in s.brokers()] == ["A"]
        assert s.control("A", "info").content["state"] == "running"
        assert p.trace({"class": "STOCK", "price": 3}).complete
        assert [n.content["price"] for n in sub.notifications(timeout_s=0.2)] == [3]
        with pytest.raises(TimeoutError):
            sub.get(0.05)
        sub.unsubscribe()
        p.unadvertise(promise)
        with pytest.raises(NotAdvertised):
            p.publish("[class,'STOCK'],[price,2]")
    with pytest.raises(RuntimeError, match="closed"):
        p.publish("[class,'STOCK'],[price,2]")
    p.close()


def test_nobody_there_is_the_same_error() -> None:
    with pytest.raises(Unreachable):
        BlockingClient("127.0.0.1:1", options=ClientOptions(connect_timeout_s=0.2))
