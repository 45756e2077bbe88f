"""The bundle: one content, one name; whole on a host or not there at all. Here the host is this machine."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from broker_runtime import VERSION
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


def test_a_bundle_has_no_times_owners_or_tests(built: Bundle) -> None:
    with tarfile.open(built.path) as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert names == sorted(names)
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members} == {(0, 0, 0, "")}
    assert all(member.isreg() for member in members)
    assert not [name for name in names if "/tests/" in name]
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


# What brokers, clients and the agent load; matching with every structure, against the scan; a message sent.
PROGRAM = """
import asyncio, random, sys
folder = sys.argv[1]
sys.path.insert(0, folder)
from importlib import import_module
from broker_runtime.agent import nursery, relay, supervisor
for word in ("main", "control", "monitor", "trace", *nursery.WORDS):
    import_module(f"broker_runtime.commands.{word}")

from broker_runtime.language.parsing import parse_publication, parse_subscription
from broker_runtime.matching.bitrows import BitRowEngine
from broker_runtime.matching.partition import Sizes
from broker_runtime.matching.scan import ScanEngine
dice = random.Random(1)
draw = lambda: dice.randint(1, 40)
for sizes in (Sizes(), Sizes(0, 3, 1, 2, 1000, 64)):
    engine, scan = BitRowEngine(sizes), ScanEngine()
    for number in range(300):
        text = f"[class,eq,'C'],[x,>,{draw()}],[y,<,{draw()}],[z,{dice.choice(('=', '<>'))},{draw()}]"
        for each in (engine, scan):
            each.add(number, parse_subscription(text))
    for _ in range(50):
        content = parse_publication(f"[class,'C'],[x,{draw()}],[y,{draw()}],[z,{draw()}]")
        assert sorted(engine.match(content)) == sorted(scan.match(content))
    for number in range(0, 300, 2):
        asked = engine.get(number)
        assert sorted(engine.covering(asked)) == sorted(scan.covering(asked))
        engine.remove(number)
        scan.remove(number)

from broker_runtime.addresses import Address
from broker_runtime.broker import BrokerSettings
from broker_runtime.client import connect
from broker_runtime.net.logs import LogWriter
from broker_runtime.net.server import BrokerServer

async def live():
    server = BrokerServer(BrokerSettings(id="A", status_every_s=5.0), LogWriter(None, "A"))
    await server.start(Address("127.0.0.1", 0))
    async with connect(str(server.address), id="S") as client:
        notified = await client.subscribe("[class,eq,'C'],[x,>,1]")
        await client.advertise("[class,eq,'C'],[x,isPresent,@INTEGER]")
        await client.settle()
        await client.publish("[class,'C'],[x,2]")
        print((await anext(aiter(notified))).content["x"])
    await server.close()

asyncio.run(live())
packages = ("broker_runtime", "msgspec", "numpy")
ours = [module for name, module in sys.modules.items() if name.split(".")[0] in packages]
files = [module.__file__ for module in ours if getattr(module, "__file__", None)]
print(all(file.startswith(folder) for file in files))
"""


def test_the_runtime_works_from_the_bundle_alone_and_writes_nothing_there(
    built: Bundle, login: Login
) -> None:
    folder = install(login, built).folder
    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2", "True"]
    assert os.access(Path(folder, "broker_runtime/bin/startbroker"), os.X_OK)
    assert {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")} == before


def test_every_file_comes_compiled_and_python_believes_it(built: Bundle, login: Login) -> None:
    folder = Path(install(login, built).folder)
    sources = sorted(folder.rglob("*.py"))
    assert sources
    for source in sources:
        compiled = Path(importlib.util.cache_from_source(str(source)))
        assert compiled.read_bytes()[4:8] == b"\x01\0\0\0", compiled  # by hash, unchecked
    version = folder / "broker_runtime" / "__init__.py"
    version.write_text("VERSION = 'another'\n")
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); from broker_runtime import VERSION; print(VERSION)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == VERSION


def test_what_was_loaded_before_does_not_change_a_compiled_file(built: Bundle, tmp_path: Path) -> None:
    program = (
        "import asyncio, numpy, sys; from pathlib import Path; from panda.hosts.bundle import build;"
        "print(build(Path(sys.argv[1])).digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == built.digest


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
        compiled = [name for name in archive.getnames() if name.endswith(".pyc")]
    assert roots == {"broker_runtime", "numpy", "msgspec"}
    assert compiled == []  # another Python could not read them
    assert json.loads(next((tmp_path / "cache").glob("*.json")).read_text())["digest"] == made.digest
