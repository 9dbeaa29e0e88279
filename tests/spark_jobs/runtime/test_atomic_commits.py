"""Delta's commits on local disks are ours: of two that write the same version, the second is refused, whatever it saw before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def test_delta_commits_by_the_log_store_that_the_settings_name(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    store = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(tmp_path)).store()
    kinds = {scheme: spark.conf.get(f"spark.delta.logStore.{scheme}.impl") for scheme in ("file", "s3a")}
    assert kinds == {"file": "coldstore.CommitsOnDisks", "s3a": "coldstore.CommitsOnS3"}
    delegate = store.getDelegate(jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/_delta_log"))
    assert "CommitsOnDisks" in str(delegate.getClass().getName()) + str(delegate.logStoreImpl().getClass().getName())


def test_a_version_that_is_there_is_never_written_over(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark._jvm
    hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    store, path = jvm.coldstore.CommitsOnDisks(hadoop), jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/00000000000000000001.json")

    def write(text: str) -> None:
        store.write(path, jvm.java.util.List.of(text).iterator(), False, hadoop)

    write("the first")
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        write("the second")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the first\n"]
