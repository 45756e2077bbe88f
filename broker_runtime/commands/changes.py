"""Decides how a person is told what happens to a client's connection."""

from __future__ import annotations

from broker_runtime.client import Change, Connected, Disconnected
from broker_runtime.client.errors import plain_reason
from broker_runtime.commands import printing


class Changes:
    """Puts changes into words; the first connect goes without saying."""

    def __init__(self) -> None:
        self._before = False

    def text(self, change: Change) -> str:
        if isinstance(change, Disconnected):
            return f"disconnected: {plain_reason(change.reason)}; trying again"
        if isinstance(change, Connected):
            before, self._before = self._before, True
            if change.resumed:
                return f"connected to {change.broker} again, nothing was missed"
            if before:
                return (
                    f"connected to {change.broker} again, as a new session:"
                    " what was published meanwhile is missed"
                )
            return ""
        return f"{change.message} ({change.code}{f', {change.count}' if change.count else ''})"

    def tell(self, change: Change) -> None:
        """Say it on stderr."""
        text = self.text(change)
        if text:
            printing.note(text)
