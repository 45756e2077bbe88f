# ruff: noqa: E501 - a case is a line
"""Every check finds what it is for, where it stands, and nothing where all is well."""

import pytest

from panda.topology.problems import Reading
from panda.topology.reading import read_topology

A = "0 ADD A h1 startbroker.sh -p 10000 -i A"
B = "0 ADD B h2 startbroker.sh -p 10000 -i B -n h1:10000"
C = "0 ADD C h3 startbroker.sh -p 10000 -i C -n h2:10000"
S = "1 ADD S h3 startSQsubscriber.sh -i S -b h3:10000 -s \"[class,eq,'STOCK']\""
GOOD = "\n".join((A, B, C, S))


def read(*lines: str) -> Reading:
    return read_topology("\n".join(lines), "topo.txt")


def found(*lines: str) -> list[tuple[str, int, str]]:
    """Severity, line and message of each problem; each of them must point and show its line."""
    problems = read(*lines).problems
    assert all(problem.place.column and problem.line_text and problem.hint for problem in problems)
    return [(str(problem.severity), problem.place.line, problem.message) for problem in problems]


def test_a_good_topology_has_no_problems() -> None:
    assert found(GOOD, "5 CUT A B for 1s", "6 PARTITION A | B,C", "7 CUT S C", "8 REMOVE S h3") == []


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([A, "0 ADD A h2 startbroker.sh -p 1 -i A2 -n h1:10000"], 2, "A is added on line 1 already"),
        ([A, "0 ADD X h2 startbroker.sh -p 1 -i A -n h1:10000"], 2, "X uses the id A, and so does A"),
        ([A, B, "0 ADD X h1 startbroker.sh -p 10000 -i X -n h2:10000"], 3, "X and A both listen at h1:10000"),
        (["0 ADD $(x) h1 echo"], 1, "$(x): an id begins with a letter or a digit, not with '$'"),
        (["0 ADD ../x h1 echo"], 1, "../x: an id begins with a letter or a digit, not with '.'"),
        (["0 ADD a/x h1 echo"], 1, "a/x: an id holds no '/'"),
        (["0 ADD for h1 echo"], 1, "for is a word of the language"),
        (["0 ADD A -oProxyCommand=x echo"], 1, "-oProxyCommand=x is no host"),
        (["0 ADD A root@h1 echo"], 1, "root@h1 is no host"),
        (["0 ADD A 10.0.1.999 echo"], 1, "10.0.1.999 is no address"),
        (["0 ADD A 10.0.1 echo"], 1, "10.0.1 is no address"),
        (["0 ADD A 10.0.1.1.1 echo"], 1, "10.0.1.1.1 is no address"),
        ([A + " -z\N{NO-BREAK SPACE}q"], 1, "unknown option -z\\xa0q"),
        ([A + " -hostnme h1"], 1, "unknown option -hostnme"),
        ([A + " -p x"], 1, "-p x: it is a whole number, 0 or more"),
        (["0 ADD A h1 startbroker.sh -i A"], 1, "the port is missing: say -p PORT, or -uri socket://HOST:PORT/ID"),
        ([A + " -cy on"], 1, "-cy on: overlays with cycles are not supported yet; say off, and leave out one link"),
        ([GOOD, S.replace(" S ", " T ").replace("eq", "eqq")], 5, None),
        ([GOOD, "1 ADD T h3 startsubscriber -b h3:10000 [class"], 5, None),
        ([GOOD, "1 ADD T h3 startworkload -b h3:10000 publish --zip 1"], 5, "unknown option --zip"),
        ([A + " -n h9:10000"], 1, "no broker of this topology listens at h9:10000, a neighbour of A"),
        ([A + " -n h1:10000"], 1, "A is its own neighbour"),
        ([A, B.replace("0 ADD", "1 ADD"), C], 3, "C starts in phase 1 and waits for B, which starts after it"),
        ([A + " -n h3:10000", B, C], 3, "the overlay has a cycle: B – A, A – C, C – B"),
        ([A, S], 2, "no broker of this topology listens at h3:10000, where S connects"),
        ([A, "0 ADD S h1 startclient -i S"], 2, "no broker of this topology listens at 127.0.0.1:10000, where S connects"),
        ([C.replace(" -n h2:10000", "").replace("0 ADD", "5 ADD"), S.replace("1 ADD", "0 ADD")], 2, "S starts at 0 s, its broker C at 5 s"),
        ([GOOD, "1.5 REMOVE C h3", S.replace("1 ADD S", "2 ADD T").replace("-i S", "-i T")], 6, "T starts when its broker C has been removed"),
        ([GOOD, "5 REMOVE X h1"], 5, "REMOVE of X, which is never added"),
        ([GOOD, "5 REMOVE S h3", "6 REMOVE S h3"], 6, "REMOVE of S at 6 s, but it has been removed already"),
        ([GOOD, "5 REMOVE S h3", "6 RESTART S"], 6, "RESTART of S at 6 s, but it has been removed already"),
        ([GOOD, "0.5 REMOVE S h3"], 5, "REMOVE of S at 0.5 s, but it is added at 1 s"),
        (["1 REMOVE S h3", GOOD], 1, "REMOVE of S at 1 s, but it is added on a later line"),
        ([GOOD, "0 REMOVE A h1"], 5, "REMOVE of A at 0 s, but phase 1 ends only when everything added at 0 is up"),
        ([GOOD, "5 REMOVE S h1"], 5, "S is on h3, not on h1"),
        ([GOOD, "5 CUT A C"], 5, "there is no link between A and C"),
        ([GOOD, "5 CUT A A"], 5, "A has no link with itself"),
        ([GOOD, "5 DELAY A X 5ms"], 5, "DELAY of X, which is never added"),
        ([GOOD, "5 PARTITION A,B | B,C"], 5, "B is in the partition twice"),
    ],
)  # fmt: skip
def test_an_error_is_found(lines: list[str], line: int, message: str | None) -> None:
    errors = [each for each in found(*lines) if each[0] == "error"]
    assert [each[1] for each in errors] == [line]
    assert message in (None, errors[0][2])


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["0 ADD X h1 startbroker.sh -p 1 -i A"], 1, "process X is known to the overlay as A"),
        ([A + " -hostname h9"], 1, "the broker listens at h9, the line says h1"),
        ([A, "0 ADD B h2 startbroker.sh -p 1 -i B"], 1, "the overlay falls into 2 parts: A has no link to the rest"),
        ([GOOD, "5 REMOVE S"], 5, "the host is missing"),
        ([GOOD, "5 PARTITION A | C"], 5, "no link goes from one group to the other"),
        ([GOOD, "5 RESUME A"], 5, "RESUME of A at 5 s, but it is running"),
        ([GOOD, "5 KILL A", "6 PAUSE A"], 6, "PAUSE of A at 6 s, but it has been killed"),
        (["0 ADD X h1 startbrokr.sh"], 1, "startbrokr.sh is no start script: it is run as any command"),
        (["0 ADD X h1 startbroker.sh -c b.toml"], 1, "its configuration file is not read here, so links with it are not checked"),
        ([C.replace(" -n h2:10000", "").replace("0 ADD", "5 ADD"), S], 2, "S starts at 1 s, its broker C at 5 s"),
    ],
)  # fmt: skip
def test_a_warning_is_found_and_refuses_nothing(lines: list[str], line: int, message: str) -> None:
    assert found(*lines) == [("warning", line, message)]
    assert not read(*lines).refused


def test_an_option_is_pointed_at() -> None:
    (problem,) = read(A + " -hostnme h1").problems
    assert problem.place.column == A.index("-i A") + 6
    assert problem.hint == "did you mean -hostname?"


def test_a_name_that_means_two_processes_is_refused() -> None:
    first, second = (f"{at} ADD {id_} h startbroker.sh -p 1 -i Bob" for at, id_ in ((0, "B1"), (9, "B2")))
    lines = (first, "5 REMOVE B1 h", second, "10 KILL Bob")
    assert [each for each in found(*lines) if each[0] == "error"] == [
        ("error", 4, "Bob can mean any of B1, B2")
    ]


def test_the_id_of_a_process_goes_before_the_id_of_a_broker() -> None:
    lines = ("0 ADD B h startbroker.sh -p 1 -i Bob", "0 ADD Bob h echo", "5 KILL Bob")
    assert read(*lines).accepted().steps[-1].process == "Bob"


def test_brokers_that_are_never_there_together_close_no_cycle() -> None:
    later = "9 ADD D h4 startbroker.sh -p 10000 -i D -n h1:10000,h3:10000"
    assert [each[0] for each in found(A, B, C, later)] == ["error"]
    assert found(A, B, C, "5 REMOVE B h2", later) == []


def test_an_address_may_be_used_again() -> None:
    again = "9 ADD D h1 startbroker.sh -p 10000 -i D"
    assert [each[0] for each in found(A, "5 REMOVE A h1", again)] == ["warning"]
    assert "error" in [each[0] for each in found(A, again)]


def test_one_more_problem_than_is_shown_is_counted() -> None:
    problems = read(*["0 NO"] * 150).problems
    assert len(problems) == 101
    assert problems[-1].message == "and 50 more problems"


def test_a_chain_of_a_thousand_brokers_is_checked_in_no_time() -> None:
    lines = [
        f"0 ADD B{n} h{n} startbroker.sh -p 10000 -i B{n}" + (f" -n h{n - 1}:10000" if n else "")
        for n in range(1000)
    ]
    topology = read(*lines, *(f"{n} CUT B{n} B{n - 1} for 1s" for n in range(1, 1000))).accepted()
    assert len(topology.links) == 999
