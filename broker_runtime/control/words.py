"""The classes and words of monitor and control. Publications of these classes use the control lane."""

from __future__ import annotations

from typing import Final

BROKER_INFO: Final = "BROKER_INFO"
BROKER_CONTROL: Final = "BROKER_CONTROL"
BROKER_TRACE: Final = "BROKER_TRACE"
CONTROL_CLASSES: Final = frozenset((BROKER_INFO, BROKER_CONTROL, BROKER_TRACE))
EVERY_BROKER: Final = "*"
