"""Why a sensor was silent (P14): `input` when all of all stores were, `store` when all of its store were, else `sensor`.

A sweep over time: at each moment when someone is first waited for, retires, falls silent or returns, count who is waited
for and how many of them are in an outage. Where the two are equal, it is dark.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def with_cause(outages: DataFrame, expected: DataFrame, sensors: DataFrame) -> DataFrame:
    """`expected` are the stores' expectations, `sensors` tells when each sensor was first heard."""
    counts = counts_per_store(outages, waited_for(expected, sensors))
    dark_stores = _dark(counts, F.col("expected") >= 2, F.col("store_id").alias("dark_store_id"))
    dark_input = _dark(counts_of_all(counts), F.col("stores") >= 2)
    in_dark_store = _overlapping(outages, dark_stores, F.col("store_id") == F.col("dark_store_id"))
    in_dark_input = _overlapping(outages, dark_input, F.lit(True))
    key = ["sensor_id", "started_at"]
    return (
        outages.join(in_dark_input.withColumn("in_input", F.lit(True)), key, "left")
        .join(in_dark_store.withColumn("in_store", F.lit(True)), key, "left")
        .withColumn("cause", F.when(F.col("in_input"), "input").when(F.col("in_store"), "store").otherwise("sensor"))
        .drop("in_input", "in_store")
    )


def waited_for(expected: DataFrame, sensors: DataFrame) -> DataFrame:
    """From its first reading on a sensor is waited for, as long as it is active."""
    heard = sensors.filter("first_seen_at is not null").select("sensor_id", F.col("first_seen_at").alias("first_heard_at"))
    since = F.greatest("expected_from", "first_heard_at")  # an empty start is passed over
    return expected.join(heard, "sensor_id").withColumn("expected_from", since).filter("expected_to is null or expected_from < expected_to")


def counts_per_store(outages: DataFrame, expected: DataFrame) -> DataFrame:
    """Per store and moment of change: how many sensors are waited for from then on, and how many of them are in an outage."""
    silent = expected.join(outages.select("sensor_id", "started_at", "ended_at"), "sensor_id").select(
        "store_id", F.greatest("expected_from", "started_at").alias("since"), F.least("expected_to", "ended_at").alias("until")
    )
    waited = expected.select("store_id", F.col("expected_from").alias("since"), F.col("expected_to").alias("until"))
    steps = (
        _steps(waited, expected=1, silent=0)
        .unionByName(_steps(silent.filter("until is null or since < until"), expected=0, silent=1))
        .groupBy("store_id", "at")
        .agg(F.sum("expected").alias("expected"), F.sum("silent").alias("silent"))
    )
    so_far = Window.partitionBy("store_id").orderBy("at")
    return (
        steps.withColumn("d_expected", F.col("expected"))
        .withColumn("d_silent", F.col("silent"))
        .withColumn("expected", F.sum("expected").over(so_far))
        .withColumn("silent", F.sum("silent").over(so_far))
        .withColumn("d_stores", _has_any("expected") - F.coalesce(F.lag(_has_any("expected")).over(so_far), F.lit(0)))
        .withColumn("until", F.lead("at").over(so_far))
    )


def counts_of_all(counts: DataFrame) -> DataFrame:
    """The same over all stores, and how many stores wait for anyone."""
    steps = counts.groupBy("at").agg(*(F.sum(f"d_{name}").alias(name) for name in ("expected", "silent", "stores")))
    so_far = Window.orderBy("at")
    return steps.select(
        "at", *(F.sum(name).over(so_far).alias(name) for name in ("expected", "silent", "stores")), F.lead("at").over(so_far).alias("until")
    )


def _has_any(name: str) -> Column:
    return (F.col(name) > 0).cast("int")


def _steps(spans: DataFrame, expected: int, silent: int) -> DataFrame:
    starts = spans.select("store_id", F.col("since").alias("at"), F.lit(expected).alias("expected"), F.lit(silent).alias("silent"))
    ends = spans.filter("until is not null").select(
        "store_id", F.col("until").alias("at"), F.lit(-expected).alias("expected"), F.lit(-silent).alias("silent")
    )
    return starts.unionByName(ends)


def _dark(counts: DataFrame, enough: Column, *columns: Column) -> DataFrame:
    return counts.filter(enough & (F.col("silent") == F.col("expected"))).select(
        *columns, F.col("at").alias("dark_from"), F.col("until").alias("dark_until")
    )


def _overlapping(outages: DataFrame, dark: DataFrame, where: Column) -> DataFrame:
    overlap = (F.col("dark_until").isNull() | (F.col("started_at") < F.col("dark_until"))) & (
        F.col("ended_at").isNull() | (F.col("dark_from") < F.col("ended_at"))
    )
    return outages.join(F.broadcast(dark), where & overlap, "left_semi").select("sensor_id", "started_at")
