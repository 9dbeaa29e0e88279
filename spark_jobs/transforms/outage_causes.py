"""Why a sensor was silent (P14): `input` when all of all stores were, `store` when all of its store were, else `sensor`.

A sweep over time: at each moment when someone is first waited for, retires, falls silent or returns, count who is waited
for and how many of them are in an outage. Where the two are equal, it is dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.transforms.inventory import Expectation

WAITED_FOR = "store_id string, sensor_id string, since timestamp, until timestamp"


def waited_for(expected: Iterable[Expectation], first_heard: Mapping[str, datetime]) -> list[tuple[Any, ...]]:
    """The rows of a frame of WAITED_FOR: from its first reading on a sensor is waited for, as long as it is active."""
    spans = []
    for each in expected:
        if heard := first_heard.get(each.sensor_id):
            since = heard if each.since is None else max(each.since, heard)
            if each.until is None or since < each.until:
                spans.append((each.store_id, each.sensor_id, since, each.until))
    return spans


def with_cause(outages: DataFrame, waited_for: DataFrame) -> DataFrame:
    counts = counts_per_store(outages, waited_for)
    dark_input = _dark(counts_of_all(counts), F.col("stores") >= 2).crossJoin(F.broadcast(outages.select("store_id").distinct()))
    dark = _dark(counts, F.col("expected") >= 2, "store_id").withColumn("rank", F.lit(1))
    dark = dark.unionByName(dark_input.withColumn("rank", F.lit(2))).withColumnRenamed("store_id", "dark_store_id")
    overlap = (F.col("dark_until").isNull() | (F.col("started_at") < F.col("dark_until"))) & (
        F.col("ended_at").isNull() | (F.col("dark_from") < F.col("ended_at"))
    )
    ranked = (
        outages.join(dark, (F.col("store_id") == F.col("dark_store_id")) & overlap, "left")
        .groupBy(*outages.columns)
        .agg(F.max("rank").alias("rank"))
    )
    cause = F.when(F.col("rank") == 2, "input").when(F.col("rank") == 1, "store").otherwise("sensor")
    return ranked.select(*outages.columns, cause.alias("cause"))


def counts_per_store(outages: DataFrame, waited_for: DataFrame) -> DataFrame:
    """Per store and moment of change: how many sensors are waited for from then on, and how many of them are in an outage."""
    silent = waited_for.join(outages.select("sensor_id", "started_at", "ended_at"), "sensor_id").select(
        "store_id", F.greatest("since", "started_at").alias("since"), F.least("until", "ended_at").alias("until")
    )
    steps = (
        _steps(waited_for, expected=1, silent=0)
        .unionByName(_steps(silent.filter("until is null or since < until"), expected=0, silent=1))
        .groupBy("store_id", "at")
        .agg(F.sum("expected").alias("d_expected"), F.sum("silent").alias("d_silent"))
    )
    so_far = Window.partitionBy("store_id").orderBy("at")
    counts = steps.withColumns(
        {
            "expected": F.sum("d_expected").over(so_far),
            "silent": F.sum("d_silent").over(so_far),
            "until": F.lead("at").over(so_far),
        }
    )
    waits = (F.col("expected") > 0).cast("int")
    return counts.withColumn("d_stores", waits - F.coalesce(F.lag(waits).over(so_far), F.lit(0)))


def counts_of_all(counts: DataFrame) -> DataFrame:
    """The same over all stores, and how many stores wait for anyone."""
    steps = counts.groupBy("at").agg(*(F.sum(f"d_{name}").alias(name) for name in ("expected", "silent", "stores")))
    so_far = Window.orderBy("at")
    return steps.select(
        "at", *(F.sum(name).over(so_far).alias(name) for name in ("expected", "silent", "stores")), F.lead("at").over(so_far).alias("until")
    )


def _steps(spans: DataFrame, expected: int, silent: int) -> DataFrame:
    starts = spans.select("store_id", F.col("since").alias("at"), F.lit(expected).alias("expected"), F.lit(silent).alias("silent"))
    ends = spans.filter("until is not null").select(
        "store_id", F.col("until").alias("at"), F.lit(-expected).alias("expected"), F.lit(-silent).alias("silent")
    )
    return starts.unionByName(ends)


def _dark(counts: DataFrame, enough: Column, *columns: str) -> DataFrame:
    return counts.filter(enough & (F.col("silent") == F.col("expected"))).select(
        *columns, F.col("at").alias("dark_from"), F.col("until").alias("dark_until")
    )
