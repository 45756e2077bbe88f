"""Where Spark works is said by the command line, else by what is there; Java is asked for where needed."""

from __future__ import annotations

import io
import json
import os
import socket
import zipfile
from pathlib import Path

import pytest

from panda.analysis import server
from panda.analysis.java import find_java
from panda.analysis.place import lake_path, log_beside
from panda.analysis.refusals import AnalysisRefused
from panda.analysis.shipping import package_zip, zip_of
from panda.cli.exits import Exit
from panda.prepare.offspring import identity_of
from tests.analysis.desk import Desk

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def put_server(cache: Path, **fields: object) -> Path:
    """The record of a server whose process is this one."""
    us = identity_of(os.getpid())
    assert us is not None
    data = {
        "boot": BOOT,
        "pid": us.pid,
        "started": us.started,
        "port": 1,
        "token": "a-secret",
        "session": "a-session",
        "spark": server.spark_version(),
        "cores": 2,
        "memory_mb": 1024,
        "since": 0.0,
        **fields,
    }
    path = cache / "spark" / "server.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(data))
    path.chmod(0o600)
    return path


def java_that_says(folder: Path, text: str) -> dict[str, str]:
    path = folder / "bin" / "java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    path.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21-ea" 2023-09-19', 21),
        ('java version "25.0.1" 2025-10-21 LTS', 25),
    ],
)
def test_a_java_that_is_new_enough_is_found(tmp_path: Path, text: str, version: int) -> None:
    assert find_java(java_that_says(tmp_path, text)).version == version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('java version "1.8.0_392"', "is Java 8: apt-get install openjdk-17-jre-headless"),
        ('openjdk version "11.0.1"', "is Java 11: apt-get"),
        ("Error: could not find libjava.so", "does not tell its version, it says: Error: could not find"),
    ],
)
def test_a_java_of_no_use_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(AnalysisRefused) as refused:
        find_java(java_that_says(tmp_path, text))
    assert said in str(refused.value)
    assert str(tmp_path / "bin/java") in str(refused.value)


def test_without_java_one_line_says_how_to_get_it(desk: Desk) -> None:
    desk.run("r1")
    (desk.folder / "empty").mkdir()
    ended = desk("analyze", PATH=str(desk.folder / "empty"))
    assert ended.returncode == Exit.REFUSED
    assert ended.stderr == (
        "panda: Spark needs Java 17 or newer, and neither JAVA_HOME nor PATH has one:"
        " apt-get install openjdk-17-jre-headless installs one on Debian\n"
    )
    assert "no bin/java in it" in desk("analyze", JAVA_HOME=str(desk.folder / "empty")).stderr
    assert desk.told == []


def test_on_this_machine_spark_keeps_to_the_loopback_address(desk: Desk) -> None:
    desk.run("r1")
    desk("analyze", "--master", "local[2]")
    assert desk.told[0]["environment"] == {"SPARK_LOCAL_IP": "127.0.0.1"}
    assert desk.told[0]["arguments"][:3] == ["analyze", "--master", "local[2]"]


def test_a_cluster_gets_the_package_along(desk: Desk) -> None:
    desk.run("r1")
    ended = desk("analyze", "--master", "spark://10.0.0.1:7077", SPARK_REMOTE="sc://elsewhere")
    assert ended.returncode == Exit.DONE, ended.stderr
    told = desk.told[0]
    assert told["arguments"][:4] == ["analyze", "--master", "spark://10.0.0.1:7077", "--py-files"]
    assert told["environment"] == {}
    with zipfile.ZipFile(told["arguments"][4]) as archive:
        assert "panda_spark/__main__.py" in archive.namelist()


def test_a_server_elsewhere_is_named_in_the_environment_and_needs_no_java(desk: Desk) -> None:
    desk.run("r1")
    remote = "sc://spark.example:15002/;token=a-secret"
    for arguments, variables in ((["--remote", remote], {}), ([], {"SPARK_REMOTE": remote})):
        ended = desk("analyze", *arguments, PATH="/nowhere", **variables)
        assert ended.returncode == Exit.DONE, ended.stderr
        assert desk.told[-1]["environment"] == {"SPARK_REMOTE": remote}
        assert "a-secret" not in " ".join(desk.told[-1]["arguments"])
    log = (desk.folder / "runs/tables.log").read_text()
    assert "a-secret" not in log


def test_the_warm_server_is_used_by_itself_and_its_token_is_no_argument(desk: Desk) -> None:
    desk.run("r1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        put_server(desk.folder / "cache/panda", port=port)
        ended = desk("analyze", PATH="/nowhere")
    assert ended.returncode == Exit.DONE, ended.stderr
    assert desk.told[0]["environment"] == {
        "SPARK_REMOTE": f"sc://localhost:{port}",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": "a-secret",
    }
    assert "a-secret" not in " ".join(desk.told[0]["arguments"])


@pytest.mark.parametrize("words", [["--cold"], ["--master", "local[1]"]])
def test_the_warm_server_is_left_alone_when_told_so(desk: Desk, words: list[str]) -> None:
    desk.run("r1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        put_server(desk.folder / "cache/panda", port=listening.getsockname()[1])
        desk("analyze", *words)
    assert desk.told[0]["environment"] == {"SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.parametrize(
    "fields",
    [{"spark": "3.5.0"}, {"started": "1"}, {"boot": "another"}, {"pid": "x"}, {"port": 1}],
    ids=["another version", "a number given out again", "before a reboot", "garbage", "silent"],
)
def test_a_server_that_does_not_fit_or_is_gone_is_not_used(desk: Desk, fields: dict[str, object]) -> None:
    desk.run("r1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        put_server(desk.folder / "cache/panda", **{"port": listening.getsockname()[1], **fields})
        assert desk("analyze").returncode == Exit.DONE
    assert desk.told[0]["environment"] == {"SPARK_LOCAL_IP": "127.0.0.1"}


def test_a_record_that_others_could_have_written_or_read_is_not_believed(tmp_path: Path) -> None:
    path = put_server(tmp_path)
    assert server.find(tmp_path) is not None
    path.chmod(0o644)
    assert server.find(tmp_path) is None


def test_down_ends_nobody_but_the_very_server(desk: Desk) -> None:
    path = put_server(desk.folder / "cache/panda", started="1")
    status = desk("spark", "status", "--json")
    assert (status.returncode, json.loads(status.stdout)["state"]) == (Exit.FAILED, "dead")
    assert "a-secret" not in status.stdout
    ended = desk("spark", "down")
    assert ended.stdout == "there was no server\n"
    assert not path.exists()
    assert desk("spark", "status").stdout == "down: panda spark up starts it\n"


def test_a_server_that_cannot_start_is_told_of_with_its_last_words(desk: Desk) -> None:
    desk.java(
        'case "$*" in -version) echo \'openjdk version "17.0.1"\' >&2;; *) echo no memory >&2; exit 1;; esac'
    )
    ended = desk("spark", "up", "--memory", "1g", "--cores", "1")
    assert ended.returncode == Exit.FAILED
    assert "panda: the server ended while it was starting" in ended.stderr
    assert "no memory" in ended.stderr
    assert not (desk.folder / "cache/panda/spark/server.json").exists()


def test_the_package_travels_as_the_same_bytes_for_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name / "package"
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "__pycache__" / "a.pyc").write_bytes(name.encode())
        (folder / "b.py").write_text("b = 1\n")
        (folder / "a.py").write_text("a = 1\n")
    os.utime(tmp_path / "two/package/a.py", (0, 0))
    first, second = (zip_of(tmp_path / name / "package") for name in ("one", "two"))
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.namelist() == ["package/a.py", "package/b.py"]
    made = package_zip(tmp_path / "cache")
    assert package_zip(tmp_path / "cache") == made
    assert [path.name for path in made.parent.iterdir()] == [made.name]


@pytest.mark.parametrize("path", ["hdfs://nn/x", "s3a://bucket/x", "file:/x", "abfss://c@a/x"])
def test_a_path_of_hadoops_is_left_as_it_is_and_its_log_stays_here(path: str) -> None:
    assert lake_path(path) == path
    assert log_beside(path, Path("/runs")) == Path("/runs/tables.log")


def test_a_path_of_ours_is_made_absolute_and_its_log_is_beside_it() -> None:
    assert lake_path("x/y") == str(Path.cwd() / "x/y")
    assert log_beside(lake_path("x/y"), Path("/runs")) == Path.cwd() / "x/y.log"
