"""The one Spark session of a driver; its settings are those of `spark-defaults.conf`, and of the file for the place where it runs."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from include import s3
from include.settings import PROJECT, S3, Settings
from spark_jobs.runtime import place_properties, shipping
from spark_jobs.runtime.errors import Stop

PROPERTIES = PROJECT / ".local" / "spark-defaults.conf"
CLOUD = "org.apache.spark.internal.io.cloud"
# Nothing is renamed there: a checkpoint's file, or a task's, is whole or not there.
LAKE_ON_S3 = {
    "spark.sql.streaming.checkpointFileManagerClass": f"{CLOUD}.AbortableStreamBasedCheckpointFileManager",
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.hadoop.delta.enableFastS3AListFrom": "true",  # a log is listed from its last checkpoint on, not whole
    "spark.sql.sources.commitProtocolClass": f"{CLOUD}.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": f"{CLOUD}.BindingParquetOutputCommitter",
}


def session(name: str, settings: Settings) -> SparkSession:
    """Under spark-submit the session it configured; else one with the same properties file."""
    os.environ["TZ"] = "UTC"  # collected timestamps come in the process's own zone
    time.tzset()
    properties = place_properties.of_file(settings.spark_conf) if settings.spark_conf else {}
    if "spark.pyspark.python" in properties:
        os.environ["PYSPARK_PYTHON"] = properties["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = f"--master {shlex.quote(settings.master)} " if settings.master else ""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{master}--properties-file {PROPERTIES} pyspark-shell")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    builder = SparkSession.builder.appName(name)
    on_s3 = _on_s3() if any(place.startswith(S3) for place in settings.places) else {}
    lake_on_s3 = LAKE_ON_S3 if settings.lake.startswith(S3) else {}  # landing files may lie there alone
    for key, value in (on_s3 | lake_on_s3 | properties).items():
        builder = builder.config(key, value)
    made = _started(builder)
    shipping.ship(made)
    return made


def _started(builder: SparkSession.Builder) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise Stop(
            f"Spark does not start on {_master()}: {_cause(error).rstrip('.')}. What is done so far is kept; see that the cluster is there and that "
            "COLDSTORE_MASTER (in Airflow: the connection coldstore_spark) and COLDSTORE_SPARK_CONF are right, and run the pass again."
        ) from error


def _master() -> str:
    jvm: Any = SparkContext._jvm
    return str(jvm.java.lang.System.getProperty("spark.master")) if jvm else "the master that was named"


def _cause(error: Any) -> str:
    """The first line of what lies at the root of it."""
    root = getattr(error, "java_exception", None)
    if root is None:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return "spark-submit does not take its settings, see its words above" if "JAVA_GATEWAY_EXITED" in said else said
    while root.getCause() is not None:
        root = root.getCause()
    said = str(root.toString()).splitlines()[0]
    return "no master answers there" if "stopped SparkContext" in said else said


def _on_s3() -> dict[str, str]:
    """Where the server is. Who we are, S3A reads from the environment, like all others; so no key stands in any setting.

    Executors on other machines are told where it is, too. The keys they have from whoever started them: Spark shows its settings to everyone.
    """
    address = {"spark.hadoop.fs.s3a.endpoint": s3.endpoint()} if s3.endpoint() else {}
    told = {f"spark.executorEnv.{name}": os.environ[name] for name in s3.WHERE if os.environ.get(name)}
    return {
        **address,
        **told,
        "spark.hadoop.fs.s3a.endpoint.region": s3.region(),
        "spark.hadoop.fs.s3a.path.style.access": str(bool(address)).lower(),
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
        "spark.hadoop.fs.s3a.connection.timeout": "30s",
    }
