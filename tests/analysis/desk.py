"""`panda` as a process of its own, with stand-ins for the analysis and for Java, all in one folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 60.0
STAND_IN = Path(__file__).parents[1] / "support" / "stand_in"
PANDA = [sys.executable, "-c", "from panda.cli.main import main; main()"]
PLAN = {
    "hosts": [],
    "processes": [],
    "links": [],
    "steps": [],
    "policy": "continue",
    "stop_at_s": None,
    "gate_timeout_s": 60.0,
}


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told_path = folder / "told.jsonl"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SPARK", "PYSPARK", "JAVA"))
        }
        self.environment |= {
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(STAND_IN),
            "STAND_IN_TOLD": str(self.told_path),
        }
        self.java("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
        self._started: list[subprocess.Popen[str]] = []

    def java(self, script: str) -> None:
        """The only Java on the path does this."""
        path = self.folder / "bin" / "java"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        self.environment["PATH"] = f"{path.parent}:/usr/bin:/bin"

    def tables(self) -> None:
        """As if something had been analysed."""
        (self.folder / "runs/tables").mkdir(parents=True, exist_ok=True)

    def run(self, id_: str) -> Path:
        """The folder of a run that is over."""
        folder = self.folder / "runs" / id_
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text(json.dumps({"run": id_, "name": id_, **PLAN}))
        return folder

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PANDA, *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **variables)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the analysis was told, each time it was started."""
        if not self.told_path.exists():
            return []
        return [json.loads(line) for line in self.told_path.read_text().splitlines()]

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    try:
        yield found
    finally:
        found.close()
