"""What workers tell the screens: messages, so that no worker ever touches a widget."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from panda_tui.model import Snapshot


@dataclass
class SnapshotTaken(Message):
    """How things are now; posted to the screen that is in front."""

    snapshot: Snapshot


@dataclass
class Said(Message):
    """Something to tell whoever sits here; a problem stays a little longer."""

    text: str
    problem: bool = False
