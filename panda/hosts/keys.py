"""Which host keys are trusted, in OpenSSH's known_hosts format; never trusts one by itself.

Our own file (`~/.config/panda/known_hosts`, or PANDA_KNOWN_HOSTS) decides about the hosts it names; about
others the user's and the machine's files do. A revocation counts wherever it stands. Certificate authorities
are not followed: a host that only they vouch for is unknown.
"""

import base64
import binascii
import contextlib
import fcntl
import fnmatch
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from panda.hosts.config import SshConfig
from panda.hosts.host import Host
from panda.hosts.remote import CONNECT_TIMEOUT_S, HostKeyRefused

FILE_BYTES_MAX = 8 * 2**20
UNFIT_IN_NAMES = set(" \t\r\n,*?!#|@\0")


@dataclass(frozen=True, slots=True)
class HostKey:
    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"

    def __str__(self) -> str:
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"


@dataclass(frozen=True, slots=True)
class KnownLine:
    file: Path
    number: int
    marker: str
    names: str
    key: HostKey

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"

    def speaks_of(self, name: str) -> bool:
        if self.names.startswith("|1|"):
            return _hashed_match(self.names, name)
        found = False
        for pattern in self.names.lower().split(","):
            if fnmatch.fnmatchcase(name, _only_wildcards(pattern.removeprefix("!"))):
                if pattern.startswith("!"):
                    return False
                found = True
        return found


class Standing(Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Verdict:
    standing: Standing
    lines: tuple[KnownLine, ...] = ()


class KnownHosts:
    """Hosts are filed as ssh_config translates their names, so its reading comes along."""

    def __init__(
        self,
        own: Path | None = None,
        files: Sequence[Path] | None = None,
        config: SshConfig | None = None,
    ) -> None:
        self.own = own or default_own()
        self.files = tuple(default_others() if files is None else files)
        self.config = config or SshConfig()

    def name_of(self, host: Host) -> str:
        return self.config.target(host).known_as

    def judge(self, name: str, key: HostKey) -> Verdict:
        own, others = self._read(self.own), [line for file in self.files for line in self._read(file)]
        aliases = {name, plain(name)}
        revoked = [
            line
            for line in (*own, *others)
            if line.marker == "@revoked" and line.key == key and any(map(line.speaks_of, aliases))
        ]
        if revoked:
            return Verdict(Standing.REVOKED, tuple(revoked))
        for asked, strict in ((name, True), (plain(name), False)):
            lines = _plain_lines(own, asked) or _plain_lines(others, asked)
            if any(line.key == key for line in lines):
                return Verdict(Standing.KNOWN, tuple(line for line in lines if line.key == key))
            if lines and strict:
                return Verdict(Standing.CHANGED, tuple(lines))
        return Verdict(Standing.UNKNOWN)

    def kinds(self, name: str) -> list[str]:
        """Kinds of the keys we hold for a name: the host should be asked for one of these."""
        own, others = self._read(self.own), [line for file in self.files for line in self._read(file)]
        for asked in (name, plain(name)):
            if lines := _plain_lines(own, asked) or _plain_lines(others, asked):
                return list(dict.fromkeys(line.key.kind for line in lines))
        return []

    def check(self, host: Host, name: str, key: HostKey) -> None:
        """Raises HostKeyRefused unless the key is known under the name."""
        verdict = self.judge(name, key)
        if verdict.standing is not Standing.KNOWN:
            raise refusal(host, name, key, verdict)

    def offered(self, host: Host, *, timeout_s: float = CONNECT_TIMEOUT_S) -> list[HostKey]:
        """The keys that a host shows to somebody who does not log in."""
        from panda.hosts.ssh import shown_keys

        return shown_keys(host, self, timeout_s=timeout_s)

    def trust(self, host: Host, key: HostKey, *, replace: bool = False) -> bool:
        """Writes the key into our own file; False when it was known. A changed key needs `replace`."""
        name = self.name_of(host)
        if set(name) & UNFIT_IN_NAMES or not name.isprintable():
            raise HostKeyRefused(host.name, f"{name!r} cannot stand in a known_hosts file")
        with self._locked():
            verdict = self.judge(name, key)
            if verdict.standing is Standing.KNOWN:
                return False
            if verdict.standing is Standing.REVOKED or (verdict.standing is Standing.CHANGED and not replace):
                raise refusal(host, name, key, verdict)
            kept = _without(self._lines(self.own), self._read(self.own), name, host)
            self._write([*kept, f"{name} {key}"])
        return True

    def _lines(self, file: Path) -> list[str]:
        try:
            with file.open("rb") as opened:
                data = opened.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise HostKeyRefused("known_hosts", f"{file} cannot be read: {error.strerror}") from error
        if len(data) > FILE_BYTES_MAX:
            raise HostKeyRefused("known_hosts", f"{file} is larger than {FILE_BYTES_MAX} bytes")
        return data.decode("utf-8", "replace").split("\n")

    def _read(self, file: Path) -> list[KnownLine]:
        parsed = (known_line(file, number, text) for number, text in enumerate(self._lines(file), 1))
        return [line for line in parsed if line is not None]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.own.with_name(self.own.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, lines: Sequence[str]) -> None:
        temporary = self.own.with_name(f"{self.own.name}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write("".join(f"{line}\n" for line in lines if line))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.own)
        finally:
            temporary.unlink(missing_ok=True)


def default_own() -> Path:
    named = os.environ.get("PANDA_KNOWN_HOSTS")
    return Path(named).expanduser() if named else Path.home() / ".config" / "panda" / "known_hosts"


def default_others() -> tuple[Path, ...]:
    return (Path.home() / ".ssh" / "known_hosts", Path("/etc/ssh/ssh_known_hosts"))


def refusal(host: Host, name: str, key: HostKey, verdict: Verdict) -> HostKeyRefused:
    shown = f"{key.kind} {key.fingerprint}"
    places = ", ".join(line.place for line in verdict.lines)
    match verdict.standing:
        case Standing.REVOKED:
            return HostKeyRefused(host.name, f"its key {shown} is revoked in {places}", "give it a new key")
        case Standing.CHANGED:
            old = ", ".join(dict.fromkeys(line.key.fingerprint for line in verdict.lines))
            reason = f"its key has changed: it shows {shown}, but {places} says {old}"
            return HostKeyRefused(host.name, reason, f"if that is right: panda trust --replace {host.where}")
        case _:
            reason = f"its key {shown} is unknown as {name}"
            return HostKeyRefused(host.name, reason, f"compare it and run: panda trust {host.where}")


def known_line(file: Path, number: int, text: str) -> KnownLine | None:
    """One line of a file; None for comments and for what cannot be read, as ssh does."""
    words = text.split()
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    if len(words) < 3 or marker not in ("", "@revoked", "@cert-authority"):
        return None
    try:
        blob = base64.b64decode(words[2], validate=True)
    except binascii.Error:
        return None
    return KnownLine(file, number, marker, words[0], HostKey(words[1], blob))


def plain(name: str) -> str:
    """`host` for `[host]:port`: as with ssh, a key that is filed without a port is good for all of them."""
    return name[1 : name.index("]")] if name.startswith("[") and "]" in name else name


def _plain_lines(lines: Sequence[KnownLine], name: str) -> list[KnownLine]:
    return [line for line in lines if not line.marker and line.speaks_of(name)]


def _hashed_match(names: str, name: str) -> bool:
    parts = names.split("|")
    if len(parts) != 4:
        return False
    try:
        salt, digest = base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except binascii.Error:
        return False
    # The format's own choice of digest; it hides names, it protects no key.
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _only_wildcards(pattern: str) -> str:
    """known_hosts has * and ?; its brackets are literal, those of fnmatch are not."""
    return pattern.replace("[", "[[]")


def _without(texts: Sequence[str], lines: Sequence[KnownLine], name: str, host: Host) -> list[str]:
    """The lines of our own file that stay when a name gets a new key."""
    kept = list(texts)
    for line in _plain_lines(lines, name):
        others = [other for other in line.names.split(",") if other.lower() != name]
        rest = KnownLine(line.file, line.number, "", ",".join(others), line.key)
        if line.names.startswith("|1|") or not others:
            kept[line.number - 1] = ""
        elif rest.speaks_of(name):
            reason = f"{line.place} holds its old key by a pattern"
            raise HostKeyRefused(host.name, reason, "edit that line by hand")
        else:
            kept[line.number - 1] = f"{rest.names} {rest.key}"
    return kept
