"""Event time: minutes, and how far each store has been heard (its frontier)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Clock


def plus_seconds(moment: Column, seconds: Column | int) -> Column:
    return F.timestamp_micros(F.unix_micros(moment) + seconds * F.lit(1_000_000).cast("bigint"))


def minute_of(moment: Column) -> Column:
    micros = F.unix_micros(moment)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(60_000_000)))


def frontiers(sensor_stores: DataFrame, clock: Clock) -> DataFrame:
    """Per store: its first reading, and `final_until`: windows that end there or before are final."""
    settings = clock.settings
    watermark = plus_seconds(F.max("last_seen_at"), -settings.watermark_delay_s)
    frontier = F.greatest(watermark, F.lit(clock.idle_frontier))
    return sensor_stores.groupBy("store_id").agg(
        F.min("first_seen_at").alias("first_seen_at"),
        plus_seconds(frontier, -settings.allowed_lateness_s).alias("final_until"),
    )
