"""Keys of hosts are trusted when a person agrees, and replaced only when that was said."""

import subprocess
from pathlib import Path

import pytest

from panda.cli.exits import Exit
from panda.hosts.config import SshConfig
from panda.hosts.keys import KnownHosts
from panda.hosts.remote import HostKeyRefused, connect
from tests.prepare.panda_command import answer_json, panda, panda_at_a_terminal
from tests.testbed.bed import Bed

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIa2vHqPzNQxvwpCKpDrjYDhSjuUFu3UN1tTfyB5L5Qf"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "known" / "hosts"


def told(bed: Bed, own: Path) -> dict[str, str]:
    return {"PANDA_KNOWN_HOSTS": str(own), "PANDA_SSH_CONFIG": str(bed.ssh_config)}


def lets_in(bed: Bed, own: Path) -> bool:
    keys = KnownHosts(own, files=(), config=SshConfig(files=()))
    try:
        connect(bed.hosts[0].host, keys).close()
    except HostKeyRefused:
        return False
    return True


def fingerprint(bed: Bed) -> str:
    line = bed.hosts[0].known_hosts_line
    answer = subprocess.run(
        ["ssh-keygen", "-lf", "-"], input=line, capture_output=True, text=True, check=True
    )
    return answer.stdout.split()[1]


def known_name(bed: Bed) -> str:
    return bed.hosts[0].known_hosts_line.split()[0]


def test_without_a_terminal_nobody_agreed(bed: Bed, own: Path, tmp_path: Path) -> None:
    answer = panda(tmp_path, "trust", bed.hosts[0].name, **told(bed, own))
    assert answer.returncode == Exit.REFUSED
    assert fingerprint(bed) in answer.stdout
    assert "--yes" in answer.stderr
    assert not own.exists()


def test_yes_trusts_and_a_second_time_there_is_nothing_to_do(bed: Bed, own: Path, tmp_path: Path) -> None:
    assert not lets_in(bed, own)
    answer = panda(tmp_path, "trust", bed.hosts[0].name, "--yes", "--json", **told(bed, own))
    assert answer.returncode == Exit.DONE, answer.stderr
    shown = {key["kind"]: key for key in answer_json(answer)["keys"]}
    assert shown["ssh-ed25519"] == {
        "kind": "ssh-ed25519",
        "fingerprint": fingerprint(bed),
        "standing": "unknown",
    }
    assert lets_in(bed, own)
    before = own.read_text()
    again = panda(tmp_path, "trust", bed.hosts[0].name, **told(bed, own))
    assert again.returncode == Exit.DONE
    assert "trusted already" in again.stderr
    assert own.read_text() == before


@pytest.mark.parametrize(("typed", "code"), [("y\n", Exit.DONE), ("n\n", Exit.FAILED), ("\n", Exit.FAILED)])
def test_a_person_is_asked(typed: str, code: Exit, bed: Bed, own: Path, tmp_path: Path) -> None:
    answer = panda_at_a_terminal(tmp_path, typed, "trust", bed.hosts[0].name, **told(bed, own))
    assert answer[0] == code, answer
    assert fingerprint(bed) in answer[1]
    assert "trust ssh-ed25519" in answer[2]
    assert lets_in(bed, own) is (code is Exit.DONE)


def test_a_changed_key_is_replaced_only_when_that_was_said(bed: Bed, own: Path, tmp_path: Path) -> None:
    own.parent.mkdir()
    own.write_text(f"{known_name(bed)} {OTHER_KEY}\nelsewhere {OTHER_KEY}\n")
    refused = panda(tmp_path, "trust", bed.hosts[0].name, "--yes", **told(bed, own))
    assert refused.returncode == Exit.FAILED
    assert "--replace" in refused.stderr
    assert not lets_in(bed, own)
    replaced = panda(tmp_path, "trust", bed.hosts[0].name, "--yes", "--replace", **told(bed, own))
    assert replaced.returncode == Exit.DONE, replaced.stderr
    assert lets_in(bed, own)
    assert f"elsewhere {OTHER_KEY}" in own.read_text()


def test_a_revoked_key_is_never_trusted(bed: Bed, own: Path, tmp_path: Path) -> None:
    own.parent.mkdir()
    own.write_text(f"@revoked {bed.hosts[0].known_hosts_line}\n")
    answer = panda(tmp_path, "trust", bed.hosts[0].name, "--yes", "--replace", **told(bed, own))
    assert answer.returncode == Exit.FAILED
    assert "revoked" in answer.stderr
    assert not lets_in(bed, own)


def test_one_host_that_is_gone_does_not_keep_the_others(bed: Bed, own: Path, tmp_path: Path) -> None:
    nobody = tmp_path / "hosts.ini"
    nobody.write_text(f"gone ansible_host=127.0.0.1 ansible_port=1\nh ansible_host={bed.hosts[0].address}\n")
    nobody.write_text(nobody.read_text().replace("\nh ", f"\nh ansible_port={bed.hosts[0].port} "))
    answer = panda(tmp_path, "trust", "--inventory", str(nobody), "--yes", **told(bed, own))
    assert answer.returncode == Exit.UNREACHABLE
    assert "gone" in answer.stderr
    assert lets_in(bed, own)
