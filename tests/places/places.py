"""Where a lake can lie, as the tests see it: how files get there, how its tables are read, and a driver that takes passes over it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import deltalake

from include.settings import Settings
from tests.lakes import TestLake
from tests.oracle.comparison import deliver, write_reference
from tests.oracle.histories import History, Line, iso
from tests.places.driver import Driver
from tests.servers.kafka import Kafka
from tests.servers.s3_server import BUCKET, S3Server
from tests.servers.spark_cluster import SparkCluster


class PlacedLake(TestLake):
    """A lake whose passes are taken by drivers of their own."""

    def __init__(self, place: Place, name: str, **settings: Any) -> None:
        self.where, self.uri = place, f"{place.root}/{name}"
        self.place = Path(self.uri)  # of use on local disks only
        self.environment = {
            **place.environment,
            "COLDSTORE_LAKE": self.uri,
            "COLDSTORE_QUARANTINE_CRITICAL": "1",
            "COLDSTORE_LEASE_S": "600",  # a busy machine may stand still for a minute
            **{f"COLDSTORE_{key.upper()}": str(value) for key, value in settings.items()},
        }
        self.settings = Settings.from_env(self.environment)

    def keeps(self, name: str, content: bytes, arrived_ms: int | None = None) -> None:
        self.where.keep(f"{self.uri}/{name}", content, arrived_ms)

    def delta(self, table: str) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(self.where.seen(f"{self.uri}/tables/{table}"), storage_options=self.where.delta_options)

    def passes(self, as_of: str, **settings: Any) -> str:
        """By the place's own driver, which goes on from pass to pass; its last line."""
        return self.where.driver.passes(**self._named(as_of, settings)) or f"the driver died: {self.where.driver.said()[-2000:]}"

    def begins(self, driver: Driver, as_of: str, **settings: Any) -> None:
        driver.begin(**self._named(as_of, settings))

    def _named(self, as_of: str, settings: Mapping[str, Any]) -> dict[str, str]:
        own = {name.removeprefix("COLDSTORE_").lower(): value for name, value in self.environment.items() if name.startswith("COLDSTORE_")}
        return own | {"as_of": as_of} | {name: str(value) for name, value in settings.items()}


class Place:
    """Local disks. `environment` is all that a driver needs to find the place."""

    name = "files"

    def __init__(self, root: str, environment: Mapping[str, str] | None = None) -> None:
        self.root, self.environment = root, dict(environment or {})
        self.delta_options: dict[str, str] = {}
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = self.new_driver()
        return self._driver

    def new_driver(self) -> Driver:
        return Driver({**self.environment, "COLDSTORE_LAKE": f"{self.root}/none"})

    def shown(self) -> str:
        """What it lets people read: what its driver wrote."""
        return self.driver.said()

    def shown_secrets(self) -> list[str]:
        return []

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.kill()

    def seen(self, path: str) -> str:
        """How the test itself gets there."""
        return path

    def keep(self, path: str, content: bytes, arrived_ms: int | None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
        if arrived_ms is not None:
            os.utime(path, ns=(arrived_ms * 1_000_000, arrived_ms * 1_000_000))

    def deliver(self, lake: PlacedLake, files: list[tuple[int, list[bytes]]]) -> None:
        deliver(lake, files)

    def copy(self, source: str, target: str) -> None:
        """A whole lake. The landing folder must lie elsewhere: tables know it by its name."""
        shutil.copytree(source, target)

    def arrivals(self, folder: str) -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns // 1_000_000 for path in Path(folder).rglob("*.jsonl")}


class OnS3(Place):
    """An S3 server: it says itself when something arrived."""

    def __init__(self, server: S3Server, name: str) -> None:
        super().__init__(f"s3a://{BUCKET}/{name.lower()}", server.environment)
        self.name, self.server = name, server
        self.delta_options = {
            "aws_endpoint": server.endpoint, "aws_access_key_id": server.key, "aws_secret_access_key": server.secret,
            "aws_region": "us-east-1", "aws_allow_http": "true",
        }  # fmt: skip

    def seen(self, path: str) -> str:
        return path.replace("s3a://", "s3://")

    def keep(self, path: str, content: bytes, arrived_ms: int | None) -> None:
        self.server.client().put_object(Bucket=BUCKET, Key=_key(path), Body=content)

    def copy(self, source: str, target: str) -> None:
        client, start = self.server.client(), _key(source)
        for item in self._listed(source):
            if item["Key"].endswith("/"):  # a mark that stands for a folder
                continue
            new = _key(target) + item["Key"].removeprefix(start)
            client.copy_object(Bucket=BUCKET, Key=new, CopySource={"Bucket": BUCKET, "Key": item["Key"]})

    def contents(self, folder: str) -> dict[str, bytes]:
        client = self.server.client()
        return {item["Key"]: client.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read() for item in self._listed(folder)}

    def arrivals(self, folder: str) -> dict[str, int]:
        return {f"s3a://{BUCKET}/{item['Key']}": round(item["LastModified"].timestamp() * 1000) for item in self._listed(folder)}

    def shown_secrets(self) -> list[str]:
        return [name for name, secret in (("key", self.server.key), ("secret", self.server.secret)) if secret in self.shown()]

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        pages = self.server.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{_key(folder)}/")
        return [item for page in pages for item in page.get("Contents", ())]


class OnKafka(OnS3):
    """Readings come by a topic; the lake lies on an S3 server."""

    def __init__(self, broker: Kafka, server: S3Server) -> None:
        super().__init__(server, "Kafka")
        self.name, self.broker, self.topic = "Kafka to SeaweedFS", broker, "places"
        self.environment = {**server.environment, **broker.environment, "COLDSTORE_KAFKA_TOPIC": self.topic}
        broker.creates(self.topic, partitions=2)

    def deliver(self, lake: PlacedLake, files: list[tuple[int, list[bytes]]]) -> None:
        for number, (arrived_ms, lines) in enumerate(files):
            self.broker.receives(self.topic, *lines, arrived_ms=arrived_ms, partition=number % 2)


class OnCluster(OnS3):
    """Executors are processes of a Spark cluster; the lake lies on an S3 server."""

    def __init__(self, cluster: SparkCluster, server: S3Server) -> None:
        super().__init__(server, "cluster")
        self.name, self.cluster = "SeaweedFS, Spark cluster", cluster
        (cluster.home / "spark.conf").write_text("spark.cores.max 1\n")  # two drivers are there at the same time
        self.environment |= {"COLDSTORE_MASTER": cluster.master, "COLDSTORE_SPARK_CONF": str(cluster.home / "spark.conf")}

    def shown(self) -> str:
        return super().shown() + self.cluster.texts() + " ".join(self.cluster.processes.values())


def _key(path: str) -> str:
    return path.removeprefix(f"s3a://{BUCKET}/")


def lay(lake: PlacedLake, history: History, number: int, of: int) -> None:
    """The reference files, and a share of the history's files: every so many-th, so that what came early is read late, too."""
    if number == 0:
        write_reference(lake, history)
    lake.where.deliver(lake, history.files()[number::of])


def as_arrived(history: History, lake: PlacedLake) -> History:
    """The history as it came to pass there: on an S3 server a file arrives when it is put; a message when its sender says."""
    stamps = lake.where.arrivals(lake.settings.landing)
    named = {line.arrived_ms: stamps.get(f"{lake.settings.landing}/{line.arrived_ms}.jsonl", line.arrived_ms) for line in history.lines}
    return History(
        tuple(Line(line.text, named[line.arrived_ms]) for line in history.lines),
        history.as_of_ms, history.sensors, history.limits, history.suppressions,
    )  # fmt: skip


def doubled(lake: PlacedLake) -> str:
    """What the oracle does not look at, and a second attempt might do twice; empty where all is well."""
    found = {
        "raw_files": [row["source"] for row in lake.rows("raw_files")],
        "alert_events": [row["event_id"] for row in lake.rows("alert_events")],
    }
    return "; ".join(
        f"{table}: {len(names) - len(set(names))} rows doubled" for table, names in found.items() if len(names) != len(set(names))
    )


def as_of(history: History) -> str:
    return iso(history.as_of_ms)
