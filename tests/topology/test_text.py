"""Timed lines become steps, with the same meaning in any spelling, and exact places for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.addresses import Address
from panda.topology.model import Action, Link
from panda.topology.problems import Reading, TopologyRefused
from panda.topology.quantities import read_rate, read_share, read_time, write_rate, write_share, write_time
from panda.topology.reading import add_line, read_topology
from panda.topology.scanning import LineScanner, quote, quote_remark

BROKER = "0.0 ADD BrokerA 10.0.1.1 startbroker.sh -Xms 64 -Xmx 128 -hostname 10.0.1.1 -p 10000 -i Alice"
PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")))


def read(text: str) -> Reading:
    return read_topology(text, "topo.txt")


def places(reading: Reading) -> list[tuple[int, int]]:
    return [(problem.place.line, problem.place.column) for problem in reading.problems]


def test_the_papers_lines_are_a_broker_and_its_end() -> None:
    topology = read(f"{BROKER}\n3500 REMOVE BrokerA 10.0.1.1\n").accepted()
    (broker,) = topology.processes
    assert (broker.id, broker.speaks, broker.host, broker.kind) == ("BrokerA", "Alice", "10.0.1.1", "broker")
    assert broker.listen == Address("10.0.1.1", 10000, "Alice")
    assert broker.phase == 1
    assert [(step.at_s, step.action, step.process) for step in topology.steps] == [
        (0.0, Action.ADD, "BrokerA"),
        (3500.0, Action.REMOVE, "BrokerA"),
    ]


def test_both_dialects_name_neighbours() -> None:
    text = f"{BROKER}\n0 add Bob 10.0.1.2 bin/startbroker -uri socket://10.0.1.2:10000/Bob -n 10.0.1.1:10000"
    assert read(text).accepted().links == (Link("Bob", "BrokerA"),)


def test_a_broker_without_a_hostname_listens_at_the_host_of_its_line() -> None:
    (broker,) = read("0 ADD A node-7 ./startbroker.sh -p 9000 -i A").accepted().processes
    assert broker.listen == Address("node-7", 9000, "A")


def test_steps_are_in_order_of_time_and_of_lines() -> None:
    topology = read("9 MARK c\n0 ADD A h sleep 1\n5 MARK b\n5 MARK bb\n").accepted()
    assert [(step.number, step.text or step.process) for step in topology.steps] == [
        (1, "A"),
        (2, "b"),
        (3, "bb"),
        (4, "c"),
    ]


def test_comments_end_lines_outside_of_quotes_and_words() -> None:
    text = "# all\n// all\n0 ADD A h echo a#b 'x # y' socket://h:1/A # end\n1 ADD B h echo // end\n\n"
    first, second = read(text).accepted().processes
    assert first.command == ("echo", "a#b", "x # y", "socket://h:1/A")
    assert second.command == ("echo",)


def test_quotes_work_as_in_a_shell() -> None:
    (process,) = read(r"""0 ADD A h echo "a \"b\" \n" 'c\' d\ e f"g h"'i' '' """).accepted().processes
    assert process.command == ("echo", 'a "b" \\n', "c\\", "d e", "fg hi", "")


@pytest.mark.parametrize(
    ("line", "action", "groups", "value", "for_s"),
    [
        ("CUT A B for 5s", Action.CUT, (("A",), ("B",)), None, 5.0),
        ("partition A, B | C for 1m", Action.PARTITION, (("A", "B"), ("C",)), None, 60.0),
        ("PARTITION A|B,C", Action.PARTITION, (("A",), ("B", "C")), None, None),
        ("DELAY A B 50ms for 30s", Action.DELAY, (("A",), ("B",)), 0.05, 30.0),
        ("LOSS A B 5%", Action.LOSS, (("A",), ("B",)), 0.05, None),
        ("RATE A B 100kB/s", Action.RATE, (("A",), ("B",)), 100_000.0, None),
        ("HEAL A B", Action.HEAL, (("A",), ("B",)), None, None),
        ("HEAL A", Action.HEAL, (("A",),), None, None),
        ("HEAL", Action.HEAL, (), None, None),
    ],
)
def test_faults(
    line: str, action: Action, groups: tuple[tuple[str, ...], ...], value: float | None, for_s: float | None
) -> None:
    chain = "\n".join(
        f"0 ADD {name} h startbroker.sh -p {port} -i {name}" + (f" -n h:{port - 1}" if port > 1 else "")
        for port, name in enumerate("ABC", 1)
    )
    step = read(f"{chain}\n10 {line}").accepted().steps[-1]
    assert (step.action, step.groups, step.value, step.for_s) == (action, groups, value, for_s)


def test_steps_may_use_the_id_of_the_broker_instead_of_the_process() -> None:
    topology = read(f"{BROKER}\n5 PAUSE Alice for 1s\n9 remove Alice 10.0.1.1").accepted()
    assert [step.process for step in topology.steps] == ["BrokerA"] * 3


def test_a_mark_is_any_text() -> None:
    assert read('5 MARK it\'s 50% "done"  # really\n').accepted().steps[0].text == 'it\'s 50% "done"'


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("0.0 ADDD A h x", 5, "unknown verb ADDD"),
        ("0.0 ADD A h", 12, "a command is missing"),
        ("0.0 ADD", 8, "an id, a host and a command are missing"),
        ("0.0", 4, "a verb is missing"),
        ("ADD A h x", 1, "a line begins with a time"),
        ("-1 MARK x", 1, "-1: a time is not negative"),
        ("nan MARK x", 1, "nan: this is no time"),
        ("inf MARK x", 1, "inf: this is no time"),
        ("1e5 MARK x", 1, "1e5: this is no time"),
        ("1x MARK x", 1, "1x: not a unit of time: 'x'"),
        ('0 ADD A h echo "x', 16, 'the quote " is never closed'),
        ("0 ADD A h echo x\\", 17, "nothing follows the backslash"),
        ("5 MARK", 7, "MARK needs a text"),
        ("5 CUT A", 8, "CUT needs two processes"),
        ("5 CUT A B C", 11, "C is too much"),
        ("5 DELAY A B soon", 13, "DELAY soon: this is no time"),
        ("5 LOSS A B 500%", 12, "LOSS 500%: a share is at most 100%"),
        ("5 RATE A B 5", 12, "RATE 5: this is no rate"),
        ("5 CUT A B for", 11, "for needs a time, and ends the line"),
        ("5 CUT A B for 0s", 15, "for 0s: a lease is longer than 0"),
        ("5 HEAL A B for 5s", 12, "HEAL takes no lease"),
        ("5 PARTITION A,B", 13, "PARTITION needs two groups"),
        ("5 KILL", 7, "KILL of what? The id of a process is missing"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_with_its_column(line: str, column: int, message: str) -> None:
    reading = read("\n" + line)
    assert [problem.message for problem in reading.errors] == [message]
    assert places(reading)[0] == (2, column)
    assert reading.problems[0].line_text == line
    assert reading.problems[0].hint


def test_all_problems_come_at_once_and_in_order() -> None:
    reading = read("0 AD A h x\nx MARK y\n0 ADD A h 'x\n0 ADD A h x\n")
    assert places(reading) == [(1, 3), (2, 1), (3, 11)]
    with pytest.raises(TopologyRefused) as refused:
        reading.accepted()
    assert refused.value.problems == reading.problems


def test_a_problem_shows_the_line_with_a_caret_and_the_hint() -> None:
    assert str(read("0.0 ADDD A h x").problems[0]) == (
        "topo.txt:1:5: error: unknown verb ADDD\n  0.0 ADDD A h x\n      ^\n  hint: did you mean ADD?"
    )


def test_a_process_of_an_unreadable_line_is_not_called_unknown_as_well() -> None:
    assert places(read("x ADD A h echo\n5 KILL A\n0 ADD B h 'x\n5 KILL B")) == [(1, 1), (3, 11)]


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x07", "\u2028", "\x85"])
def test_control_characters_are_refused(character: str) -> None:
    reading = read(f"0 ADD A h echo {character}")
    assert places(reading) == [(1, 16)]
    assert character not in str(reading.problems[0])


def test_a_line_typed_at_a_console_joins_the_topology() -> None:
    topology = read(BROKER).accepted()
    longer = add_line(topology, "10 REMOVE BrokerA 10.0.1.1")
    assert longer.accepted().steps[-1].action is Action.REMOVE
    assert [problem.message for problem in add_line(topology, "10 KILL Bob").problems] == [
        "KILL of Bob, which is never added"
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.0", 0), ("90", 90), ("1m30s", 90), ("500ms", 0.5), ("2h", 7200), (".5", 0.5), ("1h0.5s", 3600.5)],
)
def test_times(text: str, seconds: float) -> None:
    assert read_time(text) == seconds


@given(st.floats(0, 1e7).map(lambda value: round(value, 6)))
def test_times_are_written_as_they_are_read(seconds: float) -> None:
    assert read_time(write_time(seconds)) == seconds


@given(st.floats(0, 1).map(lambda value: round(value, 9)), st.integers(1, 10**12))
def test_shares_and_rates_are_written_as_they_are_read(share: float, rate: int) -> None:
    assert read_share(write_share(share)) == share
    assert read_rate(write_rate(float(rate))) == rate


@given(st.lists(PRINTABLE))
def test_quoted_words_read_back(words: list[str]) -> None:
    line = " ".join(map(quote, words))
    assert [token.text for token in LineScanner(line).words()] == words
    assert not any(mark in line for mark in ("{{", "{%", "{#"))


@given(PRINTABLE.filter(bool))
def test_quoted_remarks_read_back(text: str) -> None:
    token = LineScanner(quote_remark(text)).remark()
    assert token is not None
    assert token.text == text
