"""Real hosts for whoever asks."""

from tests.testbed.fixture import bed

__all__ = ["bed"]
