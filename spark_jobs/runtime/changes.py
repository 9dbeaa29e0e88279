"""What changed since the last publication: the readings that came, or were replaced by an earlier arrival."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.runtime.event_slices import touched_hours
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Published


@dataclass(frozen=True)
class Changes:
    """`rows` are readings as they are now and, where one was replaced, as it was (`is_gone`); None: everything is to be worked out anew."""

    version: int  # of readings, up to which these are the changes
    rows: DataFrame | None
    hours: list[int]

    @property
    def present(self) -> DataFrame:
        assert self.rows is not None
        return self.rows.filter("not is_gone")


def since_publication(lake: Lake, published: Published | None) -> Changes:
    version = lake.version("readings")
    if published is None:
        return Changes(version, None, [])
    if published.versions["readings"] == version:
        nothing = lake.read("readings").filter(F.lit(False)).withColumn("is_gone", F.lit(False))  # the optimiser sees that it is empty
        return Changes(version, nothing, [])
    feed = lake.changes("readings", published.versions["readings"]).drop("_commit_timestamp")
    rows = feed.withColumn("is_gone", F.col("_change_type").isin("update_preimage", "delete")).drop("_change_type")
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    hours = touched_hours(rows)
    if rows.filter("is_gone").isEmpty():
        return Changes(version, rows, hours)
    rows = _only_latest(rows)
    # Where a replaced reading named another store, rows of the old store rest on nothing any more: rare enough to start afresh.
    return Changes(version, None if _has_moved(rows) else rows, hours)


def _only_latest(rows: DataFrame) -> DataFrame:
    """A reading that was replaced twice is present once, as it is now."""
    latest = Window.partitionBy("sensor_id", "event_ts", "is_gone").orderBy(F.desc("_commit_version"))
    return rows.withColumn("place", F.row_number().over(latest)).filter("is_gone or place = 1").drop("place")


def _has_moved(rows: DataFrame) -> bool:
    now = rows.filter("not is_gone").select("sensor_id", "event_ts", F.col("store_id").alias("new_store_id"))
    return not rows.filter("is_gone").join(now, ["sensor_id", "event_ts"]).filter("store_id <> new_store_id").isEmpty()
