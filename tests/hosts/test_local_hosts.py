"""A host that is this machine behaves like one that was logged into."""

import os
import sys
import threading
from pathlib import Path

import pytest

from panda.hosts.host import Host
from panda.hosts.local import LocalRemote
from panda.hosts.remote import CommandFailed, HostError, Unreachable, checked


@pytest.fixture
def local(tmp_path: Path) -> LocalRemote:
    return LocalRemote(Host("near", local=True), tmp_path / "home")


def test_a_program_reads_its_input_and_its_words_verbatim(local: LocalRemote) -> None:
    words = ["$(touch x)", "a b", "--", "'", "\n"]
    program = "import sys; print(sys.argv[1:]); print(sys.stdin.read())"
    done = local.run([sys.executable, "-c", program, *words], data=b"hello")
    assert done.code == 0
    assert done.stdout == f"{words!r}\nhello\n".encode()


def test_a_program_sees_none_of_the_controllers_variables(
    local: LocalRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PANDA_SECRET", "swordfish")
    seen = checked(local, ["env"]).decode()
    assert "swordfish" not in seen
    assert f"HOME={local.home}" in seen.splitlines()


def test_a_program_that_does_not_end_is_ended_and_named(local: LocalRemote) -> None:
    with pytest.raises(CommandFailed, match=r"near: `sleep 60` did not end within 0.05 s") as caught:
        local.run(["sleep", "60"], timeout_s=0.05)
    assert caught.value.code == 124


def test_a_failure_carries_code_and_last_lines(local: LocalRemote) -> None:
    with pytest.raises(CommandFailed) as caught:
        checked(local, [sys.executable, "-c", "import sys; print('one\\ntwo', file=sys.stderr); sys.exit(3)"])
    assert (caught.value.code, caught.value.last) == (3, "one\ntwo")
    with pytest.raises(CommandFailed, match="does not start: No such file"):
        local.run(["no-such-program"])


def test_put_replaces_a_file_as_a_whole(local: LocalRemote) -> None:
    assert local.put([b"a" * 10, b"b"], "deep/er/file") == 11
    assert (local.home / "deep/er/file").read_bytes() == b"aaaaaaaaaab"

    def broken() -> "list[bytes]":
        raise OSError(5, "lost")

    with pytest.raises(HostError, match="lost"):
        local.put((chunk for _ in "x" for chunk in broken()), "deep/er/file")
    assert [path.name for path in (local.home / "deep/er").iterdir()] == ["file"]
    assert (local.home / "deep/er/file").read_bytes() == b"aaaaaaaaaab"


def test_a_channel_carries_bytes_both_ways_and_closing_wakes_its_reader(local: LocalRemote) -> None:
    channel = local.open(["cat"])
    try:
        payload = os.urandom(200_000)
        writer = threading.Thread(target=channel.write, args=(payload,))
        writer.start()
        got = b""
        while len(got) < len(payload):
            got += channel.read(65536)
        writer.join()
        assert got == payload
        ends: list[bytes] = []
        reader = threading.Thread(target=lambda: ends.append(channel.read(1)))
        reader.start()
    finally:
        channel.close()
    reader.join(5)
    assert ends == [b""]
    with pytest.raises(Unreachable):
        channel.write(b"x")


def test_a_channel_keeps_what_its_program_complained_about(local: LocalRemote) -> None:
    program = "import os, sys; print(os.environ['COLOUR'], file=sys.stderr)"
    channel = local.open([sys.executable, "-c", program], environment={"COLOUR": "green"})
    assert channel.read(1) == b""
    channel.close()
    assert channel.said() == "green"


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": "a b"}, {"name": "a", "port": 0}, {"name": "a\n"}])
def test_a_host_that_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="host "):
        Host(**fields)  # type: ignore[arg-type]
