"""The bed as a fixture, one per test process, healed after every test: import `bed` from here."""

import atexit
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.bed import Bed

HOSTS = 4


@functools.cache
def shared_bed() -> Bed:
    """Made at its first use, whichever test file that is in; ends with the process."""
    folder = Path(tempfile.mkdtemp(prefix="panda-bed-"))
    made = Bed(HOSTS, folder, remove=True)
    atexit.register(made.close)
    return made


@pytest.fixture
def bed() -> Iterator[Bed]:
    made = shared_bed()
    try:
        yield made
    finally:
        made.heal()
