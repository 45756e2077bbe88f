"""The bed itself: hosts apart from each other, and nothing left when whoever made it is gone."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from panda.hosts.remote import checked, connect
from tests.testbed.bed import CHECKOUT, Bed
from tests.testbed.fixture import bed

__all__ = ["bed"]


def test_hosts_have_their_own_files_processes_and_address(bed: Bed) -> None:
    first, second = bed.hosts[0], bed.hosts[1]
    first.run_inside(["touch", "/etc/mark", "/tmp/mark"])
    assert second.run_inside(["ls", "/etc/mark"], check=False).returncode != 0
    assert not Path("/etc/mark").exists()
    assert first.run_inside(["hostname"]).stdout == "h1\n"
    assert first.run_inside(["id", "-un"], as_user=True).stdout == "panda\n"
    seen = first.run_inside(["sh", "-c", "ls -d /proc/[0-9]*"]).stdout.split()
    assert "/proc/1" in seen
    assert len(seen) < 30
    assert len({host.address for host in bed.hosts}) == len(bed.hosts)


def test_the_bed_describes_itself_to_ansible_and_ssh(bed: Bed) -> None:
    told = json.loads(bed.inventory_file.read_text())["all"]["hosts"]
    assert [told[host.name]["ansible_host"] for host in bed.hosts] == [host.address for host in bed.hosts]
    done = subprocess.run(
        ["ssh", "-F", bed.ssh_config, "-o", "StrictHostKeyChecking=yes", "h2", "hostname"],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stdout == "h2\n"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_bed_whose_owner_ends(tmp_path: Path, end: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.testbed", "up", "--hosts", "2", "--folder", str(tmp_path)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().split("), ")[1].split()[0]
        bridge = f"pb{address.split('.')[2]}"
        assert bridge in names()
        owner.send_signal(end)
    deadline = time.monotonic() + 20
    while bridge in names() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert bridge not in names()


def names() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def test_without_namespaces_hosts_are_loopback_addresses(tmp_path: Path) -> None:
    with Bed(2, tmp_path, kind="loopback") as small:
        for host in small.hosts:
            remote = connect(host.host, small.keys())
            assert checked(remote, ["echo", "$HOME"]) == b"$HOME\n"
            remote.close()
        assert small.hosts[0].known_hosts_line != small.hosts[1].known_hosts_line
