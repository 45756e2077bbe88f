"""Both dialects of the start scripts say the same; what they refuse, they refuse with the fix."""

import shlex

import pytest

from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.commands.broker import broker_settings
from broker_runtime.commands.exits import Refusal
from broker_runtime.dialect.options import read_arguments, read_mapping
from broker_runtime.dialect.readers import split_outside
from broker_runtime.dialect.scripts import BROKER, TABLES, BrokerWords, broker_words, read_client, word_of
from broker_runtime.routing.forwarding import Covering


def words(line: str) -> BrokerWords:
    reading = read_arguments(BROKER, shlex.split(line))
    assert reading.problems == []
    found = broker_words(reading.values)
    assert isinstance(found, BrokerWords), found
    return found


def settings(line: str) -> BrokerSettings:
    return broker_settings(words("-i A -p 1 " + line))


def problems(line: str) -> list[str]:
    reading = read_arguments(BROKER, shlex.split(line))
    if reading.problems:
        return reading.problems
    found = broker_words(reading.values)
    assert isinstance(found, list)
    return found


def test_both_dialects_name_the_same_broker() -> None:
    one = words("-Xms 64 -Xmx 128 -hostname 10.0.1.1 -p 10000 -i Alice -n 10.0.1.2:10001,10.0.1.3:10002")
    other = words(
        "-uri socket://10.0.1.1:10000/Alice -n socket://10.0.1.2:10001/Bob,socket://10.0.1.3:10002/Carol"
    )
    assert (one.listen, one.neighbours) == (other.listen, other.neighbours)
    assert one.listen == Address("10.0.1.1", 10000, "Alice")
    assert one.neighbours == ("10.0.1.2:10001", "10.0.1.3:10002")


@pytest.mark.parametrize(
    "written", ["-Xmx 128", "-Xmx128", "-Xmx128m", "-Xmx 128M", "--memory=128m", "-Xmx131072k"]
)
def test_every_spelling_of_memory_is_the_watermark(written: str) -> None:
    assert settings(written).memory_watermark_bytes == 128 << 20


def test_covering_is_chosen_for_each_table_or_for_both() -> None:
    both = settings("--covering lazy")
    assert (both.covering, both.advertisement_covering) == (Covering.LAZY, Covering.LAZY)
    each = settings("-s off -a ACTIVE")
    assert (each.covering, each.advertisement_covering) == (Covering.OFF, Covering.ACTIVE)


def test_heartbeats_are_switched_or_timed() -> None:
    assert settings("-h on").link == settings("").link
    assert settings("-h off").link.dead_after_s > 1e6
    assert (settings("-h 0.5").link.heartbeat_s, settings("-h 500ms").link.dead_after_s) == (0.5, 2.5)
    with pytest.raises(Refusal, match="must be more than"):
        settings("-h 5 --dead-after 2")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-i A", "the port is missing: say -p PORT"),
        ("-p 1", "the id is missing: say -i ID"),
        ("-i A -prt 1", "unknown option -prt (did you mean"),
        ("-i A -p 1 --log-evry 3", "unknown option --log-evry (did you mean --log-every?)"),
        ("-i A -p x", "-p x: it is a whole number"),
        ("-i A -p 70000", "a port is a number from 0 to 65535"),
        ("-i A/B -p 1", "an id holds no '/'"),
        ("-i A -p", "-p needs a value: PORT"),
        ("-i A -p 1 -n here", "write host:port or socket://host:port/ID"),
        ("-i A -p 1 -n http://127.0.0.1:2", "-n http://127.0.0.1:2: it is no address of a broker: write"),
        ("-i A -p 1 -n 127.0.0.1:0", "nobody can be reached at port 0"),
        ("-i A -p 1 -n 127.0.0.1:1", "no neighbour of itself"),
        ("-i A -p 1 -cy on", "cycles are not supported yet; say off"),
        ("-i A -p 1 -b db.properties", "database is not supported yet"),
        ("-i A -p 1 -s sometimes", "it is one of off, lazy, active"),
        ("-i A -p 1 -Xmx lots", "it is a size such as 128"),
        ("-i A -uri socket://h:1/B", "say different things"),
        ("-i A -p 1 stray", "unexpected argument 'stray'"),
        ("-i A -p 1 --quiet=yes", "--quiet takes no value"),
    ],
)
def test_what_is_wrong_is_said_with_the_fix(line: str, said: str) -> None:
    assert any(said in problem for problem in problems(line)), problems(line)


def test_all_problems_are_told_at_once() -> None:
    assert len(problems("-i A/B -p x --nonsense 3 -cy on")) == 4


def test_a_file_holds_the_same_options() -> None:
    reading = read_mapping(
        BROKER, {"id": "A", "port": 7, "neighbours": ["h:1", "h:2"], "log_every": 3, "quiet": True}
    )
    assert reading.problems == []
    assert reading.values == {
        "id": "A",
        "port": 7,
        "neighbours": ("h:1", "h:2"),
        "log_every": 3,
        "quiet": True,
    }
    assert read_mapping(BROKER, {"prt": 7}).problems == ["unknown option 'prt' (did you mean port?)"]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_name_means_two_things(table: tuple) -> None:  # type: ignore[type-arg]
    names = [name for option in table for name in option.names]
    assert len(names) == len(set(names))


def test_a_publisher_has_one_rate_or_one_for_each_symbol() -> None:
    line = "-i P0 -s YHOO/MSFT -r 60/30 -d 0 -b 127.0.0.1:1"
    reading = read_client("sqpublisher", line.split())
    assert reading.problems == []
    assert (reading.values["symbols"], reading.values["rates"]) == (("YHOO", "MSFT"), (60.0, 30.0))
    assert "one, or one each" in read_client("sqpublisher", [*line.split(), "-r", "1/2/3"]).problems[0]
    assert read_client("sqpublisher", []).problems == ["-i ID is missing", "-s SYMBOLS is missing"]
    assert str(read_client("sqpublisher", line.split()[:-2]).values["broker"]) == "127.0.0.1:10000"


def test_subscriptions_are_split_outside_of_quotes_and_brackets_only() -> None:
    assert split_outside("[a,eq,'x/y'],[b,eq,1/2] / [c,eq,3]", "/") == ["[a,eq,'x/y'],[b,eq,1/2]", "[c,eq,3]"]
    line = ["-i", "S", "-b", "h:1", "-s", "[class,eq,'A/B']/[class,eq,'C']"]
    assert read_client("sqsubscriber", line).values["subscriptions"] == ("[class,eq,'A/B']", "[class,eq,'C']")
    wrong = read_client("sqsubscriber", [*line[:-1], "[class,eq]"]).problems
    assert "^" in wrong[0]


def test_start_scripts_stand_for_words_in_both_dialects() -> None:
    commands = ["startbroker.sh", "bin/startbroker", "startSQpublisher.sh", "./startSQsubscriber.sh", "sleep"]
    assert [word_of(c) for c in commands] == ["broker", "broker", "sqpublisher", "sqsubscriber", None]
