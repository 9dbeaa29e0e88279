"""One Spark session for all tests, and lakes to try things on: `lake.receives(...)`, `lake.passes(as_of=...)`, then compare."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings
from tests.lakes import TestLake
from tests.servers.kafka import Kafka
from tests.servers.running import running
from tests.servers.seaweedfs import SeaweedFS


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from spark_jobs.runtime.session import session

    for name in [name for name in os.environ if name.startswith("COLDSTORE_")]:
        del os.environ[name]
    made = session("tests", Settings.from_env())
    yield made
    made.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with running(Kafka(tmp_path_factory.mktemp("kafka"))) as made:
        yield made


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    with running(SeaweedFS(tmp_path_factory.mktemp("seaweedfs"))) as made:
        yield made


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> TestLake:
    return TestLake(tmp_path / "lake", spark)
