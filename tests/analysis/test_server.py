"""With a real Spark: its server answers whoever has the token and nobody else, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from panda.analysis import server
from panda.prepare.offspring import identity_of, lives, members, offspring
from tests.analysis.desk import Desk
from tests.deployment.panda import wait_until

TIMEOUT_S = 240.0
PANDA = [sys.executable, "-c", "from panda.cli.main import main; main()"]
QUESTION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.sql("SELECT sum(id) AS total FROM range(10)").collect()[0].total)
"""


class House:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache" / "panda"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
        self.environment = {**kept, "XDG_CACHE_HOME": str(folder / "cache")}

    def panda(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run([*PANDA, *arguments], {})

    def ask(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, "-c", QUESTION], variables)

    def _run(self, command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    found = House(tmp_path)
    try:
        yield found
    finally:
        found.panda("spark", "down")


def test_a_server_is_kept_warm_until_it_is_taken_down(house: House) -> None:
    began = house.panda("spark", "up", "--memory", "1g", "--cores", "1", "--json")
    assert began.returncode == 0, began.stderr
    told = json.loads(began.stdout)
    assert told["fresh"]

    there = server.find(house.cache)
    assert there is not None
    assert (there.pid, there.port) == (told["pid"], told["port"])
    record = house.cache / "spark/server.json"
    assert record.stat().st_mode & 0o777 == 0o600

    again = json.loads(house.panda("spark", "up", "--json").stdout)
    assert (again["pid"], again["fresh"]) == (there.pid, False)
    status = house.panda("spark", "status")
    assert status.returncode == 0
    assert f"127.0.0.1:{there.port}, pid {there.pid}, 1 core, 1024 MB" in status.stdout

    assert house.ask(**there.client_environment).stdout == "45\n"
    remote = {"SPARK_REMOTE": there.client_environment["SPARK_REMOTE"]}
    assert "No authentication token" in house.ask(**remote).stderr
    wrong = house.ask(**remote, SPARK_CONNECT_AUTHENTICATE_TOKEN="guessed")
    assert (wrong.returncode, "Invalid authentication token" in wrong.stderr) == (1, True)

    assert there.token not in Path(f"/proc/{there.pid}/cmdline").read_text()
    assert there.token not in server.server_log(house.cache).read_text()
    assert there.token not in began.stdout + began.stderr + status.stdout
    addresses = {line.split()[1].split(":")[0] for line in listening(there.pid)}
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}, "it listens on loopback alone"

    family = members(there.pid) | offspring(there.pid)
    ended = house.panda("spark", "down")
    assert ended.stdout == f"the server (pid {there.pid}) is down\n"
    assert not any(lives(each) for each in family)
    assert not record.exists()
    assert house.panda("spark", "down").stdout == "there was no server\n"


def test_an_interrupt_ends_a_real_spark_in_the_middle_of_its_work(desk: Desk) -> None:
    desk.run("r1")
    pids = desk.folder / "pids"
    process = desk.start("analyze", STAND_IN="hang in Spark", PATH=os.environ["PATH"])
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"), "Spark is there", TIMEOUT_S)
    found = [identity_of(int(pid)) for pid in pids.read_text().split()]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert [each is not None and lives(each) for each in found] == [False, False]


def listening(pid: int) -> list[str]:
    """What the kernel says of the sockets at which this process waits for others."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = str(entry.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(line)
    assert found
    return found
