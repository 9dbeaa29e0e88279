"""The one Spark session of a driver; its settings are those of `spark-defaults.conf`."""

from __future__ import annotations

import os
import sys
import time

from pyspark.sql import SparkSession

from include.settings import PROJECT, S3, Settings

PROPERTIES = PROJECT / ".local" / "spark-defaults.conf"


def session(name: str, settings: Settings) -> SparkSession:
    """Under spark-submit the session it configured; else one with the same properties file."""
    os.environ["TZ"] = "UTC"  # collected timestamps come in the process's own zone
    time.tzset()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--properties-file {PROPERTIES} pyspark-shell")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    builder = SparkSession.builder.appName(name)
    for key, value in (_on_s3() if settings.lake.startswith(S3) or settings.landing.startswith(S3) else {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _on_s3() -> dict[str, str]:
    """Where the server is. Who we are, S3A reads from the environment, like all others; so no key stands in any setting."""
    from spark_jobs.runtime import s3_files

    cloud = "org.apache.spark.internal.io.cloud"
    address = {"spark.hadoop.fs.s3a.endpoint": s3_files.endpoint()} if s3_files.endpoint() else {}
    return {
        **address,
        "spark.hadoop.fs.s3a.endpoint.region": s3_files.region(),
        "spark.hadoop.fs.s3a.path.style.access": str(bool(address)).lower(),
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
        "spark.hadoop.fs.s3a.connection.timeout": "30s",
        # Nothing is renamed there: a checkpoint's file, or a task's, is whole or not there.
        "spark.sql.streaming.checkpointFileManagerClass": f"{cloud}.AbortableStreamBasedCheckpointFileManager",
        "spark.hadoop.fs.s3a.committer.name": "magic",
        "spark.sql.sources.commitProtocolClass": f"{cloud}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": f"{cloud}.BindingParquetOutputCommitter",
    }
