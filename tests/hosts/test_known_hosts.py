"""Host keys: known, unknown, changed, revoked, and how one becomes trusted."""

import base64
import hashlib
import hmac
import subprocess
from pathlib import Path

import pytest

from panda.hosts.config import SshConfig
from panda.hosts.host import Host
from panda.hosts.keys import HostKey, KnownHosts, Standing
from panda.hosts.remote import HostError, HostKeyRefused

OLD = HostKey("ssh-ed25519", b"old")
NEW = HostKey("ssh-ed25519", b"new")
HOST = Host("web", "10.0.1.1")


def known(folder: Path, own: str = "", user: str = "") -> KnownHosts:
    (folder / "user").write_text(user)
    (folder / "own").write_text(own)
    return KnownHosts(folder / "own", files=(folder / "user",), config=SshConfig(files=()))


def hashed(name: str) -> str:
    salt = b"s" * 20
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    "names", ["10.0.1.1", "web,10.0.1.1", "10.0.1.*", "10.0.?.1", hashed("10.0.1.1"), "*,!10.0.1.2"]
)
def test_a_key_is_known_by_name_list_pattern_or_hash(tmp_path: Path, names: str) -> None:
    keys = known(tmp_path, user=f"# a comment\n\nbroken line\n{names} {OLD} somebody@home\n")
    assert keys.judge("10.0.1.1", OLD).standing is Standing.KNOWN
    changed = keys.judge("10.0.1.1", NEW)
    assert (changed.standing, [line.place for line in changed.lines]) == (
        Standing.CHANGED,
        [f"{tmp_path}/user:4"],
    )


@pytest.mark.parametrize(
    "names", ["10.0.1.10", "!10.0.1.1,*", "[10.0.1.1]:2222", hashed("10.0.1.10"), "10.0.1.[1]"]
)
def test_a_key_of_another_name_is_unknown(tmp_path: Path, names: str) -> None:
    assert known(tmp_path, user=f"{names} {OLD}\n").judge("10.0.1.1", OLD).standing is Standing.UNKNOWN


def test_a_port_has_its_own_key_or_the_one_without_a_port(tmp_path: Path) -> None:
    keys = known(tmp_path, user=f"[10.0.1.1]:2222 {OLD}\n10.0.1.1 {NEW}\n")
    assert keys.judge("[10.0.1.1]:2222", OLD).standing is Standing.KNOWN
    assert keys.judge("[10.0.1.1]:2223", NEW).standing is Standing.KNOWN
    assert keys.judge("[10.0.1.1]:2223", OLD).standing is Standing.UNKNOWN


def test_a_revoked_key_is_refused_wherever_it_is_trusted(tmp_path: Path) -> None:
    keys = known(tmp_path, own=f"10.0.1.1 {OLD}\n", user=f"@revoked * {OLD}\n")
    assert keys.judge("10.0.1.1", OLD).standing is Standing.REVOKED
    with pytest.raises(HostKeyRefused, match=r"web: its key .* is revoked in .*user:1"):
        keys.check(HOST, "10.0.1.1", OLD)
    with pytest.raises(HostKeyRefused, match="revoked"):
        keys.trust(HOST, OLD, replace=True)


def test_a_certificate_authority_vouches_for_nobody(tmp_path: Path) -> None:
    keys = known(tmp_path, user=f"@cert-authority * {OLD}\n")
    assert keys.judge("10.0.1.1", OLD).standing is Standing.UNKNOWN


def test_an_unknown_key_is_refused_with_fingerprint_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(HostKeyRefused) as caught:
        known(tmp_path).check(HOST, "10.0.1.1", OLD)
    assert OLD.fingerprint in str(caught.value)
    assert "panda trust 10.0.1.1" in caught.value.hint


def test_the_fingerprint_is_the_one_that_openssh_shows(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    kind, text = (tmp_path / "key.pub").read_text().split()[:2]
    shown = subprocess.run(
        ["ssh-keygen", "-lf", tmp_path / "key.pub"], check=True, capture_output=True, text=True
    )
    assert HostKey(kind, base64.b64decode(text)).fingerprint == shown.stdout.split()[1]


def test_trusting_writes_our_own_file_only_and_once(tmp_path: Path) -> None:
    keys = known(tmp_path, own="# mine\n")
    assert keys.trust(HOST, OLD)
    assert not keys.trust(HOST, OLD)
    assert (tmp_path / "own").read_text() == f"# mine\n10.0.1.1 {OLD}\n"
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "user").read_text() == ""
    assert keys.judge("10.0.1.1", OLD).standing is Standing.KNOWN


def test_a_changed_key_is_replaced_on_request_only_and_the_old_one_is_good_no_more(tmp_path: Path) -> None:
    keys = known(
        tmp_path, own=f"a,10.0.1.1 {OLD}\n{hashed('10.0.1.1')} {OLD}\nb {OLD}\n", user=f"10.0.1.1 {OLD}\n"
    )
    with pytest.raises(HostKeyRefused, match=r"has changed.*own:1.*panda trust --replace 10"):
        keys.trust(HOST, NEW)
    assert keys.trust(HOST, NEW, replace=True)
    assert (tmp_path / "own").read_text() == f"a {OLD}\nb {OLD}\n10.0.1.1 {NEW}\n"
    # The user's file still holds the old key, but ours decides about the hosts that it names.
    assert keys.judge("10.0.1.1", OLD).standing is Standing.CHANGED


def test_a_pattern_in_our_own_file_is_left_to_its_author(tmp_path: Path) -> None:
    keys = known(tmp_path, own=f"10.* {OLD}\n")
    with pytest.raises(HostKeyRefused, match="edit that line by hand"):
        keys.trust(HOST, NEW, replace=True)


@pytest.mark.parametrize("address", ["*", "a,b", "@revoked", "|1|x", "#a", "a!"])
def test_a_name_that_would_say_something_else_in_the_file_is_refused(tmp_path: Path, address: str) -> None:
    keys = known(tmp_path)
    with pytest.raises(HostKeyRefused, match="cannot stand in"):
        keys.trust(Host("web", address), OLD)
    assert (tmp_path / "own").read_text() == ""


def test_ssh_config_gives_what_the_host_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    (tmp_path / "config").write_text(
        "Host web\n  HostName 10.9.9.9\n  Port 2200\n  User alice\n  ProxyJump bob@jump:2022,inner\n"
        f"  IdentityFile {tmp_path}/key\n  IdentityFile {tmp_path}/missing\n  IdentitiesOnly yes\n"
        "Host named\n  HostKeyAlias rack\n"
    )
    config = SshConfig(files=(tmp_path / "config",))
    target = config.target(Host("web"))
    assert (target.address, target.port, target.user) == ("10.9.9.9", 2200, "alice")
    assert target.keys == (f"{tmp_path}/key",)
    assert (target.agent, target.search_keys, target.known_as) == (False, False, "[10.9.9.9]:2200")
    assert [(hop.name, hop.user, hop.port) for hop in target.jumps] == [
        ("jump", "bob", 2022),
        ("inner", "", 22),
    ]
    ours = config.target(Host("web", port=2300, user="carol", jump="none"))
    assert (ours.port, ours.user, ours.jumps) == (2300, "carol", ())
    assert config.target(Host("named")).known_as == "rack"


def test_ssh_config_problems_name_the_host(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host web\n  ProxyCommand nc %h %p\nHost far\n  ProxyJump a b\n")
    config = SshConfig(files=(tmp_path / "config", tmp_path / "missing"))
    with pytest.raises(HostError, match="web: ssh_config asks for a ProxyCommand"):
        config.target(Host("web"))
    with pytest.raises(HostError, match="far: not a jump host"):
        config.target(Host("far"))
    with pytest.raises(HostError, match="there is no key file /nowhere"):
        config.target(Host("other", keys=("/nowhere",)))
