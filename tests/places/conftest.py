"""Real servers, each started once for all tests that want it, and the places that lie on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.places import report
from tests.places.places import OnKafka, OnS3, Place
from tests.servers.kafka import Kafka
from tests.servers.minio import MinIO
from tests.servers.seaweedfs import SeaweedFS


@pytest.fixture(scope="session")
def on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(str(tmp_path_factory.mktemp("lakes")))
    yield place
    place.stop()


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    server = SeaweedFS(tmp_path_factory.mktemp("seaweedfs"))
    server.start()
    yield server
    server.stop()


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
def on_minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnS3]:
    server = MinIO(tmp_path_factory.mktemp("minio"))
    server.start()
    place = OnS3(server, "MinIO")
    yield place
    place.stop()
    server.stop()


def pytest_sessionfinish() -> None:
    report.write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if report.places:
        terminalreporter.section("the same history in every place")
        for line in report.table_of_places():
            terminalreporter.line(line)
