"""Delta's commits are ours: of two that write the same version, the second is refused, whatever it saw before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from include.settings import Settings
from spark_jobs.runtime.lake import Lake
from tests.servers.s3_server import BUCKET
from tests.servers.seaweedfs import SeaweedFS


def test_delta_commits_by_the_log_store_that_the_settings_name(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    store = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(tmp_path)).store()
    kinds = {scheme: spark.conf.get(f"spark.delta.logStore.{scheme}.impl") for scheme in ("file", "s3a")}
    assert kinds == {"file": "coldstore.CommitsOnDisks", "s3a": "coldstore.CommitsOnS3"}
    delegate = store.getDelegate(jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/_delta_log"))
    assert "CommitsOnDisks" in str(delegate.getClass().getName()) + str(delegate.logStoreImpl().getClass().getName())


def writes_twice(spark: SparkSession, store: Any, place: str, hadoop: Any) -> None:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{place}/00000000000000000001.json")
    store.write(path, jvm.java.util.List.of("the first").iterator(), False, hadoop)
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        store.write(path, jvm.java.util.List.of("the second").iterator(), False, hadoop)


def test_a_version_that_is_there_is_never_written_over(spark: SparkSession, tmp_path: Path) -> None:
    hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    writes_twice(spark, spark._jvm.coldstore.CommitsOnDisks(hadoop), f"file:{tmp_path}", hadoop)  # type: ignore[union-attr]
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the first\n"]


def test_nor_is_it_on_an_s3_server(spark: SparkSession, seaweedfs: SeaweedFS) -> None:
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())  # type: ignore[attr-defined]
    for name, value in {
        "endpoint": seaweedfs.endpoint, "endpoint.region": "us-east-1", "path.style.access": "true",
        "access.key": seaweedfs.key, "secret.key": seaweedfs.secret, "impl.disable.cache": "true",
    }.items():  # fmt: skip
        hadoop.set(f"fs.s3a.{name}", value)
    writes_twice(spark, jvm.coldstore.CommitsOnS3(hadoop), f"s3a://{BUCKET}/commits", hadoop)
    written = seaweedfs.client().get_object(Bucket=BUCKET, Key="commits/00000000000000000001.json")["Body"].read()
    assert written == b"the first\n"


def test_what_was_begun_before_another_driver_took_over_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A driver that sleeps with a table open, and wakes up after another has shut it out."""
    lake = Lake(spark, Settings.from_env({"COLDSTORE_LAKE": str(tmp_path)}))
    lake.create_missing_tables()
    sleeper = lake.small.opened("runs")
    before = sleeper.version()
    Lake(spark, lake.settings).shut_out(2)
    row = pa.Table.from_pylist([{"run_id": "of the sleeper"}], schema=pa.schema(sleeper.schema().to_arrow()))
    with pytest.raises(CommitFailedError):
        write_deltalake(sleeper, row, mode="append")
    assert (lake.version("runs"), lake.rows("runs")) == (before + 1, [])
