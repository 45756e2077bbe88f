"""What a bundle meets on a host: this file's text is sent there and run by the host's own Python.

Standard library only, and nothing newer than Python 3.9, so that an old interpreter can at least say so.
Every answer is one line of JSON behind a mark, for login scripts may print before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import time
from pathlib import Path

MARK = "PANDA-LANDING "
KEPT = 3
LEFTOVER_S = 3600
FILES_MAX = 20000
UNPACKED_BYTES_MAX = 2**31
PIECE_BYTES = 2**20
DIGEST = re.compile("[0-9a-f]{64}")


def main(argv: list[str]) -> None:
    verb, root, digest, rest = argv[0], Path.home() / without_tilde(argv[1]), argv[2], argv[3:]
    bundles = root / "bundles"
    if verb == "look":
        there = look(bundles, digest)
    elif verb == "unpack":
        there = unpack(bundles, digest, bundles / rest[0], rest[1])
    elif verb == "remove":
        there = remove(root)
    else:
        there, digest = True, rollback(bundles)
    answer = {"there": there, "folder": str(bundles / digest), "root": str(root), "tag": tag()}
    answer["python"] = sys.executable
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")


def without_tilde(root: str) -> str:
    return root.removeprefix("~/")


def tag() -> str:
    libc = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    return f"py{sys.version_info[0]}.{sys.version_info[1]}-{platform.machine()}-{libc}"


def look(bundles: Path, digest: str) -> bool:
    bundles.mkdir(parents=True, exist_ok=True, mode=0o700)
    there = (bundles / digest / ".complete").exists()
    if there:
        switch(bundles, digest)
    return there


def unpack(bundles: Path, digest: str, archive: Path, expected: str) -> bool:
    temporary = bundles / f"{archive.name}.unpacked.part"
    try:
        if file_digest(archive) != expected:
            sys.exit("the archive arrived damaged")
        extract(archive, temporary)
        (temporary / ".complete").write_text(digest, "ascii")
        # Another controller may have been faster: then its bundle is as good as ours.
        with contextlib.suppress(OSError):
            temporary.rename(bundles / digest)
    finally:
        shutil.rmtree(str(temporary), ignore_errors=True)
        archive.unlink()
    switch(bundles, digest)
    prune(bundles)
    return True


def file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(PIECE_BYTES), b""):
            digest.update(piece)
    return digest.hexdigest()


def extract(archive: Path, folder: Path) -> None:
    """Plain files below the folder and nothing else, whatever the archive says."""
    size = count = 0
    folder.mkdir(mode=0o700)
    with tarfile.open(str(archive), "r:gz") as opened:
        for member in opened:
            parts = member.name.split("/")
            count, size = count + 1, size + member.size
            if not member.isreg() or any(part in ("", ".", "..") for part in parts):
                sys.exit(f"the archive holds {member.name!r}, which is no plain file")
            if count > FILES_MAX or size > UNPACKED_BYTES_MAX:
                sys.exit("the archive is too large")
            source = opened.extractfile(member)
            assert source is not None
            path = folder.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o755 if member.mode & 0o100 else 0o644
            with os.fdopen(os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                shutil.copyfileobj(source, file, PIECE_BYTES)


def switch(bundles: Path, digest: str) -> None:
    """The last line of the history is the bundle in use, the one before it what a rollback returns to."""
    history = past(bundles)
    if history[-1:] != [digest] or not (bundles / "current").exists():
        record(bundles, [old for old in history if old != digest] + [digest])


def rollback(bundles: Path) -> str:
    history = past(bundles)
    if len(history) < 2:
        sys.exit("there is no earlier bundle")
    record(bundles, history[:-1])
    return history[-2]


def past(bundles: Path) -> list[str]:
    try:
        named = (bundles / "history").read_text("ascii").split()
    except OSError:
        named = []
    return [old for old in named if DIGEST.fullmatch(old) and (bundles / old / ".complete").exists()]


def record(bundles: Path, history: list[str]) -> None:
    mine = f".{os.getpid()}.{time.time_ns()}.part"
    text, link = bundles / ("history" + mine), bundles / ("current" + mine)
    text.write_text("".join(f"{digest}\n" for digest in history), "ascii")
    text.replace(bundles / "history")
    link.symlink_to(history[-1])
    link.replace(bundles / "current")


def prune(bundles: Path) -> None:
    """Keeps the last three, what a process still runs from, and what another controller may be writing."""
    kept = {*past(bundles)[-KEPT:], *in_use(bundles)}
    for path in bundles.iterdir():
        if DIGEST.fullmatch(path.name):
            if path.name not in kept:
                shutil.rmtree(str(path), ignore_errors=True)
        elif path.name.endswith(".part") and time.time() - path.lstat().st_mtime > LEFTOVER_S:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(str(path), ignore_errors=True)
            else:
                path.unlink()


def remove(root: Path) -> bool:
    """Takes away every bundle that nothing runs from, and the folder itself if it is empty then."""
    bundles = root / "bundles"
    kept = in_use(bundles)
    if bundles.is_dir() and not bundles.is_symlink():
        for path in bundles.iterdir():
            if DIGEST.fullmatch(path.name) and path.name not in kept:
                shutil.rmtree(str(path))
        if not kept:
            for name in ("current", "history"):
                with contextlib.suppress(FileNotFoundError):
                    (bundles / name).unlink()
    for folder in (bundles, root / "runs", root):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return bool(kept)


def in_use(bundles: Path) -> set[str]:
    pattern = re.compile(re.escape(os.fsencode(f"{bundles}/")) + b"([0-9a-f]{64})")
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.update(digest.decode() for digest in pattern.findall((process / "environ").read_bytes()))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
