"""Decides how controllers and agents speak: frames, limits, codes and words. It opens and sends nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

PROTOCOL: Final = 1
PREAMBLE: Final = b"PANDA-AGENT 1\n"
HEADER_BYTES: Final = 4
FRAME_BYTES_MAX: Final = 8 << 20
READ_BYTES_MAX: Final = 1 << 20
# What login scripts may print before the preamble.
BANNER_BYTES_MAX: Final = 1 << 20
NAME_LENGTH_MAX: Final = 128

# Names of runs and processes are names of folders as well.
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,127}")

STEERING: Final = frozenset(("load", "start", "go", "step", "stop", "clean", "quit"))
WATCHING: Final = frozenset(("hello", "clock", "status", "events", "files", "read", "tail", "host"))
ACTIONS: Final = frozenset(("add", "remove", "kill", "pause", "resume", "restart", "fault", "heal", "mark"))
LEASED: Final = frozenset(("pause", "fault", "remove", "kill"))
FAULTS: Final = frozenset(("cut", "delay", "loss", "rate"))
POLICIES: Final = frozenset(("continue", "stop"))
KINDS: Final = frozenset(("runtime", "command"))
STREAMS: Final = frozenset(("stdout", "stderr", "log"))


class Code(StrEnum):
    """Why a request was refused."""

    BAD_REQUEST = "BAD_REQUEST"
    LOCKED = "LOCKED"
    STALE_EPOCH = "STALE_EPOCH"
    WRONG_STATE = "WRONG_STATE"
    UNKNOWN_PROCESS = "UNKNOWN_PROCESS"
    NO_FILE = "NO_FILE"
    TOO_LARGE = "TOO_LARGE"


class RequestRefused(Exception):
    """The other end will not do what was asked; it stays connected."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class BadFrame(Exception):
    """The other end does not speak this protocol; the connection cannot be used any further."""


def encode(message: Mapping[str, object]) -> bytes:
    """One frame. Whatever text it holds, the frame is ASCII, so that nothing in it can fail to be written."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(body) > FRAME_BYTES_MAX:
        raise RequestRefused(Code.TOO_LARGE, f"a frame of {len(body)} bytes is over {FRAME_BYTES_MAX}")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def decode(body: bytes) -> dict[str, Any]:
    """The object in a frame; BadFrame if it is none."""
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"a frame holds no JSON: {str(error)[:100]}") from None
    if not isinstance(message, dict):
        raise BadFrame("a frame holds no JSON object")
    return message


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


class FrameReader:
    """Cuts messages out of a stream of bytes, however it is divided."""

    def __init__(self, limit_bytes: int = FRAME_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Every message that is complete now; BadFrame says that nothing more can be read."""
        self._buffer += data
        messages = []
        start = 0
        while len(self._buffer) - start >= HEADER_BYTES:
            size_bytes = int.from_bytes(self._buffer[start : start + HEADER_BYTES], "big")
            if size_bytes > self._limit_bytes:
                raise BadFrame(f"a frame of {size_bytes} bytes is over the limit of {self._limit_bytes}")
            end = start + HEADER_BYTES + size_bytes
            if len(self._buffer) < end:
                break
            messages.append(decode(bytes(self._buffer[start + HEADER_BYTES : end])))
            start = end
        del self._buffer[:start]
        return messages


class PreambleReader:
    """Skips what a login script printed, up to the line after which frames begin."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> bytes | None:
        """What came after the preamble, or None as long as it has not come; BadFrame if it is too far."""
        self._buffer += data
        at = 0 if self._buffer.startswith(PREAMBLE) else self._buffer.find(b"\n" + PREAMBLE) + 1
        if self._buffer.startswith(PREAMBLE, at):
            return bytes(self._buffer[at + len(PREAMBLE) :])
        if len(self._buffer) > BANNER_BYTES_MAX:
            raise BadFrame("the other end says a lot, but not that it is an agent")
        return None

    @property
    def skipped(self) -> str:
        """What was said instead, for an error message."""
        return bytes(self._buffer[-1000:]).decode(errors="replace").strip()


def request(number: int, do: str, fields: Mapping[str, object]) -> dict[str, object]:
    return {**fields, "id": number, "do": do}


def answer(number: int, fields: Mapping[str, object]) -> dict[str, object]:
    return {"id": number, "ok": fields}


def refusal(number: int | None, code: Code, message: str) -> dict[str, object]:
    return {"id": number, "error": {"code": code.value, "message": message}}


def event(entry: Mapping[str, object]) -> dict[str, object]:
    return {"event": entry}


def result(message: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer holds; RequestRefused if it is a refusal, BadFrame if it is no answer."""
    ok, error = message.get("ok"), message.get("error")
    if isinstance(ok, dict):
        return ok
    if isinstance(error, dict):
        code = str(error.get("code"))
        known = Code(code) if code in Code.__members__ else Code.BAD_REQUEST
        raise RequestRefused(known, str(error.get("message", code)))
    raise BadFrame("neither an answer nor a refusal")
