"""outages: every silence of a sensor longer than its timeout. Exactly the timeout is none."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.tables import EVIDENCE_READING


def with_neighbours(readings: DataFrame, *partition: str) -> DataFrame:
    """Each reading with the sensor's previous and next one; one sort serves every rule that looks at neighbours."""
    in_order = Window.partitionBy(*partition).orderBy("event_ts")
    reading = F.struct("event_ts", "temperature_c", "door_open", "battery_pct")
    return (
        readings.withColumn("reading", reading)
        .withColumn("previous", F.lag("reading").over(in_order))
        .withColumn("next", F.lead("reading").over(in_order))
    )


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


def last_silences(sensors: DataFrame) -> DataFrame:
    """Silences that nothing has ended yet, but for a retired sensor's: that one ended when it retired."""
    first = F.struct(
        F.col("last_seen_at").alias("event_ts"),
        F.col("last_temperature_c").alias("temperature_c"),
        F.col("last_door_open").alias("door_open"),
        F.col("last_battery_pct").alias("battery_pct"),
    )
    return sensors.filter("is_silent").select(
        "sensor_id",
        "store_id",
        F.col("last_seen_at").alias("started_at"),
        F.when(F.col("is_retired"), F.col("retired_at")).alias("ended_at"),
        F.col("last_store_id").alias("reading_store_id"),
        first.alias("first"),
        F.lit(None).cast(EVIDENCE_READING).alias("last"),
    )
