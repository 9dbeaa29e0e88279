"""store_minutes: what a store reported in one minute of event time; a silent minute is a row too."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.transforms.event_time import minute_of, plus_seconds
from spark_jobs.transforms.inventory import DUE_EVERY_S

KEY = ["store_id", "window_start"]


def build(readings: DataFrame, inventory: DataFrame, expected: DataFrame, frontiers: DataFrame, settings: Settings) -> DataFrame:
    """All minutes of the stores whose readings are given."""
    measured = measures_per_minute(readings, inventory, settings).transform(with_expected, expected)
    silent = silent_minutes(measured, frontiers, settings).transform(with_expected, expected)
    return measured.unionByName(silent, allowMissingColumns=True).transform(with_finality, frontiers)


def measures_per_minute(readings: DataFrame, inventory: DataFrame, settings: Settings) -> DataFrame:
    """One row for each (store, minute) that has readings. Sums are of whole thousandths, so any order gives the same."""
    per_sensor = (
        readings.groupBy("store_id", minute_of(F.col("event_ts")).alias("window_start"), "sensor_id")
        .agg(
            F.count("*").alias("readings"),
            F.sum(F.col("temperature_mc").cast("bigint")).alias("sum_mc"),
            F.min("temperature_mc").alias("min_mc"),
            F.max("temperature_mc").alias("max_mc"),
            F.count_if("door_open").alias("open"),
            F.count("door_open").alias("says"),
            F.count_if("is_late").alias("late_rows"),
            F.max("event_ts").alias("last_reading_at"),
        )
        .transform(with_is_expected, inventory, settings)
    )
    return per_sensor.groupBy(*KEY).agg(
        F.sum("readings").alias("readings"),
        F.count("*").alias("sensors_reporting"),
        F.count_if("is_expected").alias("expected_reporting"),
        ((F.sum("sum_mc") / F.sum("readings")) / 1000).alias("temperature_avg_c"),
        (F.min("min_mc") / 1000).alias("temperature_min_c"),
        (F.max("max_mc") / 1000).alias("temperature_max_c"),
        F.when(F.sum("says") > 0, F.sum("open") / F.sum("says")).alias("door_open_share"),
        F.sum("late_rows").alias("late_rows"),
        F.max("last_reading_at").alias("last_reading_at"),
    )


def with_is_expected(per_sensor: DataFrame, inventory: DataFrame, settings: Settings) -> DataFrame:
    """Whether the store waits for the sensor in this minute; one that the inventory does not know is waited for once it has spoken."""
    known = inventory.select("sensor_id", F.col("store_id").alias("home"), "active_from", "retired_at", "is_due")
    is_known = F.col("home").isNotNull()
    waited_for = F.col("is_due") & (F.col("home") == F.col("store_id")) & _is_active(F.col("active_from"), F.col("retired_at"))
    is_expected = F.when(is_known, waited_for).otherwise(F.lit(settings.expected_every_s <= DUE_EVERY_S))
    return per_sensor.join(F.broadcast(known), "sensor_id", "left").withColumn("is_expected", is_expected)


def silent_minutes(measured: DataFrame, frontiers: DataFrame, settings: Settings) -> DataFrame:
    """The final minutes without a reading, as long as they start less than `silent_store_hours` after the last one."""
    next_start = F.lead("window_start").over(Window.partitionBy("store_id").orderBy("window_start"))
    last_final = plus_seconds(minute_of(F.col("final_until")), -60)
    # The last minute that starts before the limit: a minute that starts at the limit itself is not written down any more.
    limit = plus_seconds(F.col("last_reading_at"), settings.silent_store_hours * 3600)
    last_heard = minute_of(F.timestamp_micros(F.unix_micros(limit) - 1))
    gaps = (
        measured.select(*KEY, "last_reading_at", next_start.alias("next_start"))
        .join(F.broadcast(frontiers.select("store_id", "final_until")), "store_id")
        .withColumn("first", plus_seconds(F.col("window_start"), 60))
        .withColumn("last", F.least(plus_seconds(F.col("next_start"), -60), last_final, last_heard))
        .filter("first <= last")
    )
    minutes = F.sequence("first", "last", F.expr("INTERVAL 1 MINUTE"))
    nothing = F.lit(0).cast("bigint")
    return gaps.select("store_id", F.explode(minutes).alias("window_start")).select(
        *KEY, *(nothing.alias(name) for name in ("readings", "sensors_reporting", "expected_reporting", "late_rows"))
    )


def with_expected(minutes: DataFrame, expected: DataFrame) -> DataFrame:
    """How many sensors are due in the minute, and the share of them that reported."""
    spans = expected.groupBy("store_id", "expected_from", "expected_to").agg(F.count("*").alias("sensors"))
    per_store = spans.groupBy("store_id").agg(F.collect_list(F.struct("expected_from", "expected_to", "sensors")).alias("spans"))
    due = F.aggregate(
        "spans",
        F.lit(0).cast("bigint"),
        lambda total, span: total + F.when(_is_active(span["expected_from"], span["expected_to"]), span["sensors"]).otherwise(0),
    )
    return (
        minutes.join(F.broadcast(per_store), "store_id", "left")
        .withColumn("sensors_expected", F.coalesce(due, F.lit(0).cast("bigint")))
        .withColumn("completeness", F.when(F.col("sensors_expected") > 0, F.col("expected_reporting") / F.col("sensors_expected")))
        .drop("spans", "expected_reporting")
    )


def with_finality(minutes: DataFrame, frontiers: DataFrame) -> DataFrame:
    ends = plus_seconds(F.col("window_start"), 60)
    return (
        minutes.withColumn("window_end", ends)
        .withColumn("window_date", F.to_date("window_start"))
        .join(F.broadcast(frontiers.select("store_id", "final_until")), "store_id")
        .withColumn("is_final", F.col("window_end") <= F.col("final_until"))
        .drop("final_until")
    )


def _is_active(since: Column, until: Column) -> Column:
    """At any moment of the minute; an empty end is open."""
    starts, ends = F.col("window_start"), plus_seconds(F.col("window_start"), 60)
    return (since.isNull() | (since < ends)) & (until.isNull() | (until > starts))
