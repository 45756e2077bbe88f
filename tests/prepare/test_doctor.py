"""The doctor tells which hosts are fit, and one host's trouble is never another's."""

import contextlib
import json
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.cli.exits import Exit
from panda.hosts.config import SshConfig
from panda.hosts.doctor import Check, Name, Report, Verdict, check
from panda.hosts.host import Host
from panda.hosts.keys import KnownHosts
from panda.hosts.local import LocalRemote
from panda.hosts.probe import MARK
from panda.hosts.remote import Remote, connect
from tests.prepare.panda_command import answer_json, panda
from tests.testbed.bed import Bed

PATIENCE_S = 3.0


def found(report: Report, name: Name) -> Check:
    return next(check for check in report.checks if check.name is name)


def local(tmp_path: Path, **said: str) -> Host:
    return replace(
        Host("here", "127.77.0.9", local=True, root=str(tmp_path / "root"), python=sys.executable), **said
    )


def examine_here(tmp_path: Path, host: Host, *ports: int) -> Report:
    (report,) = check(
        lambda host: LocalRemote(host, tmp_path), [host], {host.name: ports}, timeout_s=PATIENCE_S
    )
    return report


def test_hosts_that_are_well_are_fit_and_measured(bed: Bed) -> None:
    keys = bed.keys()
    reports = check(lambda host: connect(host, keys), [host.host for host in bed.hosts])
    assert [report.host.name for report in reports] == [host.name for host in bed.hosts]
    for report in reports:
        assert report.fit, report.failures
        clock = found(report, Name.CLOCK).values
        assert abs(float(str(clock["clock_offset_s"]))) <= float(str(clock["clock_error_s"])) + 0.05
        assert 0 < float(str(clock["round_trip_s"])) < 1
        assert int(str(found(report, Name.SPEED).values["upload_bytes_per_s"])) > 100_000
        assert found(report, Name.PYTHON).values["machine"]


def test_a_dead_and_a_frozen_host_cost_their_timeout_and_disturb_nobody(bed: Bed) -> None:
    well, dead, frozen, other = bed.hosts
    dead.vanish()
    frozen.freeze()
    keys = bed.keys()
    began = time.monotonic()
    reports = check(
        lambda host: connect(host, keys, timeout_s=PATIENCE_S),
        [host.host for host in (dead, frozen, well, other)],
        timeout_s=PATIENCE_S,
    )
    assert time.monotonic() - began < 3 * PATIENCE_S
    assert [report.reachable for report in reports] == [False, False, True, True]
    assert [report.fit for report in reports] == [False, False, True, True]
    assert all(found(report, Name.REACHABLE).text for report in reports[:2])
    assert found(reports[0], Name.LOGIN).verdict is Verdict.UNKNOWN


def test_a_host_that_freezes_after_the_login_is_named_in_time(bed: Bed) -> None:
    keys = bed.keys()

    def reach(host: Host) -> Remote:
        remote = connect(host, keys)
        remote.run(["true"])  # from here on the host has a process for us, which is to freeze too
        bed.hosts[0].freeze()
        return remote

    began = time.monotonic()
    (report,) = check(reach, [bed.hosts[0].host], timeout_s=1.0)
    assert time.monotonic() - began < 10
    assert found(report, Name.LOGIN).verdict is Verdict.OK
    assert not report.fit
    assert report.failures


def test_a_key_that_is_not_known_and_a_login_that_is_refused_are_told_apart(bed: Bed, tmp_path: Path) -> None:
    nothing = KnownHosts(tmp_path / "known_hosts", files=(), config=SshConfig(files=()))
    (stranger,) = check(lambda host: connect(host, nothing), [bed.hosts[0].host])
    assert stranger.reachable
    assert [check.name for check in stranger.failures] == [Name.HOST_KEY]
    assert "panda trust" in stranger.failures[0].hint
    keys = bed.keys()
    (refused,) = check(lambda host: connect(host, keys), [replace(bed.hosts[0].host, user="nobody")])
    assert refused.reachable
    assert [check.name for check in refused.failures] == [Name.LOGIN]


def test_a_port_that_somebody_listens_on_is_busy(tmp_path: Path) -> None:
    with socket.create_server(("127.77.0.9", 0)) as taken, socket.create_server(("127.77.0.9", 0)) as other:
        busy, free = taken.getsockname()[1], other.getsockname()[1]
        other.close()
        report = examine_here(tmp_path, local(tmp_path), busy, free)
    assert found(report, Name.PORTS).values == {"ports": sorted([busy, free]), "ports_busy": [busy]}
    assert [check.name for check in report.failures] == [Name.PORTS]


def script(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "interpreter"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    report = examine_here(tmp_path, local(tmp_path, python="no-such-python"))
    assert [check.name for check in report.failures] == [Name.PYTHON]
    assert "no-such-python" in report.failures[0].text


def test_what_a_login_prints_first_is_skipped(tmp_path: Path) -> None:
    noisy = script(tmp_path, "echo Welcome; printf 'no newline'", f'exec {sys.executable} "$@"')
    assert examine_here(tmp_path, local(tmp_path, python=noisy)).fit


FACTS = {"system": "Linux", "machine": "x", "cpus": 1, "disk_free_bytes": 2**40, "writable": True}


def test_an_old_python_and_a_full_disk_fail_with_what_is_needed(tmp_path: Path) -> None:
    facts = json.dumps({**FACTS, "python": [3, 9, 2], "disk_free_bytes": 1000})
    old = script(tmp_path, f"echo '{MARK}'", "read question", f"echo '{facts}'")
    report = examine_here(tmp_path, local(tmp_path, python=old))
    python, disk = found(report, Name.PYTHON), found(report, Name.DISK)
    assert (python.verdict, disk.verdict) == (Verdict.FAILED, Verdict.FAILED)
    assert "3.11 is needed" in python.hint
    assert "MiB are needed" in disk.hint


class Script:
    """A remote whose program says what a test wants."""

    def __init__(self, host: Host, said: bytes) -> None:
        self.host = host
        self._said = said

    def open(self, argv: object, *, environment: object = None) -> "Script":
        return self

    def read(self, size: int) -> bytes:
        said, self._said = self._said[:size], self._said[size:]
        return said

    def write(self, data: bytes) -> None:
        pass

    def said(self) -> str:
        return ""

    def close(self) -> None:
        pass


answers = st.dictionaries(
    st.sampled_from([*FACTS, "python", "received", "answered", "busy"]),
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=3),
)


@given(st.lists(answers.map(json.dumps) | st.text(max_size=20), max_size=14))
def test_whatever_a_host_answers_there_is_a_report(lines: list[str]) -> None:
    said = "\n".join([MARK, *lines, ""]).encode("utf-8", "surrogatepass")
    (report,) = check(lambda host: Script(host, said), [Host("x")])  # type: ignore[arg-type,return-value]
    assert len(report.checks) == len(Name)
    assert not report.fit


@contextlib.contextmanager
def listening(address: str) -> Iterator[int]:
    with socket.create_server((address, 0)) as server:
        yield server.getsockname()[1]


def test_the_command_shows_a_table_and_says_by_its_code_how_it_went(bed: Bed, tmp_path: Path) -> None:
    inventory = str(bed.inventory_file)
    first, second = bed.hosts[0].name, bed.hosts[1].name
    fit = panda(tmp_path, "doctor", "--inventory", inventory, "--host", first, **bed.environment())
    assert fit.returncode == Exit.DONE, fit.stderr
    head, row, verdict = fit.stdout.splitlines()
    assert head.split()[:2] == ["host", "reachable"]
    assert row.startswith(first)
    assert verdict == "1 of 1 hosts are fit"
    bed.hosts[1].vanish()
    asked = ["--host", first, "--host", second, "--timeout", "2", "--json"]
    lost = panda(tmp_path, "doctor", "--inventory", inventory, *asked, **bed.environment())
    assert lost.returncode == Exit.UNREACHABLE, lost.stderr
    hosts = answer_json(lost)["hosts"]
    assert [host["fit"] for host in hosts] == [True, False]
    assert hosts[0]["checks"]["clock"]["clock_error_s"] > 0


def test_a_topology_on_this_machine_has_its_ports_checked(tmp_path: Path) -> None:
    with listening("127.77.0.1") as port:
        topology = tmp_path / "t.txt"
        topology.write_text(f"0 ADD A 10.0.1.1 startbroker -i A -p {port}\n")
        named = panda(tmp_path, "doctor", str(topology), "--host", "10.0.1.1", "--local", "--json")
        elsewhere = panda(tmp_path, "doctor", str(topology), "--local", "--json")
    assert named.returncode == Exit.FAILED, named.stderr
    (host,) = answer_json(named)["hosts"]
    assert host["checks"]["ports"]["ports_busy"] == [port]
    assert elsewhere.returncode == Exit.DONE, "a deployment would take other addresses, too"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt"]


@pytest.mark.parametrize(
    "arguments", [[], ["--host", "-x"], ["--host", "a", "--inventory", "missing"], ["missing.txt"]]
)
def test_what_makes_no_sense_is_refused(arguments: list[str], tmp_path: Path) -> None:
    answer = panda(tmp_path, "doctor", *arguments)
    assert answer.returncode == Exit.REFUSED
    assert answer.stdout == ""
    assert answer.stderr
