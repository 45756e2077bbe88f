"""Wherever Spark runs, the tables are the same: here, on a cluster, at a server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from panda.analysis import server
from panda.analysis.shipping import package_folder, package_zip
from panda_spark.tables import TABLES
from tests.spark.generator import Options, Truth, generate
from tests.spark.tabled import environment, rows_of, said

WAIT_S = 240.0
WORKERS = 2


def until(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return int(asking.getsockname()[1])


class Cluster:
    """A master and its workers, from the package alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.master = f"spark://127.0.0.1:{self._port}"

    def start(self) -> None:
        names = "org.apache.spark.deploy"
        alone = ["--host", "127.0.0.1", "--webui-port", str(free_port())]
        self._begin("master", f"{names}.master.Master", *alone, "--port", str(self._port))
        until(lambda: self._logged("master", "New state: ALIVE"))
        for number in range(WORKERS):
            alone = [
                "--host",
                "127.0.0.1",
                "--webui-port",
                str(free_port()),
                "--cores",
                "1",
                "--memory",
                "1g",
            ]
            work = ["--work-dir", str(self._folder / f"work{number}")]
            self._begin(f"worker{number}", f"{names}.worker.Worker", *alone, *work, self.master)
        for number in range(WORKERS):
            until(lambda number=number: self._logged(f"worker{number}", "Successfully registered"))

    def _begin(self, name: str, class_: str, *arguments: str) -> None:
        home = package_folder("pyspark")
        log = self._folder / f"{name}.log"
        with log.open("wb") as out:
            self._processes.append(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), class_, *arguments],
                    env=environment(SPARK_HOME=str(home), SPARK_DAEMON_MEMORY="256m"),
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def _logged(self, name: str, words: str) -> bool:
        assert all(each.poll() is None for each in self._processes), self.log(name)
        return words in self.log(name)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text("utf-8", "replace")

    def end(self) -> None:
        for each in reversed(self._processes):
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGTERM)
        for each in self._processes:
            try:
                each.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(each.pid, signal.SIGKILL)
                each.wait(20)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.end()


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[server.Server]:
    cache = tmp_path / "cache"
    try:
        found, fresh = server.up(cache, cores=2, memory_mb=1024)
        assert fresh
        yield found
    finally:
        server.down(cache)


Here = tuple[list[Truth], dict[str, list[str]]]


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Runs, and their tables as this machine makes them."""
    folder = tmp_path_factory.mktemp("places")
    truths = [
        generate(
            Options(
                seed=seed, publications=60, losses=2, duplicates=1, cuts=1, pauses=1,
                compressed=bool(seed % 2), bad_lines=("not JSON", "truncated"),
            ),
            folder / "runs",
        )
        for seed in (1, 2)
    ]  # fmt: skip
    answer = said("analyze", "--lake", str(folder / "tables"), *(each.folder for each in truths))
    assert answer.code == 0, answer.noise
    return truths, rows_of(spark, str(folder / "tables"))


def same(spark: SparkSession, here: Here, lake: Path) -> None:
    there = rows_of(spark, str(lake))
    for table in TABLES:
        assert there[table] == here[1][table], table
    assert all(here[1][table] for table in ("bronze", "quarantine", "events", "deliveries", "faults"))


def test_a_cluster_makes_the_same_tables(
    spark: SparkSession, here: Here, cluster: Cluster, tmp_path: Path
) -> None:
    package = package_zip(tmp_path / "cache")
    answer = said(
        "analyze", "--lake", str(tmp_path / "tables"), "--py-files", str(package),
        *(each.folder for each in here[0]), master=cluster.master,
    )  # fmt: skip
    assert answer.code == 0, answer.noise
    assert all("Asked to launch executor" in cluster.log(f"worker{number}") for number in range(WORKERS))
    same(spark, here, tmp_path / "tables")


def test_a_server_makes_the_same_tables(
    spark: SparkSession, here: Here, warm: server.Server, tmp_path: Path
) -> None:
    answer = said(
        "analyze", "--lake", str(tmp_path / "tables"), *(each.folder for each in here[0]),
        master="", **warm.client_environment,
    )  # fmt: skip
    assert answer.code == 0, answer.noise
    same(spark, here, tmp_path / "tables")
