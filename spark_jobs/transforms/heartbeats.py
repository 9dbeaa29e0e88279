"""heartbeats: one row for each sensor in the inventory or ever seen, and whether it reports."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Clock
from spark_jobs.transforms.sensor_stores import WORDS


def last_words(recent: DataFrame) -> DataFrame:
    """Per sensor, over all stores it has spoken from: its first reading's time, and its last reading."""
    return recent.groupBy("sensor_id").agg(
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.max_by("words", "last_seen_at").alias("words"),
    )


def merged(published: DataFrame, recent: DataFrame) -> DataFrame:
    """What was known before, and what the new readings add; a reading that was replaced counts as it is now."""
    before = published.filter("last_seen_at is not null").select(
        "sensor_id", "first_seen_at", "last_seen_at", F.struct(*WORDS).alias("words"), F.lit(0).alias("is_recent")
    )
    both = before.unionByName(recent.withColumn("is_recent", F.lit(1)))
    return both.groupBy("sensor_id").agg(
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.max_by("words", F.struct("last_seen_at", "is_recent")).alias("words"),
    )


def with_inventory(words: DataFrame, inventory: DataFrame, clock: Clock) -> DataFrame:
    """Every sensor with its timeout, and whether its last silence is an outage. Retired comes before all others."""
    sensors = words.join(inventory.withColumnRenamed("store_id", "home"), "sensor_id", "full")
    is_retired = F.coalesce(F.col("retired_at") <= F.lit(clock.as_of), F.lit(False))
    timeout = F.coalesce("silent_after_s", F.lit(clock.settings.silent_after_s).cast("bigint"))
    judged_until = F.when(is_retired, F.least(F.col("retired_at"), F.lit(clock.heard_until))).otherwise(F.lit(clock.heard_until))
    silence_us = F.unix_micros(judged_until) - F.unix_micros("last_seen_at")
    return (
        sensors.select("*", *(F.col(f"words.{name}").alias(name) for name in WORDS))
        .withColumn("silent_after_s", timeout)
        .withColumn("is_retired", is_retired)
        .withColumn("store_id", F.coalesce("home", "last_store_id"))
        .withColumn("is_silent", F.coalesce(silence_us > timeout * 1_000_000, F.lit(False)))
        .withColumn("status", _status())
        .drop("words")
    )


def _status() -> Column:
    return (
        F.when(F.col("is_retired"), "retired")
        .when(F.col("last_seen_at").isNull(), "never_reported")
        .when(F.col("is_silent"), "silent")
        .otherwise("reporting")
    )


def build(sensors: DataFrame, outages: DataFrame, clock: Clock) -> DataFrame:
    """The table's rows; a silent sensor has the start and the cause of its open outage."""
    open_outages = outages.filter("ended_at is null").select("sensor_id", F.col("started_at").alias("silent_since"), "cause")
    is_silent = F.col("status") == "silent"
    return (
        sensors.join(open_outages, "sensor_id", "left")
        .withColumn("silent_since", F.when(is_silent, F.col("silent_since")))
        .withColumn("cause", F.when(is_silent, F.col("cause")))
        .withColumn("as_of", F.lit(clock.as_of))
    )
