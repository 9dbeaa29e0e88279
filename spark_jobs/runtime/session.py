"""The one Spark session of a driver; its settings are those of `spark-defaults.conf`."""

from __future__ import annotations

import os
import sys
import time

from pyspark.sql import SparkSession

from include.settings import PROJECT

PROPERTIES = PROJECT / ".local" / "spark-defaults.conf"


def session(name: str) -> SparkSession:
    """Under spark-submit the session it configured; else one with the same properties file."""
    os.environ["TZ"] = "UTC"  # collected timestamps come in the process's own zone
    time.tzset()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--properties-file {PROPERTIES} pyspark-shell")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    return SparkSession.builder.appName(name).getOrCreate()
