"""Turns the text of a source into hosts, whichever form it has; opens only what an ssh_config includes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from panda.hosts.sources.detection import Form, detect
from panda.hosts.sources.entry import Entry
from panda.hosts.sources.refusal import Problem, SourceRefused
from panda.hosts.sources.resolution import Hosts
from panda.hosts.sources.ssh_config import Include, SshConfig, read_ssh_config

SOURCE_BYTES_MAX = 4 * 2**20
INCLUDED_FILES_MAX = 256
STDIN = "-"


def read_source(
    text: str, path: str = "", form: Form | None = None, *, user: str = "", include: Include | None = None
) -> Hosts:
    """The hosts of a text; refuses with all problems. The user picks among a manifest's logins."""
    if len(text) > SOURCE_BYTES_MAX:
        raise SourceRefused([Problem(f"more than {SOURCE_BYTES_MAX} bytes", "is it the right file?", path)])
    if "\0" in text:
        raise SourceRefused([Problem("not a text: it holds NUL characters", "is it the right file?", path)])
    text = text.removeprefix("\ufeff")
    chosen = form or detect(text, path)
    if chosen is Form.SSH_CONFIG:
        config = read_ssh_config(text, path, include or (lambda _pattern: []))
        return Hosts(_usable(config, path), path, config)
    if chosen is Form.MANIFEST:
        from panda.hosts.sources.manifest import read_manifest

        return Hosts(read_manifest(text, path, user), path)
    if chosen is Form.SLURM:
        from panda.hosts.sources.slurm import read_slurm

        return Hosts(read_slurm(text, path), path)
    if chosen is Form.ANSIBLE_YAML:
        from panda.hosts.sources.ansible_yaml import read_ansible_yaml

        return Hosts(read_ansible_yaml(text, path), path)
    from panda.hosts.sources.ansible_ini import read_ansible_ini

    return Hosts(read_ansible_ini(text, path), path)


def _usable(config: SshConfig, path: str) -> list[Entry]:
    """A personal ssh_config may hold hosts that we cannot use: they are refused when they are asked for."""
    entries = []
    for name in config.names():
        with contextlib.suppress(SourceRefused):
            entries.append(config.entry(name, path))
    return entries


def open_source(path: Path, form: Form | None = None, *, user: str = "") -> Hosts:
    """The hosts of a file, or of stdin for `-`. A program that would print an inventory is not run.

    The form may stand before the name, as in `slurm:nodes.txt`; after `slurm:` the list itself may stand.
    """
    prefix, colon, rest = str(path).partition(":")
    if colon and prefix in list(Form) and not path.exists():
        form, path = Form(prefix), Path(rest)
        if form is Form.SLURM and rest != STDIN and not path.exists():
            return read_source(rest, "", form)
    return read_source(_text(path), str(path), form, user=user, include=_included_from(path.parent))


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise SourceRefused([Problem("a folder, not a file", "name the inventory file in it", str(path))])
        if str(path) == STDIN:
            data = sys.stdin.buffer.read(SOURCE_BYTES_MAX + 1)
        else:
            with path.open("rb") as file:
                data = file.read(SOURCE_BYTES_MAX + 1)
    except OSError as error:
        raise SourceRefused([Problem(f"cannot read: {error.strerror}", "", str(path))]) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text at byte {error.start}"
        raise SourceRefused([Problem(message, "is it the right file?", str(path))]) from None


def _included_from(folder: Path) -> Include:
    """Relative names are looked for beside the file, and those with `~` at home, as ssh does for its own."""
    opened = 0

    def include(pattern: str) -> list[tuple[str, str]]:
        nonlocal opened
        place = Path(pattern).expanduser() if pattern.startswith("~") else folder / pattern
        found = []
        for path in sorted(place.parent.glob(place.name)) if place.name else []:
            opened += 1
            if opened > INCLUDED_FILES_MAX:
                raise SourceRefused([Problem(f"more than {INCLUDED_FILES_MAX} included files")])
            found.append((str(path), _text(path)))
        return found

    return include
