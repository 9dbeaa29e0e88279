"""What executors on a cluster get from the driver: the project's code, and the jars that Spark does not bring.

Both come from where this driver runs, at each start, so that driver and executors are never of two versions. Nothing is shipped where the
executor is the driver's own process.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from include.settings import PROJECT

CODE = ("include", "spark_jobs", "expectations")
NAME = "coldstore.zip"
WHEN = (1980, 1, 1, 0, 0, 0)  # the same sources give the same bytes


def ship(spark: SparkSession) -> None:
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return
    place = Path(SparkFiles.getRootDirectory()) / "shipped" / NAME  # a folder of the driver's own, gone with it
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zipped(PROJECT))
    context.addPyFile(str(place))
    if not context.getConf().get("spark.executor.extraClassPath"):  # else the workers have them, and this says where
        for jar in jars(context.getConf().get("spark.driver.extraClassPath") or ""):
            spark._jsparkSession.sparkContext().addJar(str(jar))


def zipped(project: Path) -> bytes:
    """The code as Python imports it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for folder in CODE for path in (project / folder).rglob("*.py")):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(project)), WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()


def jars(class_path: str) -> list[Path]:
    """The jars of a class path whose entries are folders, like /project/.local/jars/core/*."""
    folders = [Path(entry.removesuffix("*")) for entry in class_path.split(":") if entry.endswith("/*")]
    return sorted(jar for folder in folders for jar in folder.glob("*.jar"))
