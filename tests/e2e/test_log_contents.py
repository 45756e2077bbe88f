"""What real brokers and clients log of an experiment: contents, filters, withdrawals, deliveries, totals."""

import asyncio
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from broker_runtime.client import BlockingClient, ClientOptions, connect
from broker_runtime.client_core import Connected
from broker_runtime.language import parse_subscription
from tests.support.processes import Process, Processes

Line = dict[str, Any]
EVERY = ["--log-every", "1"]
CONTENT = {
    "class": "ALL",
    "text": "a 'b' ü\n",
    "empty": "",
    "whole": -5,
    "long": 2**63 - 1,
    "longer": 2**63,
    "big": -(10**30),
    "huge": 10**400,
    "part": 0.5,
    "nan": math.nan,
    "inf": -math.inf,
    "day": datetime(2008, 8, 12, 0, 0, 0, 500_000, UTC),
    "yes": True,
    "no": False,
}
LOGGED = {
    "class": "ALL",
    "texts": {"text": "a 'b' ü\n", "empty": ""},
    "integers": {"whole": -5, "long": 2**63 - 1},
    "floats": {"longer": 2.0**63, "big": -1e30, "huge": None, "part": 0.5, "nan": None, "inf": None},
    "dates": {"day": 1218499200.5},
    "flags": {"yes": True, "no": False},
}
ALL = ",".join(["[class,eq,'ALL']", *(f"[{name},isPresent,*]" for name in list(CONTENT)[1:])])
FILTER = [
    ("[class,eq,'ALL']", {"op": "eq", "texts": ["ALL"]}),
    ("[text,neq,'x']", {"op": "neq", "texts": ["x"]}),
    ("[whole,<,0]", {"op": "<", "numbers": [0]}),
    ("[long,<=,9223372036854775807]", {"op": "<=", "numbers": [2**63 - 1]}),
    ("[big,>,-1e31]", {"op": ">", "numbers": [-1e31]}),
    ("[day,>=,'2008-08-12T00:00:00Z']", {"op": ">=", "dates": [1218499200.0]}),
    ("[yes,eq,true]", {"op": "eq", "flags": [True]}),
    ("[part,isPresent,@FLOAT]", {"op": "isPresent", "type": "@FLOAT"}),
    ("[nan,isPresent,*]", {"op": "isPresent", "type": "*"}),
    ("[text,str-prefix,'a']", {"op": "str-prefix", "texts": ["a"]}),
    ("[text,str-postfix,'\\n']", {"op": "str-postfix", "texts": ["\n"]}),
    ("[text,str-contains,'ü']", {"op": "str-contains", "texts": ["ü"]}),
    ("[whole,in,{-5,0.5}]", {"op": "in", "numbers": [-5, 0.5]}),
]
WANTED = ",".join([text for text, _ in FILTER])


def log(processes: Processes, name: str, *kinds: str) -> list[Line]:
    lines = map(json.loads, (processes.folder / f"{name}.jsonl").read_text().splitlines())
    return [line for line in lines if not kinds or line["kind"] in kinds]


def logging(processes: Processes, name: str, **others: Any) -> ClientOptions:
    return ClientOptions(log=processes.folder / f"{name}.jsonl", log_every=1, **others)


def two_brokers(processes: Processes) -> tuple[Process, Process]:
    a = processes.broker("A", options=EVERY)
    b = processes.broker("B", "A", options=EVERY)
    b.wait_for("link with A is up", b.stderr)
    return a, b


async def test_an_experiment_can_be_told_from_its_logs(processes: Processes) -> None:
    a, b = two_brokers(processes)
    async with (
        connect(processes.addresses["A"], "P", options=logging(processes, "P")) as p,
        connect(processes.addresses["B"], "S", options=logging(processes, "S")) as s,
    ):
        wanted = await s.subscribe(WANTED)
        other = await s.subscribe("[class,eq,'OTHER']")
        promise = await p.advertise(ALL)
        await p.settle()
        id_ = await p.publish(CONTENT)
        await wanted.get(5)
        await wanted.unsubscribe()
        await promise.unadvertise()
    assert (a.terminate(), b.terminate()) == (0, 0)

    (published,) = log(processes, "P", "publish")
    (taken,) = log(processes, "A", "publish")
    assert published.items() >= {"id": id_, "client": "P", **LOGGED}.items()
    assert taken.items() >= {"id": id_, "client": "P", **LOGGED}.items()
    assert published["ack_s"] >= 0
    assert "ack_s" not in taken
    assert log(processes, "B", "publish") == []

    (delivered,) = log(processes, "S", "deliver")
    assert (delivered["id"], delivered["to"], delivered["subscriptions"]) == (id_, [wanted.id], 1)

    told = [(line["kind"], line["id"]) for line in log(processes, "S", "subscribe", "unsubscribe")]
    assert told == [("subscribe", wanted.id), ("subscribe", other.id), ("unsubscribe", wanted.id)]
    assert [(line["kind"], line["id"]) for line in log(processes, "B", "subscribe", "unsubscribe")] == told
    assert log(processes, "A", "subscribe", "unsubscribe") == []
    for name in "SB":
        asked = log(processes, name, "subscribe")[0]
        assert asked["client"] == "S"
        assert parse_subscription(asked["text"]) == parse_subscription(WANTED)
        attributes = [text[1:].partition(",")[0] for text, _ in FILTER]
        expected = [{"attribute": a, **parts} for a, (_, parts) in zip(attributes, FILTER, strict=True)]
        assert asked["filter"] == expected
        assert ("ack_s" in asked) == (name == "S")

    for name in "PA":
        told = [(line["kind"], line["id"], line["client"]) for line in log(processes, name, *PROMISES)]
        assert told == [("advertise", promise.id, "P"), ("unadvertise", promise.id, "P")]
    assert log(processes, "B", *PROMISES) == []


PROMISES = ("advertise", "unadvertise")


async def test_a_notification_names_every_subscription_that_it_is_for(processes: Processes) -> None:
    processes.broker("A")
    async with connect(processes.addresses["A"], "X", options=logging(processes, "X")) as x:
        await x.advertise("[class,eq,'S'],[n,isPresent,*]")
        one = await x.subscribe("[class,eq,'S'],[n,>,0]")
        await x.subscribe("[class,eq,'S'],[n,<,0]")
        two = await x.subscribe("[class,eq,'S']")
        await x.publish("[class,'S'],[n,1]")
        await two.get(5)
    (delivered,) = log(processes, "X", "deliver")
    assert sorted(delivered["to"]) == sorted([one.id, two.id])
    assert delivered["subscriptions"] == 2


async def test_monitor_and_control_are_not_logged(processes: Processes) -> None:
    a, b = two_brokers(processes)
    async with connect(processes.addresses["A"], "X", options=logging(processes, "X")) as x:
        info = await x.subscribe("[class,eq,'BROKER_INFO']")
        every = await x.subscribe("[class,isPresent,*],[broker,eq,'B']")
        await x.control("B", "pause")
        await x.control("B", "resume")
        await info.get(5)
        await every.get(5)
        await info.unsubscribe()
        await x.settle()
    assert (a.terminate(), b.terminate()) == (0, 0)
    messages = ("publish", "deliver", "advertise", "unadvertise", "subscribe", "unsubscribe")
    assert [line["id"] for name in "XAB" for line in log(processes, name, *messages)] == [every.id] * 2


async def test_a_broker_that_is_ended_has_logged_all_its_traffic(processes: Processes) -> None:
    a, b = two_brokers(processes)
    async with (
        connect(processes.addresses["A"], "P") as p,
        connect(processes.addresses["B"], "S") as s,
    ):
        sub = await s.subscribe("[class,eq,'X'],[n,<,7]")
        await p.advertise("[class,eq,'X'],[n,isPresent,*]")
        await p.settle()
        await p.publish_all({"class": "X", "n": n} for n in range(10))
        for _ in range(7):
            await sub.get(5)
        assert (a.terminate(), b.terminate()) == (0, 0)

    lines = log(processes, "A")
    ends = [line for line in lines if line["kind"] in ("link_down", "client_down")]
    assert {line.get("peer", line.get("client")) for line in ends} == {"B", "P"}
    for end in ends:
        before = lines[lines.index(end) - 1]
        assert (before["kind"], before["peer"]) == ("counts", end.get("peer", end.get("client")))
    totals = {line["peer"]: line for line in log(processes, "A", "counts")}
    assert totals["P"]["role"] == "client"
    assert totals["P"]["records_in"] == 13  # ten publications, an advertisement, two for `settle`
    (stop,) = [index for index, line in enumerate(lines) if line["kind"] == "stop"]
    load = lines[stop - 1]
    assert (load["kind"], load["publications"], load["unwanted"]) == ("load", 10, 3)
    assert load["memory_bytes"] > 1 << 20
    assert load["cpu_s"] > 0
    assert load["advertisements"] >= 1


async def test_a_resumed_session_goes_on_counting_and_a_new_one_begins_at_0(processes: Processes) -> None:
    a = processes.broker("A")
    address = processes.addresses["A"]
    again = asyncio.Event()
    told = ClientOptions(on_change=lambda change: again.set() if isinstance(change, Connected) else None)
    async with connect(address, "P", options=told) as p, connect(address, "X") as x:
        await p.advertise("[class,eq,'X']")
        await p.publish("[class,'X']")
        again.clear()
        await x.control("A", "cut", peer="P")
        await asyncio.wait_for(again.wait(), 10)
        await p.publish("[class,'X']")
    async with connect(address, "P") as p:
        await p.advertise("[class,eq,'X']")
    assert a.terminate() == 0
    assert [line["resumed"] for line in log(processes, "A", "client_up") if line["client"] == "P"] == [
        False,
        True,
        False,
    ]
    counts = [line["records_in"] for line in log(processes, "A", "counts") if line["peer"] == "P"]
    assert counts == [3, 1]


async def test_what_is_issued_again_is_logged_again_by_the_broker_only(processes: Processes) -> None:
    first = processes.broker("A")
    port = int(processes.addresses["A"].rpartition(":")[2])
    again = asyncio.Event()
    told = logging(processes, "S", on_change=lambda c: again.set() if isinstance(c, Connected) else None)
    async with connect(processes.addresses["A"], "S", options=told) as s:
        sub = await s.subscribe("[class,eq,'X']")
        again.clear()
        assert first.terminate() == 0
        second = processes.broker("A", port=port)
        await asyncio.wait_for(again.wait(), 10)
        await s.settle()
    assert second.terminate() == 0
    assert [line["id"] for line in log(processes, "A", "subscribe")] == [sub.id, sub.id]
    assert [line["id"] for line in log(processes, "S", "subscribe")] == [sub.id]
    own = log(processes, "S", "connected", "disconnected")
    assert [line.get("resumed", line.get("reason")) for line in own] == [False, "SIGTERM", False, "closed"]
    ended = [line for line in log(processes, "A", "client_down") if line["ended"]]
    assert [line["client"] for line in ended] == ["S", "S"]
    assert log(processes, "A", "unsubscribe") == log(processes, "S", "unsubscribe") == []


def test_commands_and_plain_programs_log_the_same_lines(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]
    at = ["-b", address, *EVERY, "--log"]
    subscriber = processes.start("subscribe", *at, "S.jsonl", "-i", "S", "--count", "1", "[class,eq,'X']")
    subscriber.wait_for("S subscribed", subscriber.stderr)
    processes.run("publish", *at, "P.jsonl", "-i", "P", "[class,'X'],[n,5]")
    assert subscriber.wait() == 0
    with BlockingClient(address, "C", options=logging(processes, "C")) as c:
        c.subscribe("[class,eq,'X']").unsubscribe()
        c.unadvertise(c.advertise("[class,eq,'X']"))
    assert [line["kind"] for line in log(processes, "P")][2:-1] == ["advertise", "publish"]
    assert log(processes, "P", "publish")[0]["integers"] == {"n": 5}
    kinds = [line["kind"] for line in log(processes, "S")][2:-1]
    assert sorted(kinds) == ["deliver", "subscribe"]
    assert log(processes, "S", "deliver")[0]["to"] == [log(processes, "S", "subscribe")[0]["id"]]
    kinds = [line["kind"] for line in log(processes, "C")][2:-1]
    assert kinds == ["subscribe", "unsubscribe", "advertise", "unadvertise"]


async def test_what_is_withdrawn_before_it_was_taken_is_in_no_log_of_its_client(processes: Processes) -> None:
    processes.broker("A")
    async with connect(processes.addresses["A"], "X", options=logging(processes, "X")) as x:
        asking = asyncio.create_task(x.subscribe("[class,eq,'X']"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await x.settle()
    assert log(processes, "X", "subscribe", "unsubscribe") == []
