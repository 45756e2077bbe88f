"""Decides where the playbooks are: inside an installed panda, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

import panda


def playbook(name: str) -> Path:
    """The playbook `name`.yml."""
    package = Path(panda.__file__).parent
    places = [package / "playbooks", package.parent / "playbooks"]
    for place in places:
        path = place / f"{name}.yml"
        if path.is_file():
            return path
    raise FileNotFoundError(f"there is no {name}.yml in {' or '.join(map(str, places))}: is panda whole?")
