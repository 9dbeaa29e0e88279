"""Who is expected: the sensors of the inventory, and those it does not know from their first reading on."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Settings

DUE_EVERY_S = 60  # only sensors due at least once a minute are waited for


def with_defaults(sensors: DataFrame, settings: Settings) -> DataFrame:
    """The inventory with its empty cells filled, and whether a sensor is due at least once a minute."""
    return (
        sensors.withColumn("silent_after_s", F.coalesce("silent_after_s", F.lit(settings.silent_after_s).cast("bigint")))
        .withColumn("expected_every_s", F.coalesce("expected_every_s", F.lit(settings.expected_every_s).cast("bigint")))
        .withColumn("is_due", F.col("expected_every_s") <= DUE_EVERY_S)
    )


def expectations(inventory: DataFrame, sensor_stores: DataFrame, settings: Settings) -> DataFrame:
    """store_id, sensor_id, expected_from, expected_to (null: open), is_known: from when to when a store waits for a sensor."""
    known = inventory.filter("is_due").select(
        "store_id",
        "sensor_id",
        F.col("active_from").alias("expected_from"),
        F.col("retired_at").alias("expected_to"),
        F.lit(True).alias("is_known"),
    )
    strangers = sensor_stores.join(F.broadcast(inventory.select("sensor_id")), "sensor_id", "left_anti")
    if settings.expected_every_s > DUE_EVERY_S:
        strangers = strangers.limit(0)
    unknown = strangers.select(
        "store_id",
        "sensor_id",
        F.col("first_seen_at").alias("expected_from"),
        F.lit(None).cast("timestamp").alias("expected_to"),
        F.lit(False).alias("is_known"),
    )
    return known.unionByName(unknown).filter("expected_to is null or expected_from is null or expected_from < expected_to")
