"""Generated run folders are what `panda run` leaves behind, and the truth about them is true."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker_runtime.language import parse_subscription, print_subscription
from broker_runtime.language.recording import recorded_content, recorded_filter
from panda.deploy.view import RunView
from panda.experiment.folder import RunFolder
from panda.experiment.summary import summary_of
from panda.topology.reading import open_topology
from tests.spark.generator import REASONS, Options, Truth, everything, generate, large, read_truth
from tests.spark.generator.content import SERIAL, contents_of, filter_of
from tests.spark.plain.reading import LINE_MAX_BYTES, is_good

PAGE = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text(encoding="utf-8")
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "list": (list,),
}
FOREIGN = {"moved", "stored", "detect"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return generate(everything(), tmp_path_factory.mktemp("runs"))


def data_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def logs_of(truth: Truth) -> dict[str, bytes]:
    folder = Path(truth.folder)
    paths = folder.glob("hosts/*/processes/*/log.jsonl*")
    return {str(path.relative_to(folder)): data_of(path) for path in paths}


def good_lines(truth: Truth) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    bad = {(each.file, each.offset) for each in truth.quarantine}
    for name, data in logs_of(truth).items():
        found[name] = []
        offset = 0
        for line in data.splitlines(keepends=True):
            if (name, offset) not in bad:
                found[name].append(json.loads(line))
            offset += len(line)
    return found


def documented() -> dict[str, dict[str, tuple[bool, str]]]:
    rows = re.findall(r"^\| `(\w+)` \| (?:broker|client)[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)
    return {
        kind: {
            name: (bool(optional), type_)
            for name, optional, type_ in re.findall(r"`(\w+)`(\??) (\w+)", cells)
        }
        for kind, cells in rows
    }


def test_every_good_line_is_as_the_log_format_says(made: Truth) -> None:
    kinds = documented()
    seen = set()
    for lines in good_lines(made).values():
        last = 0.0
        for line in lines:
            assert is_good(line)
            assert line["t"] >= last
            last = line["t"]
            if line["kind"] in FOREIGN:
                continue
            seen.add(line["kind"])
            fields = kinds[line["kind"]]
            assert set(line) - {"v", "t", "host", "run", "proc", "kind"} <= set(fields)
            for name, (optional, type_) in fields.items():
                assert optional or name in line, (name, line)
                if name in line:
                    assert isinstance(line[name], TYPES[type_])
                    assert isinstance(line[name], bool) == (type_ == "boolean")
    assert seen >= {
        "publish",
        "deliver",
        "subscribe",
        "unsubscribe",
        "advertise",
        "load",
        "counts",
        "fault",
        "heal",
    }
    assert sum(map(len, good_lines(made).values())) == made.log_lines


def test_contents_and_filters_are_recorded_as_the_runtime_does() -> None:
    random = Random(5)
    for number in range(300):
        options = Options(attributes=number % 9)
        wanted = filter_of(options, random)
        assert json.loads(f"{{{wanted.fields}}}") == recorded_filter(wanted.subscription)
        assert print_subscription(parse_subscription(wanted.text)) == wanted.text
    for content in contents_of(Options(contents=300, attributes=8), random):
        said = json.loads(f"{{{content.before_serial}7{content.after_serial}}}")
        assert said == json.loads(json.dumps(recorded_content({**content.values, SERIAL: 7})))


def test_panda_reads_the_folder_like_one_of_its_own(tmp_path: Path) -> None:
    made = generate(everything(bad_lines=()), tmp_path)
    folder = RunFolder(Path(made.folder))
    plan = folder.read_plan()
    assert plan.run == made.run == folder.id
    assert folder.over
    assert folder.ending() == "work"
    assert open_topology(folder.path / "topology.txt").accepted().hosts == tuple(
        host.name for host in plan.hosts
    )
    view = RunView(plan)
    for entry in folder.journal():
        if entry["kind"] == "agent":
            view.take(entry["host"], entry["event"])
    summary = summary_of(folder, view)
    assert not summary.failed
    assert sum(summary.published.values()) == made.publications
    assert summary.repeated == len(made.planted["duplicates"])


def test_agents_and_controller_tell_the_same_events_in_order(made: Truth) -> None:
    folder = RunFolder(Path(made.folder))
    told = defaultdict(list)
    for entry in folder.journal():
        if entry["kind"] == "agent":
            told[entry["host"]].append(entry["event"])
    for host, events in told.items():
        text = (folder.collected(host) / "journal.jsonl").read_text(encoding="utf-8")
        assert [json.loads(line) for line in text.splitlines()] == events
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    (go,) = [entry for entry in folder.journal() if entry["kind"] == "go"]
    assert go["t0"] == made.t0


def test_clocks_are_measured_before_and_after_everything_and_are_as_wrong_as_they_say(made: Truth) -> None:
    clocks = defaultdict(list)
    for entry in RunFolder(Path(made.folder)).clocks():
        clocks[entry["host"]].append(entry)
    for lines in good_lines(made).values():
        for line in (lines[0], lines[-1]):
            measured = clocks[line["host"]]
            assert measured[0]["at"] + measured[0]["offset_s"] < line["t"]
            assert measured[-1]["at"] + measured[-1]["offset_s"] > line["t"]


def test_bad_lines_stand_where_the_truth_says_and_are_bad_for_that_reason(made: Truth) -> None:
    logs = logs_of(made)
    assert Counter(each.reason for each in made.quarantine) == Counter([*everything().bad_lines, "truncated"])
    for each in made.quarantine:
        line = logs[each.file][each.offset :].partition(b"\n")[0]
        assert reason_of(line, whole=each.offset + len(line) < len(logs[each.file])) == each.reason


def reason_of(line: bytes, *, whole: bool) -> str:
    if len(line) > LINE_MAX_BYTES:
        return "gigantic"
    try:
        read = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8"
    except ValueError:
        return "not JSON" if whole else "truncated"
    if read["v"] != 1:
        return "unknown version"
    return "missing field" if "t" not in read else "wrong type"


def test_totals_of_brokers_agree_with_each_other(made: Truth) -> None:
    restarted = {each.a for each in made.faults if each.fault == "kill"}
    for name, totals in made.traffic.items():
        broker, peer = name.split()
        other = made.traffic.get(f"{peer} {broker}")
        if other and not {broker, peer} & restarted:
            assert totals["records_out"] == other["records_in"]
            assert totals["bytes_out"] == other["bytes_in"]
    for load in made.load.values():
        assert 0 <= load["unwanted"] <= load["publications"]
    assert {name.split()[0] for name in made.traffic} == set(made.load)


def test_the_last_counts_and_loads_in_the_logs_are_the_totals_of_the_truth(tmp_path: Path) -> None:
    truth = generate(Options(publications=400), tmp_path)
    for lines in good_lines(truth).values():
        counts = {line["peer"]: line for line in lines if line["kind"] == "counts"}
        for peer, last in counts.items():
            totals = truth.traffic[f"{last['proc']} {peer}"]
            assert {name: last[name] for name in totals if name != "sessions"} == {
                name: figure for name, figure in totals.items() if name != "sessions"
            }
        loads = [line for line in lines if line["kind"] == "load"]
        if loads:
            assert truth.load[loads[-1]["proc"]]["publications"] == loads[-1]["publications"]
    taken = Counter(
        line["proc"] for lines in good_lines(truth).values() for line in lines if line["kind"] == "publish"
    )
    for broker, load in truth.load.items():
        assert load["publications"] >= taken[broker]


def test_a_fault_is_in_the_journal_at_the_time_of_the_truth(made: Truth) -> None:
    found = []
    for entry in RunFolder(Path(made.folder)).journal():
        if entry["kind"] == "agent" and entry["event"]["kind"] == "fault":
            ends = sorted((entry["event"]["process"], entry["event"]["peer"]))
            found.append((tuple(ends), entry["t"] - made.t0))
    for each in made.faults:
        if each.fault == "cut":
            assert any(ends == (each.a, each.b) and abs(at_s - each.from_s) < 0.1 for ends, at_s in found)
    assert Counter(each.fault for each in made.faults) == {"cut": 2, "pause": 2, "kill": 1}


def test_a_killed_broker_says_nothing_until_it_is_started_again(made: Truth) -> None:
    (fault,) = [each for each in made.faults if each.fault == "kill"]
    (lines,) = [lines for name, lines in good_lines(made).items() if f"/{fault.a}/" in name]
    first, second = [n for n, line in enumerate(lines) if line["kind"] == "start"]
    skew_s = everything().skew_s
    assert first == 0
    assert lines[second - 1]["t"] - made.t0 <= fault.from_s + skew_s
    assert lines[second]["t"] - made.t0 >= fault.until_s - skew_s
    before, again = (
        {line["id"] for line in part if line["kind"] == "subscribe"}
        for part in (lines[:second], lines[second:])
    )
    assert before & again, "clients issue their subscriptions again"


def test_the_same_options_make_the_same_files(tmp_path: Path) -> None:
    truths = [generate(everything(publications=200, compressed=True), tmp_path / name) for name in "ab"]
    files = [
        {
            path.relative_to(t.folder): path.read_bytes()
            for path in Path(t.folder).rglob("*")
            if path.is_file()
        }
        for t in truths
    ]
    assert files[0] == files[1]
    assert truths[0].pairs == truths[1].pairs


def test_as_many_lines_are_written_as_were_asked_for(tmp_path: Path) -> None:
    for wanted in (10_000, 40_000):
        truth = generate(large(wanted), tmp_path / str(wanted))
        assert abs(truth.log_lines - wanted) <= 0.02 * wanted


def test_a_lost_host_has_no_folder(tmp_path: Path) -> None:
    truth = generate(everything(missing_hosts=1, publications=100), tmp_path)
    ((what, host, _),) = truth.missing
    assert what == "host"
    assert not (Path(truth.folder) / "hosts" / host).exists()
    assert all(host not in name for name in logs_of(truth))
    assert not RunFolder(Path(truth.folder)).over


def test_a_run_without_anybody_is_a_run(tmp_path: Path) -> None:
    truth = generate(Options(publishers=0, subscribers=0), tmp_path)
    assert truth.counts() == {}
    assert len(RunFolder(Path(truth.folder)).read_plan().processes) == 4
    assert not truth.faults


def test_every_reason_of_quarantine_can_be_planted_alone(tmp_path: Path) -> None:
    for number, reason in enumerate(REASONS):
        truth = generate(Options(seed=number, publications=5, bad_lines=(reason,)), tmp_path)
        assert [each.reason for each in truth.quarantine] == [reason]


def test_a_truth_is_read_back_as_it_was_written(made: Truth, tmp_path: Path) -> None:
    made.write(tmp_path / "truth.json")
    read = read_truth(tmp_path / "truth.json")
    assert read == made
