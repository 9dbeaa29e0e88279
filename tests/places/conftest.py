"""Real servers, each started once for all tests that want it, and the places that lie on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_jobs.runtime import s3_client
from tests.places import report
from tests.places.places import OnCluster, OnKafka, OnS3, Place
from tests.servers.kafka import Kafka
from tests.servers.minio import MinIO
from tests.servers.running import running
from tests.servers.seaweedfs import SeaweedFS
from tests.servers.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(str(tmp_path_factory.mktemp("lakes")))
    yield place
    place.stop()


@pytest.fixture(scope="session")
def on_seaweedfs(seaweedfs: SeaweedFS) -> Iterator[OnS3]:
    place = OnS3(seaweedfs, "SeaweedFS")
    yield place
    place.stop()


@pytest.fixture(scope="session")
def on_kafka(kafka: Kafka, seaweedfs: SeaweedFS) -> Iterator[OnKafka]:
    place = OnKafka(kafka, seaweedfs)
    yield place
    place.stop()


@pytest.fixture(scope="session")
def on_cluster(seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCluster]:
    """Its workers have the keys to the S3 server, but where that is they have to be told."""
    keys = {name: seaweedfs.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"), keys)
    cluster.start()
    place = OnCluster(cluster, seaweedfs)
    yield place
    place.stop()
    cluster.stop()


@pytest.fixture(scope="session")
def on_minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnS3]:
    with running(MinIO(tmp_path_factory.mktemp("minio"))) as server:
        place = OnS3(server, "MinIO")
        yield place
        place.stop()


@pytest.fixture(params=["on_files", "on_seaweedfs"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def reached(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The place, where this process itself uses it as the jobs do."""
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    s3_client.client.cache_clear()
    yield place
    s3_client.client.cache_clear()


def pytest_sessionfinish() -> None:
    report.write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if report.places:
        terminalreporter.section("the same history in every place")
        for line in report.table_of_places():
            terminalreporter.line(line)
