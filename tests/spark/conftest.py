"""One Spark for all modules that share it; one that was stopped meanwhile is opened anew."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from panda_spark.session import Place, open_session


@pytest.fixture(scope="session")
def spark_ends() -> Iterator[None]:
    yield
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@pytest.fixture(scope="module")
def spark(spark_ends: None) -> SparkSession:
    os.environ.pop("SPARK_REMOTE", None)
    session = open_session(Place(master="local[2]", memory="1g"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session
