"""Agents that a test starts are ended with it, also when it fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.controller import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "root")
    try:
        yield host
    finally:
        host.close()
