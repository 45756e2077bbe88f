"""The runtime as one archive that is named by its content, and its way into a host's folder; starts nothing.

It is made of the controller's own packages, or of a wheelhouse for another platform, so no registry is asked.
The same content has the same name everywhere: members are sorted and have no times or owners. What the
controller's own Python reads is compiled here once, and not on every host: such files (PEP 552) are believed
unchecked, so no host writes any beside them.
On the host:

    ROOT/bundles/DIGEST/    broker_runtime, msgspec, numpy, numpy.libs; `.complete` when all of it is there
    ROOT/bundles/current    a link to the one that was installed last
"""

import gzip
import hashlib
import importlib.util
import io
import json
import marshal
import os
import re
import secrets
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from panda.hosts import landing
from panda.hosts.host import Host
from panda.hosts.local import LocalRemote
from panda.hosts.remote import PIECE_BYTES, CommandFailed, HostError, Remote, last_lines

PACKAGES = ("broker_runtime", "msgspec", "numpy", "numpy.libs")
LEFT_OUT_SUFFIXES = {".pyc", ".pyi", ".pxd", ".h", ".a", ".f", ".f90"}
LEFT_OUT_FOLDERS = {"__pycache__", "tests"}
# Measured: without these a broker, its matching and numpy's own import still work.
LEFT_OUT_TREES = {
    "broker_runtime/sim",
    *(f"numpy/{name}" for name in ("_core/include", "_core/lib", "_pyinstaller", "distutils", "doc", "f2py")),
    *(f"numpy/{name}" for name in ("fft", "ma", "polynomial", "random", "testing")),
}
LEFT_OUT_EXTENSIONS = re.compile(r"numpy/_core/(_simd|_\w+_tests)\.")
COMPRESSION = 1  # measured: 17 MB in 0.9 s; level 6 makes 15 MB in 2 s
FORMAT = "2"
UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552
# Later versions of the format say which objects are shared, and that depends on what else has been loaded.
MARSHAL_VERSION = 2
LOOK_TIMEOUT_S = 15.0
UNPACK_TIMEOUT_S = 120.0
WHEEL = re.compile(
    r"(?P<name>\w+)-[^-]+-cp3(?P<minor>\d+)-[^-]+-(?P<libc>many|musl)linux[^-]*_(?P<machine>x86_64|aarch64)"
)


class BundleRefused(Exception):
    """The archive cannot be made of what is here."""


@dataclass(frozen=True, slots=True)
class Bundle:
    digest: str
    path: Path
    size_bytes: int
    tag: str


@dataclass(frozen=True, slots=True)
class Installed:
    """`folder` and `root` are absolute on the host; `python` is the interpreter that the bundle is for."""

    folder: str
    python: str
    sent_bytes: int
    root: str


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    executable: bool
    mark: str  # changes when the content does
    read: Callable[[], bytes]


def build(cache: Path, *, wheelhouse: Path | None = None) -> Bundle:
    """The archive, from the cache when nothing it is made of has changed."""
    members, tag = _own_members(), landing.tag()
    if wheelhouse is None:
        members += [_compiled(member) for member in members if member.name.endswith(".py")]
    else:
        foreign, tag = _wheel_members(wheelhouse)
        members = [member for member in members if member.name.startswith("broker_runtime/")] + foreign
    members.sort(key=lambda member: member.name)
    inputs = hashlib.sha256(json.dumps([FORMAT, tag, COMPRESSION]).encode())
    for member in members:
        inputs.update(f"{member.name}\0{member.executable}\0{member.mark}\n".encode())
    note = cache / f"{inputs.hexdigest()}.json"
    return _cached(cache, note, tag) or _packed(cache, note, tag, members)


def install(remote: Remote, bundle: Bundle) -> Installed:
    """Brings the bundle to the host if it is not there, and makes it the current one."""
    host = remote.host
    if isinstance(remote, LocalRemote):
        return Installed(
            str(_package_folder("broker_runtime").parent), sys.executable, 0, str(remote.home / host.root)
        )
    found = _ask(remote, "look", bundle.digest, timeout_s=LOOK_TIMEOUT_S)
    if found["tag"] != bundle.tag:
        hint = "set the host's python, or build the bundle from a wheelhouse for that platform"
        raise HostError(
            host.name, f"{host.python} there is {found['tag']}, the bundle is for {bundle.tag}", hint
        )
    sent = 0
    if not found["there"]:
        arriving = f"{secrets.token_hex(8)}.part"
        sent, expected = _send(remote, bundle, f"{found['root']}/bundles/{arriving}")
        found = _ask(remote, "unpack", bundle.digest, arriving, expected, timeout_s=UNPACK_TIMEOUT_S)
    return Installed(found["folder"], found["python"], sent, found["root"])


def rollback(remote: Remote) -> Installed:
    """Makes the bundle before the current one the current one."""
    found = _ask(remote, "rollback", "", timeout_s=LOOK_TIMEOUT_S)
    return Installed(found["folder"], found["python"], 0, found["root"])


def remove(remote: Remote) -> bool:
    """Takes every bundle off the host that nothing runs from; whether one had to stay."""
    if isinstance(remote, LocalRemote):
        return False
    return bool(_ask(remote, "remove", "", timeout_s=UNPACK_TIMEOUT_S)["there"])


def agent_command(host: Host, installed: Installed, run: str, *, start: bool = True) -> list[str]:
    """The relay's command line. The supervisor that it starts finds the runtime by the same PYTHONPATH."""
    environment = [f"PYTHONPATH={installed.folder}", f"PANDA_PYTHON={installed.python}"]
    words = ["-P", "-m", "broker_runtime.agent", "relay", "--root", installed.root, "--run", run]
    unset = ["-u", "PYTHONHOME", "-u", "PYTHONSTARTUP", "-u", "PYTHONDONTWRITEBYTECODE"]
    return ["env", *unset, *environment, installed.python, *words, *([] if start else ["--no-start"])]


def _ask(remote: Remote, verb: str, digest: str, *words: str, timeout_s: float) -> dict[str, Any]:
    host = remote.host
    script = Path(landing.__file__).read_bytes()
    argv = [host.python, "-I", "-", verb, host.root, digest, *words]
    done = remote.run(argv, data=script, timeout_s=timeout_s)
    if done.code in (126, 127):
        hint = "panda prepare installs Python; or set the host's python"
        raise HostError(host.name, f"{host.python} does not run there: {last_lines(done.stderr)}", hint)
    if done.code != 0:
        raise CommandFailed(host.name, argv, done.code, last_lines(done.stderr))
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    answers = [line.removeprefix(landing.MARK) for line in lines if line.startswith(landing.MARK)]
    try:
        answer = json.loads(answers[-1])
        if not all(isinstance(answer[name], str) for name in ("folder", "python", "root", "tag")):
            raise ValueError("a field is no text")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise CommandFailed(host.name, argv, done.code, "", f"gave no answer we know: {error}") from error
    assert isinstance(answer, dict)
    return answer


def _send(remote: Remote, bundle: Bundle, path: str) -> tuple[int, str]:
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        with bundle.path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                yield piece

    return remote.put(pieces(), path), digest.hexdigest()


def _cached(cache: Path, note: Path, tag: str) -> Bundle | None:
    try:
        noted = json.loads(note.read_text("ascii"))
        digest, size = str(noted["digest"]), int(noted["size_bytes"])
        path = cache / f"{digest}.tar.gz"
        return Bundle(digest, path, size, tag) if path.stat().st_size == size else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _packed(cache: Path, note: Path, tag: str, members: Sequence[_Member]) -> Bundle:
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = cache / f"{secrets.token_hex(8)}.part"
    content = hashlib.sha256(tag.encode())
    try:
        with (
            temporary.open("xb") as file,
            gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for member in members:
                data = member.read()
                entry = tarfile.TarInfo(member.name)
                entry.size, entry.mode = len(data), 0o755 if member.executable else 0o644
                archive.addfile(entry, io.BytesIO(data))
                content.update(f"{member.name}\0{entry.mode}\0{len(data)}\0".encode())
                content.update(data)
        digest = content.hexdigest()
        size = temporary.stat().st_size
        temporary.replace(cache / f"{digest}.tar.gz")
    finally:
        temporary.unlink(missing_ok=True)
    temporary.write_text(json.dumps({"digest": digest, "size_bytes": size}), "ascii")
    temporary.replace(note)
    return Bundle(digest, cache / f"{digest}.tar.gz", size, tag)


def _own_members() -> list[_Member]:
    members = []
    for package in PACKAGES:
        folder = _package_folder(package)
        if not folder.is_dir():
            continue  # numpy.libs: not every build of numpy has one
        for path in folder.rglob("*"):
            name = f"{package}/{path.relative_to(folder).as_posix()}"
            if wanted(name) and path.is_file():
                seen = path.stat()
                mark = f"{seen.st_size} {seen.st_mtime_ns}"
                members.append(_Member(name, os.access(path, os.X_OK), mark, path.read_bytes))
    return members


def _compiled(source: _Member) -> _Member:
    """What Python would write beside the file when it imports it."""

    def read() -> bytes:
        text = source.read()
        code = compile(text, source.name, "exec", dont_inherit=True, optimize=0)
        head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(text)
        return head + marshal.dumps(code, MARSHAL_VERSION)

    path = PurePosixPath(source.name)
    name = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    return _Member(str(name), False, source.mark, read)


def _wheel_members(wheelhouse: Path) -> tuple[list[_Member], str]:
    members, tags = [], set()
    for package in ("msgspec", "numpy"):
        wheels = sorted(wheelhouse.glob(f"{package}-*.whl"))
        found = WHEEL.match(wheels[0].name) if len(wheels) == 1 else None
        if found is None:
            raise BundleRefused(f"{wheelhouse} needs exactly one wheel of {package} for CPython on Linux")
        libc = "glibc" if found["libc"] == "many" else "musl"
        tags.add(f"py3.{found['minor']}-{found['machine']}-{libc}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            for entry in wheel.infolist():
                if entry.filename.split("/")[0] in PACKAGES and wanted(entry.filename) and not entry.is_dir():
                    data = wheel.read(entry)
                    mark = hashlib.sha256(data).hexdigest()
                    members.append(_Member(entry.filename, False, mark, partial(bytes, data)))
    if len(tags) != 1:
        raise BundleRefused(
            f"the wheels in {wheelhouse} are for different platforms: {', '.join(sorted(tags))}"
        )
    return members, tags.pop()


def wanted(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        path.suffix not in LEFT_OUT_SUFFIXES
        and not LEFT_OUT_FOLDERS.intersection(path.parts)
        and not any(name.startswith(tree + "/") for tree in LEFT_OUT_TREES)
        and not LEFT_OUT_EXTENSIONS.match(name)
    )


def _package_folder(package: str) -> Path:
    name, _, library = package.partition(".")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise BundleRefused(f"{name} is not installed beside panda")
    folder = Path(spec.origin).parent
    return folder.with_name(f"{name}.{library}") if library else folder
