"""What changed since the last publication: the readings that came, or were replaced by an earlier arrival."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.runtime.event_slices import hour_of
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Published
from spark_jobs.transforms import sensor_stores
from spark_jobs.transforms.sensor_stores import Heard

ROWS = "sensor_id string, store_id string, event_ts timestamp, is_gone boolean"


@dataclass(frozen=True)
class Changes:
    """`rows` are readings as they are now and, where one was replaced, as it was (`is_gone`); None: everything is to be worked out anew."""

    version: int  # of readings, up to which these are the changes
    rows: DataFrame | None
    hours: list[int]  # since 1970, that the changed readings lie in
    heard: list[Heard]  # what the changed readings (or all) tell of each sensor


def since_publication(lake: Lake, published: Published | None) -> Changes:
    version = lake.version("readings")
    if published is None:
        return _everything(lake, version)
    if published.versions["readings"] == version:
        return Changes(version, lake.frame(ROWS, []), [], [])
    feed = lake.changes("readings", published.versions["readings"]).drop("_commit_timestamp")
    rows = feed.withColumn("is_gone", F.col("_change_type").isin("update_preimage", "delete")).drop("_change_type")
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    kinds = rows.groupBy("is_gone", hour_of("event_ts").alias("hour")).count().collect()
    if any(kind.is_gone for kind in kinds):
        rows = _only_latest(rows)
        if _has_moved(rows):
            # Rows of the old store rest on nothing any more: rare enough to start afresh.
            return _everything(lake, version)
    return Changes(version, rows, sorted({kind.hour for kind in kinds}), _heard(rows.filter("not is_gone")))


def _everything(lake: Lake, version: int) -> Changes:
    return Changes(version, None, [], _heard(lake.read_at("readings", version)))


def _heard(readings: DataFrame) -> list[Heard]:
    """One for each sensor and store: few, whatever the number of readings."""
    rows = sensor_stores.per_sensor_and_store(readings).collect()
    return [
        Heard(
            **{**row.asDict(), "first_seen_at": row.first_seen_at.replace(tzinfo=UTC), "last_seen_at": row.last_seen_at.replace(tzinfo=UTC)}
        )
        for row in rows
    ]


def _only_latest(rows: DataFrame) -> DataFrame:
    """A reading that was replaced twice is present once, as it is now."""
    latest = Window.partitionBy("sensor_id", "event_ts", "is_gone").orderBy(F.desc("_commit_version"))
    return rows.withColumn("place", F.row_number().over(latest)).filter("is_gone or place = 1").drop("place")


def _has_moved(rows: DataFrame) -> bool:
    now = rows.filter("not is_gone").select("sensor_id", "event_ts", F.col("store_id").alias("new_store_id"))
    return not rows.filter("is_gone").join(now, ["sensor_id", "event_ts"]).filter("store_id <> new_store_id").isEmpty()
