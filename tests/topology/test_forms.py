"""Text, YAML and templates are forms of one model; whatever is written in one reads back from the other."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.topology.generators import read_client_templates
from panda.topology.model import Topology
from panda.topology.problems import Reading
from panda.topology.reading import open_topology, read_topology
from panda.topology.writing import write_text, write_yaml

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
EXAMPLES = sorted(path for path in TOPOLOGIES.iterdir() if path.suffix in (".txt", ".yaml"))


def read_yaml(text: str) -> Reading:
    return read_topology(text, "topo.yaml")


def messages(reading: Reading) -> list[tuple[int, int, str]]:
    return [(each.place.line, each.place.column, each.message) for each in reading.problems]


def meaning(topology: Topology) -> tuple[object, ...]:
    return topology.steps, topology.processes, topology.hosts, topology.links


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path: Path) -> None:
    reading = open_topology(path)
    assert reading.errors == ()
    assert reading.accepted().steps


def test_the_examples_say_the_same_in_text_and_in_yaml() -> None:
    text = open_topology(TOPOLOGIES / "stock-quotes.txt").accepted()
    yaml = open_topology(TOPOLOGIES / "stock-quotes.yaml").accepted()
    uris = open_topology(TOPOLOGIES / "stock-quotes-uri.txt").accepted()
    assert meaning(yaml) == meaning(text)
    assert uris.links == text.links
    assert [each.listen for each in uris.processes] == [each.listen for each in text.processes]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_survives_conversion(path: Path) -> None:
    topology = open_topology(path).accepted()
    yaml = write_yaml(topology)
    assert meaning(read_yaml(yaml).accepted()) == meaning(topology)
    text = write_text(read_yaml(yaml).accepted())
    assert meaning(read_topology(text, "topo.txt").accepted()) == meaning(topology)


def test_yaml_names_neighbours_and_brokers() -> None:
    topology = open_topology(TOPOLOGIES / "stock-quotes.txt").accepted()
    written = write_yaml(topology)
    assert "neighbours: [Alice]" in written
    assert "broker: Carol" in written
    assert "command:" not in written


def test_a_command_that_keys_cannot_say_stays_a_command() -> None:
    line = "0 ADD A h startbroker.sh -i A --port=10000"
    topology = read_topology(line, "topo.txt").accepted()
    written = write_yaml(topology)
    assert "command: startbroker.sh -i A --port=10000" in written
    assert meaning(read_yaml(written).accepted()) == meaning(topology)


ids = st.sampled_from(["A", "B", "C", "null", "true", "x.y", "10"])
words = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=12)
times = st.sampled_from(["0", "0.0", "1", "1.5", "2m", "7ms"])
broker_lines = st.builds(
    "{0} ADD {1} h{2} startbroker.sh {5} -hostname h{2} -p {3} -i {1} {4}".format,
    times,
    ids,
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["", "-n h1:1", "-n h1:1,h2:2", "-n socket://h2:2/B"]),
    st.sampled_from(["", "-Xms 64", "-h off --quiet", "--covering lazy -ll debug"]),
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    from panda.topology.scanning import quote, quote_remark

    at, one, other = draw(times), draw(ids), draw(ids)
    command = " ".join(map(quote, draw(st.lists(words, min_size=1, max_size=4))))
    lease = draw(st.sampled_from(["", " for 3s", " for 250ms"]))
    remark = quote_remark(draw(words.filter(lambda text: text.strip() != "")))
    return draw(
        st.sampled_from(
            [
                f"{at} ADD {one} h1 {command}",
                f"{at} ADD {one} h2 startSQpublisher.sh -i {one} -b h1:1 -s IBM",
                f"{at} ADD {one} h2 bin/startbroker -uri socket://h2:2/{one} -n socket://h1:1/{other}",
                f"{at} REMOVE {one} h1{lease}",
                f"{at} KILL {one}{lease}",
                f"{at} CUT {one} {other}{lease}",
                f"{at} PARTITION {one} | {other},C{lease}",
                f"{at} DELAY {one} {other} 50ms{lease}",
                f"{at} LOSS {one} {other} 0.125{lease}",
                f"{at} RATE {one} {other} 1.5MB/s{lease}",
                f"{at} HEAL {one} {other}",
                f"{at} HEAL",
                f"{at} MARK {remark}",
            ]
        )
    )


@given(st.lists(lines() | broker_lines, max_size=8))
def test_conversion_keeps_the_meaning(written: list[str]) -> None:
    """Also of topologies that make no sense: only what was read is compared."""
    topology = read_topology("\n".join(written), "topo.txt").topology
    assert topology is not None
    seen: set[str] = set()
    if any(step.command and (step.process in seen or seen.add(step.process)) for step in topology.steps):
        return  # the second ADD of an id is refused, and has no place in YAML's lists
    there = read_yaml(write_yaml(topology)).topology
    assert there is not None
    assert meaning(there) == meaning(topology)
    back = read_topology(write_text(there), "topo.txt").topology
    assert back is not None
    assert meaning(back) == meaning(topology)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("broker: []", 1, 1, "unknown key broker"),
        ("brokers:\n  - {id: A, hots: h, host: h, port: 1}", 2, 13, "unknown key hots"),
        ("brokers:\n  - {id: A, host: h}", 2, 5, "a broker has a port, a number"),
        ("brokers:\n  - {id: A, port: 1}", 2, 5, "host is missing"),
        ("brokers:\n  - {id: A, host: h, port: 1, neighbours: [B]}", 2, 44, "there is no broker B"),
        ("brokers:\n  - {id: A, host: h, port: 1, options: {qiet: true}}", 2, 41, "unknown option qiet"),
        ("brokers:\n  - {id: A, host: h, port: 1, dialect: x}", 2, 40, "unknown dialect x"),
        ("brokers:\n  - {id: A, host: h, port: 1, command: echo}", 2, 22, "port and command say the same"),
        ("brokers:\n  - {id: A, host: h, port: 1, at: -1}", 2, 35, "-1: a time is not negative"),
        ("brokers: 5", 1, 1, "brokers is a list"),
        ("commands:\n  - {id: A, host: h}", 2, 5, "command is missing"),
        ('commands:\n  - {id: A, host: h, command: [echo, "a\\0"]}', 2, 38, "a word holds no NUL character"),
        ("commands:\n  - id: A\n    host: h\n    command: echo 'x", 4, 19, "the quote ' is never closed"),
        ("clients:\n  - {id: S, host: h, broker: h:1}", 2, 5, "a client has a script"),
        ("schedule:\n  - 5 MRK x", 2, 7, "unknown verb MRK"),
        ("schedule:\n  - {at: 5, cut: [A, B], mark: x}", 2, 5, "a step has a time and one verb"),
        ("schedule:\n  - {at: 5, heal: all, for: 5s}", 2, 24, "for does not belong to heal"),
        ("schedule:\n  - {at: 5, kill: [A]}", 2, 13, "this is not what kill takes"),
        ("schedule:\n  - {at: 5, kill: X}", 2, 5, "KILL of X, which is never added"),
        ("a: &x 1\nb: *x", 2, 4, "*x: aliases are not taken"),
        ("- 5", 1, 1, "a topology is a mapping"),
        ("name: x\nname: y\nschedule: [5 MARK x]", 2, 1, "name stands here twice"),
    ],
)
def test_yaml_is_refused_at_its_place(text: str, line: int, column: int, message: str) -> None:
    reading = read_yaml(text)
    assert reading.refused
    assert messages(reading) == [(line, column, message)]
    assert reading.problems[0].line_text == text.splitlines()[line - 1]


def test_scalars_of_yaml_are_what_was_written() -> None:
    text = "commands:\n  - {id: 1.10, host: 0x10, command: [echo, off, 1e3, 010, null, 2001-01-01]}"
    (process,) = read_yaml(text).accepted().processes
    assert (process.id, process.host) == ("1.10", "0x10")
    assert process.command == ("echo", "off", "1e3", "010", "null", "2001-01-01")


CHAIN = """# chain
{% for n in range(1, brokers + 1) %}
0 ADD B{{ n }} h{{ n }} startbroker.sh -p 1 -i B{{ n }}{% if n > 1 %} -n h{{ n - 1 }}:1{% endif %}
{% endfor %}
{{ at }} MARK {{ text }}
"""


def test_a_template_is_filled_in() -> None:
    reading = read_topology(CHAIN, "t.txt", {"brokers": 12, "at": "1m", "text": "on"})
    assert len(reading.accepted().links) == 11
    assert reading.accepted().source == CHAIN


def test_a_problem_in_what_a_template_made_is_at_the_templates_line() -> None:
    (problem,) = read_topology(CHAIN, "t.txt", {"brokers": 3, "at": "never", "text": "on"}).problems
    assert (problem.place.line, problem.line_text) == (5, "never MARK on")


def test_a_missing_variable_is_named() -> None:
    (problem,) = read_topology(CHAIN, "t.txt", {"at": 1, "text": "on"}).problems
    assert (problem.place.line, problem.message) == (2, "'brokers' is undefined")


def test_a_variable_that_nobody_asks_for_is_a_warning() -> None:
    reading = read_topology("5 MARK {{ txt }}", "t.txt", {"txt": 1, "text": 2})
    assert not reading.refused
    assert [each.message for each in reading.warnings] == ["nothing asks for the variable text"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ 'a' * 9999999999 }}",
        "{{ 'a'.center(9999999999) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(999999999) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set x = 'a' %}" + "{% set x = [x, x, x, x] %}" * 99 + "{{ x }}",
        "{% set x %}a{% endset %}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include '/etc/passwd' %}",
        "{{ 1 / 0 }}",
        "{{ " + "(" * 5000,
        "{% for %}",
        "{{ range(3) | join('x' | string) | nosuch }}",
    ],
)
def test_a_template_makes_neither_mischief_nor_floods(template: str) -> None:
    reading = read_topology(template, "t.txt")
    assert reading.topology is None
    assert reading.errors


HOSTILE = st.text() | st.text(
    st.sampled_from(list("{}%#[]:-,&*!|>'\"\\ \n\t0ADKILCUT\0\x1b$`(){")), max_size=60
)


@settings(max_examples=300)
@given(HOSTILE, st.sampled_from(["t.txt", "t.yaml"]))
def test_arbitrary_text_is_read_or_refused(text: str, path: str) -> None:
    reading = read_topology(text, path)
    assert all("\0" not in str(each) and "\x1b" not in str(each) for each in reading.problems)


@settings(max_examples=200)
@given(
    st.lists(HOSTILE, min_size=3, max_size=6), st.sampled_from(["ADD", "REMOVE", "CUT", "PARTITION", "MARK"])
)
def test_arbitrary_fields_are_read_or_refused(fields: list[str], verb: str) -> None:
    read_topology(f"0 {verb} {' '.join(fields)}", "t.txt")
    quoted = ", ".join('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in fields)
    read_topology(f"commands: [{{id: {quoted.partition(',')[0]}, host: h, command: [{quoted}]}}]", "t.yaml")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(suffix=".txt") as file:
        file.write(data)
        file.flush()
        open_topology(Path(file.name))


def test_a_file_that_is_not_there_is_a_problem_like_any_other(tmp_path: Path) -> None:
    (problem,) = open_topology(tmp_path / "none.txt").problems
    assert problem.message == "cannot be read: No such file or directory"


def test_the_examples_of_the_language_page_are_valid() -> None:
    page = (TOPOLOGIES.parent / "docs" / "topology-language.md").read_text()
    lines, *_ = page.split("```\n")[1:]
    example, templates = (part.partition("```")[0] for part in page.split("```yaml\n")[1:])
    assert read_topology(lines, "t.txt").errors == ()
    assert read_yaml(example).problems == ()
    assert len(read_client_templates(templates, "templates.yaml").publishers) == 2
