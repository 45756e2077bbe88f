"""The bundle: one content, one name; whole on a host or not there at all. Here the host is this machine."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from panda.hosts import bundle as bundles
from panda.hosts import landing
from panda.hosts.bundle import Bundle, agent_command, build, install, rollback
from panda.hosts.host import Host
from panda.hosts.local import LocalChannel, LocalRemote
from panda.hosts.remote import NO_ENVIRONMENT, CommandFailed, Finished, HostError


class Login:
    """A remote that is not known to be local, so that bundles travel to it; counts what is asked of it."""

    def __init__(self, home: Path, host: Host) -> None:
        self._inner = LocalRemote(host, home)
        self.host = host
        self.calls = 0

    def run(self, argv: Sequence[str], *, data: bytes = b"", timeout_s: float = 30.0) -> Finished:
        self.calls += 1
        return self._inner.run(["env", f"HOME={self._inner.home}", *argv], data=data, timeout_s=timeout_s)

    def put(self, chunks: Iterable[bytes], path: str) -> int:
        self.calls += 1
        return self._inner.put(chunks, path)

    def open(self, argv: Sequence[str], *, environment: Mapping[str, str] = NO_ENVIRONMENT) -> LocalChannel:
        return self._inner.open(argv, environment=environment)

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path / "home", Host("there", python=sys.executable))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build(tmp_path_factory.mktemp("cache"))


def small(folder: Path, text: str) -> Bundle:
    """A bundle of one file, for what does not depend on size."""
    digest = (text.encode().hex() * 64)[:64]
    path = folder / f"{digest}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("broker_runtime/__init__.py")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return Bundle(digest, path, path.stat().st_size, landing.tag())


def test_building_twice_gives_the_same_bytes(built: Bundle, tmp_path: Path) -> None:
    again = build(tmp_path)
    assert again.digest == built.digest
    assert again.path.read_bytes() == built.path.read_bytes()
    assert again.size_bytes == again.path.stat().st_size < 25_000_000


def test_an_unchanged_environment_is_not_packed_again(built: Bundle) -> None:
    before = built.path.stat()
    assert build(built.path.parent) == built
    assert built.path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_bundle_has_no_times_owners_compiled_files_or_tests(built: Bundle) -> None:
    with tarfile.open(built.path) as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert names == sorted(names)
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(0, 0, 0, "")}
    assert all(member.isreg() for member in members)
    assert not [name for name in names if name.endswith(".pyc") or "/tests/" in name or "__pycache__" in name]
    assert "broker_runtime/bin/startbroker" in names


def test_the_second_installation_asks_one_question_and_sends_nothing(built: Bundle, login: Login) -> None:
    first = install(login, built)
    assert first.sent_bytes == built.size_bytes
    login.calls = 0
    second = install(login, built)
    assert (second.sent_bytes, login.calls) == (0, 1)
    assert (second.folder, second.root) == (first.folder, str(login._inner.home / ".panda"))
    held = {path.name for path in Path(first.root, "bundles").iterdir()}
    assert held == {built.digest, "current", "history"}
    assert Path(first.root, "bundles", "current").resolve() == Path(first.folder).resolve()


def test_the_runtime_works_from_the_bundle_alone(built: Bundle, login: Login) -> None:
    folder = install(login, built).folder
    program = (
        f"import sys; sys.path.insert(0, {folder!r}); import broker_runtime.commands.broker, numpy, msgspec;"
        "print(numpy.__file__); print(msgspec.__file__); print(numpy.linalg.norm(numpy.ones(4)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stdout.splitlines()
    assert all(line.startswith(folder) for line in lines[:2])
    assert lines[2] == "2.0"
    assert os.access(Path(folder, "broker_runtime/bin/startbroker"), os.X_OK)


def test_three_bundles_are_kept_and_a_rollback_returns_to_the_last_but_one(
    tmp_path: Path, login: Login
) -> None:
    made = [small(tmp_path, text) for text in "abcde"]
    for one in made:
        installed = install(login, one)
    held = {path.name for path in Path(installed.root, "bundles").iterdir() if len(path.name) == 64}
    assert held == {one.digest for one in made[2:]}
    assert rollback(login).folder.endswith(made[3].digest)
    assert rollback(login).folder.endswith(made[2].digest)
    assert Path(installed.root, "bundles", "current").readlink().name == made[2].digest
    with pytest.raises(CommandFailed, match="there is no earlier bundle"):
        rollback(login)


def test_a_bundle_that_a_process_runs_from_is_not_pruned(tmp_path: Path, login: Login) -> None:
    first = small(tmp_path, "0")
    folder = install(login, first).folder
    user = subprocess.Popen(["sleep", "60"], env={"PYTHONPATH": folder, "PATH": os.environ["PATH"]})
    try:
        for text in "abcd":
            install(login, small(tmp_path, text))
        assert Path(folder).exists()
    finally:
        user.kill()
        user.wait()
    install(login, small(tmp_path, "e"))
    assert not Path(folder).exists()


def test_a_damaged_archive_is_refused_and_leaves_nothing(tmp_path: Path, login: Login) -> None:
    good = small(tmp_path, "a")
    install(login, good)
    arriving = login._inner.home / ".panda/bundles/x.part"
    arriving.write_bytes(b"other")
    with pytest.raises(CommandFailed, match="the archive arrived damaged"):
        bundles._ask(login, "unpack", "f" * 64, "x.part", "0" * 64, timeout_s=10)
    assert {path.name for path in arriving.parent.iterdir()} == {good.digest, "current", "history"}


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "./a", "a//b"])
def test_an_archive_never_writes_outside_its_folder(tmp_path: Path, login: Login, name: str) -> None:
    hostile = small(tmp_path, "a")
    with tarfile.open(hostile.path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(CommandFailed, match="no plain file"):
        install(login, hostile)
    assert list((login._inner.home / ".panda/bundles").iterdir()) == []


def test_links_in_an_archive_are_refused(tmp_path: Path, login: Login) -> None:
    hostile = small(tmp_path, "a")
    with tarfile.open(hostile.path, "w:gz") as archive:
        entry = tarfile.TarInfo("a")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(CommandFailed, match="no plain file"):
        install(login, hostile)


def test_another_python_is_refused_with_a_hint(tmp_path: Path, login: Login) -> None:
    one = small(tmp_path, "a")
    foreign = Bundle(one.digest, one.path, one.size_bytes, "py3.99-sparc-glibc")
    with pytest.raises(HostError, match=r"there is py3.*wheelhouse"):
        install(login, foreign)
    missing = Login(login._inner.home, Host("there", python="no-such-python"))
    with pytest.raises(HostError, match=r"no-such-python does not run there.*panda prepare"):
        install(missing, one)


def test_a_local_host_uses_the_controllers_own_packages(tmp_path: Path) -> None:
    host = Host("near", local=True)
    installed = install(LocalRemote(host, tmp_path), small(tmp_path, "a"))
    assert (installed.sent_bytes, installed.python) == (0, sys.executable)
    assert Path(installed.folder, "broker_runtime").is_dir()
    assert not (tmp_path / ".panda").exists()
    command = agent_command(host, installed, "run-1", start=False)
    assert command[-4:] == [str(tmp_path / ".panda"), "--run", "run-1", "--no-start"]
    assert f"PYTHONPATH={installed.folder}" in command


def test_a_wheelhouse_makes_a_bundle_for_another_platform(tmp_path: Path) -> None:
    import zipfile

    house = tmp_path / "house"
    house.mkdir()
    for package in ("numpy-2.4.6", "msgspec-0.22.0"):
        name = f"{package}-cp313-cp313-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl"
        with zipfile.ZipFile(house / name, "w") as wheel:
            wheel.writestr(f"{package.split('-')[0]}/__init__.py", "")
            wheel.writestr(f"{package}.dist-info/METADATA", "")
    made = build(tmp_path / "cache", wheelhouse=house)
    assert made.tag == "py3.13-aarch64-glibc"
    with tarfile.open(made.path) as archive:
        roots = {name.split("/")[0] for name in archive.getnames()}
    assert roots == {"broker_runtime", "numpy", "msgspec"}
    assert json.loads(next((tmp_path / "cache").glob("*.json")).read_text())["digest"] == made.digest
