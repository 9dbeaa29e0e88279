"""outages: every silence of a sensor longer than its timeout. Exactly the timeout is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.tables import EVIDENCE_READING
from spark_jobs.transforms.heartbeats import Sensor


def with_neighbours(readings: DataFrame, *partition: str) -> DataFrame:
    """Each reading with the sensor's previous and next one; one sort serves every rule that looks at neighbours."""
    in_order = Window.partitionBy(*partition).orderBy("event_ts")
    reading = F.struct("event_ts", "temperature_c", "door_open", "battery_pct")
    neighbours = {"previous": F.lag("reading").over(in_order), "next": F.lead("reading").over(in_order)}
    return readings.withColumn("reading", reading).withColumns(neighbours)


def is_followed_by_silence() -> Column:
    """Longer than the sensor's timeout, and ended by a later reading."""
    return F.unix_micros("next.event_ts") - F.unix_micros("event_ts") > F.col("silent_after_s") * 1_000_000


def is_doubled() -> Column:
    """Two readings of a sensor at the same time: there must be none."""
    return F.col("next.event_ts") == F.col("event_ts")


def between_readings(neighbours: DataFrame) -> DataFrame:
    """Silences that a later reading ended; `home` is the inventory's store, where it knows the sensor."""
    return neighbours.filter(is_followed_by_silence()).select(
        "sensor_id",
        F.coalesce("home", "store_id").alias("store_id"),
        F.col("event_ts").alias("started_at"),
        F.col("next.event_ts").alias("ended_at"),
        F.col("store_id").alias("reading_store_id"),
        F.col("reading").alias("first"),
        F.col("next").alias("last"),
    )


LAST_SILENCES = f"""sensor_id string, store_id string, started_at timestamp, ended_at timestamp, reading_store_id string,
    first {EVIDENCE_READING}, last {EVIDENCE_READING}"""


def last_silences(sensors: Iterable[Sensor]) -> list[tuple[Any, ...]]:
    """The rows of a frame of LAST_SILENCES: those that no reading has ended yet."""
    rows = []
    for sensor in sensors:
        if sensor.is_silent and (words := sensor.words):
            first = {
                "event_ts": words.last_seen_at,
                "temperature_c": words.temperature_c,
                "door_open": words.door_open,
                "battery_pct": words.battery_pct,
            }
            rows.append((sensor.sensor_id, sensor.store_id, words.last_seen_at, sensor.silence_ended_at, words.store_id, first, None))
    return rows
