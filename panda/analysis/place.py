"""Decides where Spark works: on a cluster, behind a server, or on this machine; starts nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from panda.analysis import server
from panda.analysis.java import find_java
from panda.analysis.refusals import AnalysisRefused
from panda.analysis.server import SESSION
from panda.analysis.shipping import package_zip

# What a user's own environment may say about it, and what pyspark would follow behind our back.
_STEERING = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "MASTER", SESSION)
_MASTER = re.compile(r"local(\[[^\]]+\])?|spark://\S+|yarn|k8s://\S+")
_HADOOP_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says about it."""

    master: str = ""
    remote: str = ""
    cold: bool = False  # without the server that is kept warm


@dataclass(frozen=True, slots=True)
class Place:
    stage: str  # what is done first, to be shown until Spark says more
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def place_of(wish: Wish, cache: Path, environment: Mapping[str, str] | None = None) -> Place:
    """Where this analysis goes, and all it takes there; refused without a Java where one is needed."""
    own = dict(os.environ if environment is None else environment)
    remote = wish.remote or ("" if wish.master or wish.cold else own.get("SPARK_REMOTE", ""))
    clean = {name: value for name, value in own.items() if name not in _STEERING}
    if wish.master and wish.remote:
        raise AnalysisRefused("--master and --remote name two places", "choose one")
    if remote:
        if not remote.startswith("sc://"):
            raise AnalysisRefused(
                f"{remote.partition(';')[0]!r} is no Spark Connect server", "say sc://HOST:PORT"
            )
        return Place(f"reaching {remote.partition('/;')[0]}", (), {**clean, "SPARK_REMOTE": remote})
    if wish.master:
        return _master(wish.master, clean, cache)
    warm = None if wish.cold else server.find(cache)
    if warm is not None and warm.fits and warm.answers:
        return Place("asking the warm server", (), {**clean, **warm.client_environment})
    return _here((), clean)


def _master(master: str, environment: dict[str, str], cache: Path) -> Place:
    if _MASTER.fullmatch(master) is None:
        raise AnalysisRefused(
            f"{master!r} is no master of Spark", "say local[N], spark://HOST:PORT, yarn or k8s://URL"
        )
    if master.startswith("local"):
        return _here(("--master", master), environment)
    find_java(environment)
    return Place(
        f"reaching {master}", ("--master", master, "--py-files", str(package_zip(cache))), environment
    )


def _here(arguments: tuple[str, ...], environment: dict[str, str]) -> Place:
    find_java(environment)
    return Place("starting Spark", arguments, {**environment, "SPARK_LOCAL_IP": "127.0.0.1"})


def lake_path(lake: str) -> str:
    """As Spark is to be told: a server works in another folder than we do."""
    return lake if _HADOOP_PATH.match(lake) else str(Path(lake).absolute())


def refuse_without_tables(lake: str) -> None:
    """As far as it can be told without asking Spark, which takes its time."""
    if not _HADOOP_PATH.match(lake) and not Path(lake).is_dir():
        raise AnalysisRefused(
            f"there are no tables in {lake}", "panda analyze makes them, --lake names others"
        )


def log_beside(lake: str, runs: Path) -> Path:
    """Where Spark's own words go: beside the tables, or in the runs' folder when these are somewhere else."""
    folder = runs / "tables" if _HADOOP_PATH.match(lake) else Path(lake)
    return folder.absolute().with_name(f"{folder.name}.log")
