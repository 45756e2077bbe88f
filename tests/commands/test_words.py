"""The other words: each answers --help with an example, does its work, and ends with the right code."""

import json
import subprocess
import sys

import pytest

from broker_runtime import VERSION
from broker_runtime.commands.exits import Exit
from broker_runtime.commands.main import WORDS
from tests.support.processes import Process, Processes


def answers(process: Process) -> list[dict[str, object]]:
    return [json.loads(line) for line in process.stdout.seen]


@pytest.mark.parametrize("word", WORDS)
def test_help_has_an_example(processes: Processes, word: str) -> None:
    process = processes.run(word, "--help")
    assert processes.code(process) == Exit.DONE
    text = "\n".join(process.stdout.seen)
    assert text.startswith("usage: python -m broker_runtime " + word)
    assert "example:" in text or word == "version"


def test_unknown_words_and_options_get_the_nearest(processes: Processes) -> None:
    for arguments, said in (
        (["brokr"], "did you mean broker?"),
        (["publish", "--broke", "x:1", "[class,'X']"], "did you mean --broker?"),
        (["control", "dance"], "invalid choice: 'dance'"),
        (["publish", "-b", "nowhere", "[class,'X']"], "write host:port"),
        (["publish", "-b", "http://127.0.0.1:1", "[class,'X']"], "'http://127.0.0.1:1': it is no address of"),
        (["publish", "-b", "127.0.0.1:0", "[class,'X']"], "nobody can be reached at port 0"),
        (["publish", "[class,'X']", "[class"], "publish: argument 2: line 1"),
        (["publish", "--log", "none/log", "[class,'X']"], "--log none/log: the folder none does not exist"),
        (["broker", "-i", "A", "-p", "0", "--log", "none/log"], "the folder none does not exist"),
        (["sqpublisher", "-i", "P", "-s", "X", "--log", "none/log"], "the folder none does not exist"),
        (["subscribe", "--count", "x", "[class,eq,'X']"], "it is a whole number, 1 or more"),
        (["control", "inject", "A"], "missing: KIND (publish, advertise"),
        (["control", "inject", "A", "publish"], "missing: TEXT"),
        (["control", "cut", "A"], "cut needs --peer ID"),
        (["workload", "publish", "--print"], "--print needs --count"),
        ([], "a word is missing"),
    ):
        process = processes.run(*arguments)
        assert processes.code(process) == Exit.REFUSED
        assert process.stdout.seen == []
        assert said in process.said()
        assert "Traceback" not in process.said()


def test_version_answers_without_loading_the_broker() -> None:
    code = (
        "import sys; from broker_runtime.commands.main import main; main(['version', '--json']);"
        "print(sorted({'asyncio', 'msgspec', 'numpy'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = answer.stdout.splitlines()
    assert json.loads(first)["broker_runtime"] == VERSION
    assert second == "[]"


def test_a_message_that_is_none_is_shown_with_a_caret(processes: Processes) -> None:
    process = processes.run("publish", "-b", "127.0.0.1:1", "[class,'X',[a,1]")
    assert processes.code(process) == Exit.REFUSED
    assert process.stderr.seen[-1].strip() == "^"


def test_nobody_there_is_exit_3(processes: Processes) -> None:
    process = processes.run("publish", "-b", "127.0.0.1:1", "--connect-timeout", "0.2", "[class,'X']")
    assert processes.code(process) == Exit.UNREACHABLE
    assert process.stderr.seen == [
        "waiting for 127.0.0.1:1: Connection refused …",
        "publish: no broker at 127.0.0.1:1: Connection refused",
    ]


@pytest.mark.parametrize("words", [["publish", "[class,'X']"], ["client"]])
def test_to_be_stopped_before_there_is_a_broker_is_no_success(processes: Processes, words: list[str]) -> None:
    process = processes.start(*words, "-b", "127.0.0.1:1")
    process.wait_for("waiting for", process.stderr)
    assert process.terminate() == Exit.INTERRUPTED
    assert process.stderr.seen[-1] == f"{words[0]}: stopped before a broker answered at 127.0.0.1:1"


def test_another_broker_than_the_one_named_is_refused(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]
    process = processes.run("publish", "-b", f"socket://{address}/Zed", "[class,'X']")
    assert processes.code(process) == Exit.UNREACHABLE
    assert process.said() == f"stdout:\nstderr:\npublish: the broker at {address} is A, not Zed"


def test_a_bad_line_is_named_by_its_number(processes: Processes) -> None:
    processes.broker("A")
    process = processes.start("publish", "-b", processes.addresses["A"], "-")
    process.type("# one\n[class,'X']\n\n[class\n")
    process.end_of_input()
    assert process.wait() == Exit.REFUSED
    assert len(process.stdout.seen) == 1
    assert process.stderr.seen[0].startswith("publish: stdin line 4: ")


def test_a_broker_killed_and_started_again_is_told_as_it_is(processes: Processes) -> None:
    a = processes.broker("A")
    subscriber = processes.start("subscribe", "-b", processes.addresses["A"], "-i", "S", "[class,eq,'X']")
    subscriber.wait_for("S subscribed", subscriber.stderr)
    a.popen.kill()
    a.wait()
    subscriber.wait_for("disconnected: ", subscriber.stderr)
    processes.broker("A", port=int(processes.addresses["A"].rpartition(":")[2]))
    subscriber.wait_for("connected to A again, as a new session: ", subscriber.stderr)
    assert sum("disconnected: " in line for line in subscriber.stderr.seen) == 1
    assert not any("replaced" in line for line in subscriber.stderr.seen)


def test_too_few_notifications_are_counted(processes: Processes) -> None:
    processes.broker("A")
    process = processes.run(
        "subscribe", "-b", processes.addresses["A"], "[class,eq,'X']", "--count", "3", "--timeout", "0.05"
    )
    assert processes.code(process) == Exit.FAILED
    assert process.stderr.seen[-1] == "only 0 of 3 came within 0.05 s"


@pytest.mark.parametrize("words", ["--help", "version", "publish --help"])
@pytest.mark.parametrize(
    ("redirection", "reason"), [("> /dev/full", "No space left on device"), (">&-", "stdout is closed")]
)
def test_output_that_cannot_be_written_is_said_in_one_line(
    processes: Processes, words: str, redirection: str, reason: str
) -> None:
    command = f"exec {sys.executable} -m broker_runtime {words} {redirection}"
    process = processes.start(program=["sh", "-c", command])
    assert process.wait() == Exit.FAILED
    word = words.split(maxsplit=1)[0].lstrip("-")
    assert process.stderr.seen == [f"{word}: cannot write: {reason}"]


def test_a_terminal_that_knows_ascii_only_is_fine(processes: Processes) -> None:
    process = processes.run("--help", PYTHONIOENCODING="ascii")
    assert processes.code(process) == Exit.DONE
    assert "option \\u2026" in process.stdout.seen[0]


def test_an_id_in_use_is_exit_1(processes: Processes) -> None:
    processes.broker("A")
    first = processes.start("subscribe", "-b", processes.addresses["A"], "-i", "S", "[class,eq,'X']")
    first.wait_for("S subscribed", first.stderr)
    second = processes.run("subscribe", "-b", processes.addresses["A"], "-i", "S", "[class,eq,'X']")
    assert processes.code(second) == Exit.FAILED
    assert second.stderr.seen == ["subscribe: a client S is connected already"]
    assert first.terminate() == Exit.DONE


def test_publish_and_subscribe_across_two_brokers(processes: Processes) -> None:
    processes.broker("A")
    b = processes.broker("B", "A")
    b.wait_for("link with A is up", b.stderr)
    subscriber = processes.start(
        "subscribe",
        "-b",
        processes.addresses["B"],
        "[class,eq,'STOCK'],[price,>,10]",
        "--count",
        "2",
        "--json",
    )
    subscriber.wait_for("subscribed at B", subscriber.stderr)
    published = processes.start("publish", "-b", processes.addresses["A"], "-", "--json")
    published.type(
        "# quotes\n[class,'STOCK'],[price,5]\n[class,'STOCK'],[price,20]\n[class,'STOCK'],[price,30]\n"
    )
    published.end_of_input()
    assert published.wait() == Exit.DONE
    assert subscriber.wait() == Exit.DONE
    contents = [answer["content"] for answer in answers(subscriber)]
    assert contents == [{"class": "STOCK", "price": 20}, {"class": "STOCK", "price": 30}]
    assert [answer["id"] for answer in answers(subscriber)] == [a["id"] for a in answers(published)[1:]]


def test_a_reader_that_leaves_ends_the_command(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]
    command = (
        f"{sys.executable} -m broker_runtime subscribe -b {address} -i S0 \"[class,eq,'X']\" | head -n 1"
    )
    reader = processes.start(program=["sh", "-c", command])
    reader.wait_for("S0 subscribed", reader.stderr)
    publisher = processes.start("publish", "-b", address, "-")
    publisher.type("[class,'X']\n")
    reader.wait_for("[class,'X']")
    publisher.type("[class,'X']\n[class,'X']\n")
    assert reader.wait() == 0
    assert reader.stderr.seen == ["S0 subscribed at A"]


def test_a_log_that_cannot_be_written_is_no_bug_of_ours(processes: Processes) -> None:
    processes.broker("A")
    process = processes.run("publish", "-b", processes.addresses["A"], "--log", "/proc/none", "[class,'X']")
    assert processes.code(process) == Exit.FAILED
    assert "/proc/none" in process.stderr.seen[0]


def test_steering_a_broker_from_another(processes: Processes) -> None:
    processes.broker("A")
    b = processes.broker("B", "A")
    b.wait_for("link with A is up", b.stderr)

    def control(*arguments: str) -> dict[str, object]:
        process = processes.run("control", *arguments, "-b", processes.addresses["A"], "--json")
        assert processes.code(process) == Exit.DONE, process.said()
        return answers(process)[0]

    assert control("info", "B")["state"] == "running"
    assert control("pause", "B")["state"] == "paused"
    assert control("resume", "B")["state"] == "running"
    injected = control("inject", "B", "subscribe", "[class,eq,'X']")["answer"]
    tables = control("tables", "B")["tables"]
    assert injected in [entry["id"] for entry in tables["subscriptions"]]  # type: ignore[index]
    control("inject", "B", "unsubscribe", str(injected))
    monitor = processes.run("monitor", "--once", "-b", processes.addresses["B"], "--json")
    assert [answer["broker"] for answer in answers(monitor)] == ["A", "B"]
    trace = processes.run("trace", "-b", processes.addresses["B"], "[class,'X']", "--json")
    assert [step["broker"] for step in answers(trace)[0]["steps"]] == ["B"]  # type: ignore[attr-defined]
    control("shutdown", "B")
    assert b.wait() == Exit.DONE


def test_the_monitor_shows_status_as_it_comes(processes: Processes) -> None:
    processes.broker("A", options=["--status-every", "0.1"])
    process = processes.run("monitor", "-b", processes.addresses["A"], "--count", "2")
    assert processes.code(process) == Exit.DONE
    assert process.stdout.seen[0].startswith("broker ")
    assert [line.split()[:2] for line in process.stdout.seen[1:]] == [["A", "running"]] * 2


def test_quotes_of_a_seed_are_the_same_twice(processes: Processes) -> None:
    processes.broker("A")
    address = processes.addresses["A"]

    def quotes() -> list[object]:
        subscriber = processes.start(
            "sqsubscriber", "-i", "S0", "-b", f"socket://{address}/A", "--count", "6", "--json",
            "-s", "[class,eq,'STOCK'],[symbol,eq,'YHOO']/[class,eq,'STOCK'],[symbol,eq,'MSFT']",
        )  # fmt: skip
        subscriber.wait_for("S0 connected", subscriber.stderr)
        until_subscribed(processes, address, 2)
        publisher = processes.run(
            "sqpublisher", "-i", "P0", "-s", "YHOO/MSFT", "-r", "6000/3000", "-d", "0", "-b", address,
            "--count", "6", "--seed", "7",
        )  # fmt: skip
        assert publisher.stdout.seen == ["P0 published 6"]
        assert subscriber.wait() == Exit.DONE
        return [answer["content"] for answer in answers(subscriber)]

    first = quotes()
    assert first == quotes()
    assert [content["symbol"] for content in first].count("YHOO") == 4  # type: ignore[index]


def until_subscribed(processes: Processes, address: str, count: int) -> None:
    """Ask until the broker's table holds so many subscriptions of clients."""
    for _ in range(50):
        process = processes.run("control", "tables", "-b", address, "--json")
        entries = answers(process)[0]["tables"]["subscriptions"]  # type: ignore[index]
        if sum(entry["hop"] == "S0" for entry in entries) >= count:
            return
    raise AssertionError("the subscriptions did not arrive")


def test_a_workload_is_printed_or_published(processes: Processes) -> None:
    printed = [
        processes.run("workload", "publish", "--print", "--count", "5", "--seed", seed) for seed in "112"
    ]
    assert printed[0].stdout.seen == printed[1].stdout.seen != printed[2].stdout.seen
    processes.broker("A")
    subscriber = processes.start(
        "subscribe", "-b", processes.addresses["A"], "[class,eq,'SYNTHETIC']", "--count", "5"
    )
    subscriber.wait_for("subscribed at A", subscriber.stderr)
    process = processes.run(
        "workload", "publish", "-b", processes.addresses["A"], "--count", "5", "--seed", "1", "--rate", "1000"
    )
    assert processes.code(process) == Exit.DONE
    assert subscriber.wait() == Exit.DONE
    assert subscriber.stdout.seen == printed[0].stdout.seen
