"""An agent in this process, at the other end of a session's channel: answers by a rule, from a thread."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

from broker_runtime.agent.protocol import PREAMBLE, FrameReader, answer, encode


class ScriptedAgent:
    """A channel whose far end answers each request as soon as it is written."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._out.put(b"a login script says hello\n" + PREAMBLE)

    def answer(self, do: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError(f"nobody expected {do}")

    def read(self, size: int) -> bytes:
        return self._out.get()

    def write(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            self._out.put(encode(answer(message["id"], self.answer(message["do"], message))))

    def close(self) -> None:
        self._out.put(b"")

    def said(self) -> str:
        return ""
