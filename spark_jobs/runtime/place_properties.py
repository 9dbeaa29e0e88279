"""Spark's properties for the place where it runs (COLDSTORE_SPARK_CONF): image, namespace, queue, the driver's address, the workers' Python."""

from __future__ import annotations

import re
from pathlib import Path

from include.settings import SettingError

LINE = re.compile(r"(spark\.[^\s=]+)(?:\s*=\s*|\s+)(\S.*)")
# The driver's JVM is there before the file is read, and runs where the job was started: so that whoever ends the job ends the driver.
TOO_LATE = (
    "spark.submit.deployMode",
    "spark.driver.memory",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
)
SECRET = re.compile(r"(secret[._]?(access[._]?)?key|access[._]?key(_id)?|token|password|authenticate\.secret)$", re.IGNORECASE)

REFERENCE = ".secretKeyRef."  # says where Kubernetes keeps a secret


def of_file(place: str) -> dict[str, str]:
    """One property a line, as in spark-defaults.conf; a later one counts."""
    try:
        lines = Path(place).expanduser().read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingError(
            f"COLDSTORE_SPARK_CONF={place} cannot be read ({error.strerror}); name a file with Spark's properties."
        ) from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = LINE.fullmatch(line.strip())
        if parts is None:
            raise SettingError(f"{place} line {number} is no property of Spark; write one like: spark.executor.memory 2g")
        name, value = parts.groups()
        if reason := _refusal(name):
            raise SettingError(f"{place} line {number}: {name} {reason}")
        found[name] = value
    return found


def _refusal(name: str) -> str:
    if name == "spark.master":
        return "is said by COLDSTORE_MASTER, or by the Airflow connection coldstore_spark; take the line out."
    if name in TOO_LATE:
        return "cannot be chosen here, where the driver is running already; see spark_jobs/spark-defaults.conf."
    if SECRET.search(name) and REFERENCE not in name:
        return "is a secret, and Spark's settings stand in command lines and logs; take the line out. Executors have keys from their environment."
    return ""
