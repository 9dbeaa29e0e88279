"""What changed since the last publication: the readings that came, or were replaced by an earlier arrival."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, Window
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
    heard: list[Heard]  # what the changed readings (or all) tell of each sensor
    hours: list[int] = field(default_factory=list)  # since 1970, that the changed readings lie in
    spans: list[tuple[str, datetime, datetime]] = field(default_factory=list)  # of each sensor and day: the first and the last of them


def since_publication(lake: Lake, published: Published | None) -> Changes:
    version = lake.version("readings")
    if published is None:
        return everything(lake, version)
    if published.versions["readings"] == version:
        return nothing(lake, version)
    feed = lake.changes("readings", published.versions["readings"]).drop("_commit_timestamp")
    rows = feed.withColumn("is_gone", F.col("_change_type").isin("update_preimage", "delete")).drop("_change_type")
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    days = _per_day(rows)
    if any(day.is_gone for day in days):
        rows = _only_latest(rows)
        if _has_moved(rows):
            # Rows of the old store rest on nothing any more: rare enough to start afresh.
            return everything(lake, version)
        days = _per_day(rows)
    hours = sorted({hour for day in days for hour in day.hours})
    return Changes(version, rows, _heard(day for day in days if not day.is_gone), hours, [_span(day) for day in days])


def nothing(lake: Lake, version: int) -> Changes:
    return Changes(version, lake.frame(ROWS, []), [])


def everything(lake: Lake, version: int) -> Changes:
    return Changes(version, None, _heard(sensor_stores.per_sensor_and_store(lake.read_at("readings", version)).collect()))


def _per_day(rows: DataFrame) -> list[Row]:
    """One for each sensor, store and day: few, whatever the number of readings."""
    hours: Column = F.collect_set(hour_of("event_ts")).alias("hours")
    return sensor_stores.per_sensor_and_store(rows, F.to_date("event_ts").alias("day"), F.col("is_gone"), measures=[hours]).collect()


def _heard(rows: Iterable[Row]) -> list[Heard]:
    """One for each sensor and store; a sensor's last words are those of its last day."""
    found: dict[tuple[str, str], Heard] = {}
    for row in rows:
        new = Heard(*(_in_utc(row[name]) for name in Heard.__dataclass_fields__))
        known = found.get((new.sensor_id, new.store_id))
        found[new.sensor_id, new.store_id] = new if known is None else _together(known, new)
    return list(found.values())


def _together(one: Heard, other: Heard) -> Heard:
    last = max(one, other, key=lambda heard: heard.last_seen_at)
    return replace(
        last,
        first_seen_at=min(one.first_seen_at, other.first_seen_at),
        lowest_mc=min(one.lowest_mc, other.lowest_mc),
        highest_mc=max(one.highest_mc, other.highest_mc),
    )


def _span(row: Row) -> tuple[str, datetime, datetime]:
    return row.sensor_id, _in_utc(row.first_seen_at), _in_utc(row.last_seen_at)


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _only_latest(rows: DataFrame) -> DataFrame:
    """A reading that was replaced twice is present once, as it is now."""
    latest = Window.partitionBy("sensor_id", "event_ts", "is_gone").orderBy(F.desc("_commit_version"))
    return rows.withColumn("place", F.row_number().over(latest)).filter("is_gone or place = 1").drop("place")


def _has_moved(rows: DataFrame) -> bool:
    now = rows.filter("not is_gone").select("sensor_id", "event_ts", F.col("store_id").alias("new_store_id"))
    return not rows.filter("is_gone").join(now, ["sensor_id", "event_ts"]).filter("store_id <> new_store_id").isEmpty()
