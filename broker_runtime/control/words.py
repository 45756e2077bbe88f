"""The classes and words of monitor and control. Publications of these classes use the control lane."""

from __future__ import annotations

from typing import Final

from broker_runtime.language.messages import CLASS, Conjunction

BROKER_INFO: Final = "BROKER_INFO"
BROKER_CONTROL: Final = "BROKER_CONTROL"
BROKER_TRACE: Final = "BROKER_TRACE"
CONTROL_CLASSES: Final = frozenset((BROKER_INFO, BROKER_CONTROL, BROKER_TRACE))
EVERY_BROKER: Final = "*"


def concerns_control(wanted: Conjunction) -> bool:
    """Whether a subscription or advertisement is for control classes only."""
    classes = wanted.constraints[CLASS].values
    return bool(classes and classes <= CONTROL_CLASSES)
