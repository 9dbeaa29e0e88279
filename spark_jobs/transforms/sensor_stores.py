"""sensor_stores: which sensor has spoken from which store, and from when to when."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

WORDS = ("last_store_id", "last_temperature_c", "last_door_open", "last_battery_pct")


def per_sensor_and_store(readings: DataFrame) -> DataFrame:
    """First and last time, and the last words: the last reading there."""
    words = F.struct(
        F.col("store_id").alias("last_store_id"),
        F.col("temperature_c").alias("last_temperature_c"),
        F.col("door_open").alias("last_door_open"),
        F.col("battery_pct").alias("last_battery_pct"),
    )
    return readings.groupBy("sensor_id", "store_id").agg(
        F.min("event_ts").alias("first_seen_at"),
        F.max("event_ts").alias("last_seen_at"),
        F.max_by(words, "event_ts").alias("words"),
        F.min("temperature_mc").alias("lowest_mc"),
        F.max("temperature_mc").alias("highest_mc"),
    )


def merged(published: DataFrame, recent: DataFrame) -> DataFrame:
    """What was known before, widened by what is new."""
    columns = ("sensor_id", "store_id", "first_seen_at", "last_seen_at")
    both = published.select(*columns).unionByName(recent.select(*columns))
    return both.groupBy("sensor_id", "store_id").agg(
        F.min("first_seen_at").alias("first_seen_at"), F.max("last_seen_at").alias("last_seen_at")
    )
