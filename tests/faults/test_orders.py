"""Orders on the line of a real process: carried out, answered, and over by themselves when nobody is left."""

import json

import pytest

from broker_runtime.commands.exits import Exit
from broker_runtime.net.line import LINE_BYTES_MAX, Orders
from tests.e2e.test_log_format import check_file
from tests.support.line import Lines

BAD_ORDERS = [
    (b"nonsense", None),
    (b"\xff\xfe", None),
    (b"[" * 30_000, None),
    (b"[1]", None),
    (b"{}", None),
    (b'{"fault":"cut","peer":"B"}', None),
    (b'{"fault":"cut","peer":"B","number":true}', None),
    (b'{"number":1}', 1),
    (b'{"fault":"cut","heal":"B","peer":"B","number":2}', 2),
    (b'{"fault":"flood","peer":"B","number":3}', 3),
    (b'{"fault":["cut"],"peer":"B","number":3}', 3),
    (b'{"fault":"cut","peer":"*","number":4}', 4),
    (b'{"fault":"cut","number":5}', 5),
    (b'{"fault":"delay","peer":"B","number":6}', 6),
    (b'{"fault":"delay","peer":"B","value":-1,"number":7}', 7),
    (b'{"fault":"delay","peer":"B","value":1e999,"number":8}', None),
    (b'{"fault":"delay","peer":"B","value":"1","number":9}', 9),
    (b'{"fault":"loss","peer":"B","value":1.01,"number":10}', 10),
    (b'{"fault":"rate","peer":"B","value":0,"number":11}', 11),
    (b'{"fault":"cut","peer":"B","for_s":0,"number":12}', 12),
    (b'{"fault":"cut","peer":"B","for_s":1e300,"number":13}', 13),
    (b'{"heal":"","number":14}', 14),
    (b'{"heal":7,"number":15}', 15),
    (b"x" * (LINE_BYTES_MAX + 1), None),
]


def test_bad_orders_are_answered_and_harm_nothing(lines: Lines) -> None:
    a, line = lines.broker("A")
    for order, number in BAD_ORDERS:
        line.say(order + b"\n")
        answer = line.wait_for(say="fault")
        assert answer["number"] == number, (order[:60], answer)
        assert answer["error"]
        assert "ok" not in answer
    line.fault("cut", "B")
    assert a.terminate() == Exit.DONE
    kinds = [json.loads(text)["kind"] for text in (lines.folder / "A.jsonl").read_text().splitlines()]
    assert kinds.count("fault") == 1


def test_orders_may_come_in_any_pieces() -> None:
    stream = b'{"number":1}\n\n{"number":2}\n' + b"x" * (3 * LINE_BYTES_MAX) + b'\n{"number":3}\n'
    for size in (1000, LINE_BYTES_MAX, len(stream)):
        orders = Orders()
        found = [each for at in range(0, len(stream), size) for each in orders.feed(stream[at : at + size])]
        assert [each if isinstance(each, dict) else "too long" for each in found] == [
            {"number": 1},
            {"number": 2},
            "too long",
            {"number": 3},
        ]


def test_a_cut_between_processes_heals_and_loses_nothing(lines: Lines) -> None:
    _, a_line = lines.broker("A")
    lines.broker("B", "A")
    a_line.wait_for(say="link", peer="B", up=True)
    subscriber, subscribed = lines.start(
        "subscribe", "-b", lines.addresses["B"], "-i", "S", "[class,eq,'STOCK']", "--json", "--count", "200"
    )
    subscribed.wait_for(say="ready", id="S")
    lines.start("sqpublisher", "-b", lines.addresses["A"], "-i", "P", "-s", "YHOO", "-r", "12000")
    subscriber.wait_for(lambda line: line.startswith("{"))
    a_line.fault("cut", "B")
    assert a_line.wait_for(say="link", peer="B", up=False)["reason"] == "cut by a fault"
    a_line.heal("B")
    a_line.wait_for(say="link", peer="B", up=True)
    assert subscriber.wait() == Exit.DONE
    ids = [int(json.loads(line)["id"].rpartition(":")[2]) for line in subscriber.stdout.seen]
    assert ids == list(range(ids[0], ids[0] + 200))


def test_a_fault_ends_by_itself_when_the_agent_is_gone(lines: Lines) -> None:
    a, a_line = lines.broker("A")
    b, b_line = lines.broker("B", "A")
    b_line.wait_for(say="link", peer="A", up=True)
    a_line.fault("cut", "B", for_s=0.3)
    a_line.close()
    b_line.wait_for(say="link", peer="A", up=False)
    b_line.wait_for(say="link", peer="A", up=True)
    assert (a.terminate(), b.terminate()) == (Exit.DONE, Exit.DONE)
    check_file(lines.folder / "A.jsonl")
    logged = [json.loads(text) for text in (lines.folder / "A.jsonl").read_text().splitlines()]
    (fault,) = [each for each in logged if each["kind"] == "fault"]
    (heal,) = [each for each in logged if each["kind"] == "heal"]
    assert (fault["fault"], fault["peer"], fault["for_s"]) == ("cut", "B", 0.3)
    assert heal["lasted_s"] >= 0.3


@pytest.mark.parametrize("kind", ["cut", "loss"])
def test_a_client_has_faulty_links_as_well(lines: Lines, kind: str) -> None:
    lines.broker("A", options=("--heartbeat", "0.2", "--dead-after", "0.5"))
    process, line = lines.start(
        "subscribe", "-b", lines.addresses["A"], "-i", "S", "[class,eq,'X']", "--log", "S.jsonl"
    )
    line.wait_for(say="ready", id="S")
    line.fault(kind, "A", 1.0)
    process.wait_for("disconnected: ", process.stderr)
    line.heal()
    process.wait_for("connected to A again", process.stderr)
    assert process.terminate() == Exit.DONE
    assert {"fault", "heal"} <= check_file(lines.folder / "S.jsonl")


def test_a_process_with_a_slow_link_is_stopped_promptly(lines: Lines) -> None:
    a, _ = lines.broker("A")
    b, b_line = lines.broker("B", "A")
    b_line.wait_for(say="link", peer="A", up=True)
    b_line.fault("delay", "A", 60.0)
    b_line.fault("rate", "A", 1.0)
    assert (b.terminate(), a.terminate()) == (Exit.DONE, Exit.DONE)
