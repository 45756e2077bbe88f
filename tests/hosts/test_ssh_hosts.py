"""Real hosts over SSH: what a login gives, and what happens when a host refuses, hangs or vanishes."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.hosts.bundle import Bundle, agent_command, build, install, remove
from panda.hosts.config import SshConfig
from panda.hosts.host import Host
from panda.hosts.keys import KnownHosts
from panda.hosts.remote import (
    CommandFailed,
    HostError,
    HostKeyRefused,
    LoginRefused,
    Remote,
    Unreachable,
    checked,
    connect,
    connect_all,
)
from panda.hosts.session import Pulse, SshRemote
from panda.hosts.ssh import connect_ssh
from tests.hosts.test_quoting import WORDS
from tests.testbed.bed import Bed
from tests.testbed.fixture import bed, shared_bed

__all__ = ["bed"]

ECHO = "import sys; sys.stdout.buffer.write(ascii(sys.argv[1:]).encode())"


@pytest.fixture
def there(bed: Bed) -> Iterator[Remote]:
    remote = connect(bed.hosts[0].host, bed.keys())
    yield remote
    remote.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build(tmp_path_factory.mktemp("cache"))


def keys_saying(folder: Path, text: str) -> KnownHosts:
    (folder / "known").write_text(text)
    return KnownHosts(folder / "known", files=(), config=SshConfig(files=()))


def test_a_program_runs_as_the_user_with_input_output_and_code(there: Remote) -> None:
    data = os.urandom(3_000_000)
    done = there.run(["sh", "-c", "id -un >&2; cat; exit 7"], data=data)
    assert (done.code, done.stdout, done.stderr) == (7, data, b"panda\n")
    assert there.run(["no-such-program"]).code == 127


def test_a_program_that_does_not_end_is_named_and_the_connection_lives_on(there: Remote) -> None:
    with pytest.raises(CommandFailed, match=r"h1: `sleep 60` did not end within 0.2 s") as caught:
        there.run(["sleep", "60"], timeout_s=0.2)
    assert caught.value.code == 124
    assert checked(there, ["echo", "still here"]) == b"still here\n"


@pytest.mark.parametrize("where", ["1", "2"])
def test_a_flood_of_output_is_cut_off(there: Remote, where: str) -> None:
    with pytest.raises(CommandFailed, match="wrote more than"):
        there.run(["sh", "-c", f"exec cat /dev/zero >&{where}"])
    assert checked(there, ["echo", "still here"]) == b"still here\n"


def test_a_file_arrives_whole_and_private_or_not_at_all(there: Remote, bed: Bed) -> None:
    data = os.urandom(1_000_000)
    name = "deep/-odd name$(touch canary)"
    assert there.put((data[i : i + 300_000] for i in range(0, len(data), 300_000)), name) == len(data)
    assert checked(there, ["cat", f"./{name}"]) == data
    assert checked(there, ["stat", "-c", "%a", f"./{name}"]) == b"600\n"

    def breaks() -> Iterator[bytes]:
        yield b"half"
        raise HostError("h1", "no more")

    with pytest.raises(HostError, match="no more"):
        there.put(breaks(), name)
    assert checked(there, ["cat", f"./{name}"]) == data
    assert len(checked(there, ["ls", "deep"]).splitlines()) == 1
    assert "canary" not in checked(there, ["ls"]).decode()
    with pytest.raises(CommandFailed, match="Permission denied"):
        there.put([b"x" * 5_000_000], "/etc/forbidden/file")


@settings(max_examples=40)
@given(words=WORDS)
def test_hostile_words_reach_a_remote_program_verbatim_and_nothing_else_happens(words: list[str]) -> None:
    remote = hostile_shell()
    assert checked(remote, ["python3", "-S", "-c", ECHO, *words]) == ascii(words).encode()
    assert checked(remote, ["find", ".", "/tmp", "-name", "*canary*"]) == b""


def hostile_shell() -> SshRemote:
    """One connection for all examples."""
    if not _shells:
        made = shared_bed()
        _shells.append(connect_ssh(made.hosts[1].host, made.keys()))
    return _shells[0]


_shells: list[SshRemote] = []


@settings(max_examples=20)
@given(value=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20))
def test_an_environment_value_arrives_verbatim(value: str) -> None:
    program = "import os; print(ascii(os.environ['COLOUR']))"
    channel = hostile_shell().open(
        ["python3", "-S", "-X", "utf8", "-c", program], environment={"COLOUR": value}
    )
    try:
        assert read_all(channel) == ascii(value).encode() + b"\n"
    finally:
        channel.close()


def read_all(channel: object) -> bytes:
    got = b""
    while data := channel.read(65536):  # type: ignore[attr-defined]
        got += data
    return got


def test_a_channel_carries_bytes_both_ways_and_closing_wakes_its_reader(there: Remote) -> None:
    channel = there.open(["sh", "-c", "echo ready >&2; exec cat"])
    payload = os.urandom(3_000_000)
    writer = threading.Thread(target=channel.write, args=(payload,))
    writer.start()
    got = bytearray()
    while len(got) < len(payload):
        got += channel.read(65536)
    writer.join()
    assert bytes(got) == payload
    assert channel.said() == "ready"
    ends: list[bytes] = []
    reader = threading.Thread(target=lambda: ends.append(channel.read(1)))
    reader.start()
    channel.close()
    reader.join(5)
    assert ends == [b""]
    with pytest.raises(Unreachable):
        channel.write(b"x")


def test_small_messages_do_not_wait_for_each_other(there: Remote) -> None:
    assert isinstance(there, SshRemote)
    assert there.transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_unknown_key_is_refused_before_any_login(bed: Bed, tmp_path: Path) -> None:
    with pytest.raises(
        HostKeyRefused, match=r"h1: its key ssh-ed25519 SHA256:\S+ is unknown.*panda trust 10\.97\.\S+"
    ):
        connect(bed.hosts[0].host, keys_saying(tmp_path, ""))
    assert (tmp_path / "known").read_text() == ""


def test_a_changed_key_is_refused_with_the_place_of_the_old_one(bed: Bed, tmp_path: Path) -> None:
    other = bed.hosts[1].known_hosts_line.split(maxsplit=1)[1]
    keys = keys_saying(tmp_path, f"# first\n{bed.hosts[0].address} {other}\n")
    with pytest.raises(HostKeyRefused, match=r"has changed.*known:2.*panda trust --replace 10\.97"):
        connect(bed.hosts[0].host, keys)


def test_a_revoked_key_is_refused(bed: Bed, tmp_path: Path) -> None:
    line = bed.hosts[0].known_hosts_line
    keys = keys_saying(tmp_path, f"{line}\n@revoked {line}\n")
    with pytest.raises(HostKeyRefused, match=r"is revoked in .*known:2"):
        connect(bed.hosts[0].host, keys)


def test_what_a_host_shows_can_be_trusted_and_then_opens(bed: Bed, tmp_path: Path) -> None:
    host, keys = bed.hosts[0].host, keys_saying(tmp_path, "")
    (shown,) = keys.offered(host)
    assert str(shown) in bed.hosts[0].known_hosts_line
    keys.trust(host, shown)
    connect(host, keys).close()


def test_a_key_that_the_host_does_not_know_is_a_refused_login(bed: Bed, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    place = bed.hosts[0]
    stranger = Host("h1", place.address, user=place.user, keys=(str(tmp_path / "key"),))
    with pytest.raises(LoginRefused, match="accepts none of our keys"):
        connect(stranger, bed.keys())
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-P", "", "-f", tmp_path / "key"], check=True)
    with pytest.raises(LoginRefused, match="ssh-agent"):
        connect(stranger, bed.keys())


def test_nobody_listening_and_an_unknown_name_are_told_apart(bed: Bed) -> None:
    with pytest.raises(Unreachable, match="nobody listens"):
        connect(Host("h1", bed.hosts[0].address, port=2999), bed.keys())
    with pytest.raises(Unreachable, match="is not known"):
        connect(Host("no-such-host.invalid"), bed.keys())


def test_a_frozen_host_is_named_in_time_and_delays_nobody_else(bed: Bed) -> None:
    bed.hosts[2].freeze()
    began = time.monotonic()
    outcomes = connect_all([host.host for host in bed.hosts], bed.keys(), timeout_s=3)
    took_s = time.monotonic() - began
    try:
        frozen = outcomes.pop("h3")
        assert isinstance(frozen, Unreachable)
        assert "h3: " in str(frozen)
        assert "within 3 s" in str(frozen)
        assert took_s < 6
        assert [isinstance(outcome, SshRemote) for outcome in outcomes.values()] == [True] * 3
    finally:
        close_all(outcomes)


def close_all(outcomes: dict[str, Remote | HostError]) -> None:
    for outcome in outcomes.values():
        if not isinstance(outcome, HostError):
            outcome.close()


@pytest.mark.parametrize("way", ["freeze", "vanish"])
def test_an_open_channel_ends_when_its_host_gives_no_sign_of_life(bed: Bed, way: str) -> None:
    host = bed.hosts[3]
    remote = connect_ssh(host.host, bed.keys(), pulse=Pulse(every_s=0.1, answer_s=0.5))
    try:
        channel = remote.open(["cat"])
        getattr(host, way)()
        assert channel.read(1) == b""
        assert "no sign of life" in channel.said()
        with pytest.raises(Unreachable, match=r"h4: no sign of life for 0\.5 s"):
            remote.run(["true"])
        channel.close()
    finally:
        remote.close()


def test_a_host_that_vanished_is_not_reached_and_named(bed: Bed) -> None:
    bed.hosts[3].vanish()
    with pytest.raises(Unreachable, match="h4: "):
        connect(bed.hosts[3].host, bed.keys(), timeout_s=0.7)


def test_hosts_behind_jump_hosts_are_reached_and_every_key_is_checked(bed: Bed, tmp_path: Path) -> None:
    first, second, last = bed.hosts[0], bed.hosts[1], bed.hosts[2]
    jump = f"{first.user}@{first.address},{second.user}@{second.address}"
    behind = Host("h3", last.address, user=last.user, keys=(str(last.key_file),), jump=jump)
    remote = connect(behind, bed.keys())
    try:
        assert checked(remote, ["hostname"]) == b"h3\n"
        came_from = checked(remote, ["sh", "-c", "echo $SSH_CLIENT"]).split()[0].decode()
        assert came_from == second.address
        assert remote.put([b"x" * 100_000], "through") == 100_000
    finally:
        remote.close()
    unknown = keys_saying(tmp_path, f"{first.known_hosts_line}\n{last.known_hosts_line}\n")
    with pytest.raises(HostKeyRefused, match=rf"h3: its jump host {second.address}: its key .* is unknown"):
        connect(behind, unknown)
    circle = tmp_path / "config"
    circle.write_text(f"Host {first.address}\n  ProxyJump {first.address}\n")
    going_round = KnownHosts(bed.known_hosts, files=(), config=SshConfig(files=(circle,)))
    with pytest.raises(HostError, match="is there a circle"):
        connect(first.host, going_round)


def test_too_many_newcomers_are_turned_away_and_come_back(tmp_path: Path) -> None:
    with Bed(1, tmp_path / "bed", options={"MaxStartups": "2"}) as narrow:
        place = narrow.hosts[0].place
        hosts = [
            Host(f"n{n}", place.address, user=place.user, keys=(str(narrow.hosts[0].key_file),))
            for n in range(12)
        ]
        outcomes = connect_all(hosts, narrow.keys(), at_once=12)
        try:
            assert [str(outcome) for outcome in outcomes.values() if isinstance(outcome, HostError)] == []
            assert b"drop connection" in (tmp_path / "bed/h1/sshd.log").read_bytes()
        finally:
            close_all(outcomes)


def test_the_bundle_is_sent_once_and_a_broker_starts_from_it(bed: Bed, there: Remote, built: Bundle) -> None:
    remove(there)  # another test may have brought it
    first = install(there, built)
    assert first.sent_bytes == built.size_bytes
    assert install(there, built).sent_bytes == 0
    assert first.folder == f"/home/panda/.panda/bundles/{built.digest}"
    address = bed.hosts[0].address
    broker = there.open(
        [first.python, "-m", "broker_runtime", "broker", "-uri", f"socket://{address}:7001/b1"],
        environment={"PYTHONPATH": first.folder},
    )
    try:
        wait_for_listener(address, 7001, broker)
    finally:
        broker.close()
    assert agent_command(bed.hosts[0].host, first, "r1")[-4:] == ["--root", first.root, "--run", "r1"]


def test_a_key_that_an_agent_holds_opens_the_door(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = bed.hosts[0].host
    without_key = Host(place.name, place.address, place.port, place.user)
    address = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(address)], stdout=subprocess.DEVNULL) as agent:
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
            end = time.monotonic() + 10
            while subprocess.run(["ssh-add", "-l"], capture_output=True, check=False).returncode == 2:
                assert time.monotonic() < end
            with pytest.raises(LoginRefused):
                connect(without_key, bed.keys())
            subprocess.run(["ssh-add", str(bed.hosts[0].key_file)], capture_output=True, check=True)
            remote = connect(without_key, bed.keys())
            assert remote.run(["whoami"]).stdout == b"panda\n"
            remote.close()
        finally:
            agent.terminate()


def wait_for_listener(address: str, port: int, broker: object) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"no broker: {broker.said()}")  # type: ignore[attr-defined]
