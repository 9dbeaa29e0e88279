"""store_minutes: what a store reported in one minute of event time; a silent minute is a row too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.transforms.event_time import minute_of, plus_seconds
from spark_jobs.transforms.inventory import DUE_EVERY_S, Expectation, Inventory

KEY = ["store_id", "window_start"]
COUNTS = ("readings", "sensors_reporting", "expected_reporting", "late_rows")
MEASURES = ("temperature_avg_c", "temperature_min_c", "temperature_max_c", "door_open_share", "last_reading_at")

# What the minutes of a store need to know about it: how far it is final, whom it waits for (sensors with the same span together),
# and from when on that is other than was published.
STORES = (
    "store_id string, final_until timestamp, spans array<struct<since: timestamp, until: timestamp, sensors: bigint>>, anew_from timestamp"
)
INVENTORY = "sensor_id string, home string, active_from timestamp, retired_at timestamp, is_due boolean"


def stores(
    final_until: Mapping[str, datetime], expected: Iterable[Expectation], anew_from: Mapping[str, datetime]
) -> list[tuple[Any, ...]]:
    """The rows of a frame of STORES."""
    spans: dict[str, Counter[tuple[datetime | None, datetime | None]]] = {store_id: Counter() for store_id in final_until}
    for each in expected:
        spans.setdefault(each.store_id, Counter())[each.since, each.until] += 1
    return [
        (store_id, until, [{"since": since, "until": end, "sensors": count} for (since, end), count in spans[store_id].items()], anew_from.get(store_id))
        for store_id, until in final_until.items()
    ]  # fmt: skip


def inventory_rows(inventory: Inventory) -> list[tuple[Any, ...]]:
    """The rows of a frame of INVENTORY."""
    return [(known.sensor_id, known.store_id, known.active_from, known.retired_at, known.is_due) for known in inventory.values()]


def build(minutes: DataFrame, stores: DataFrame, settings: Settings) -> DataFrame:
    """All minutes, given those that have been measured; published ones among them keep what they say, but for what the store's
    expectations and frontier change in them."""
    return (
        minutes.join(F.broadcast(stores), "store_id")
        .transform(with_silent_minutes, settings)
        .transform(with_expected)
        .withColumns(
            {
                "window_end": plus_seconds(F.col("window_start"), 60),
                "window_date": F.to_date("window_start"),
                "is_final": plus_seconds(F.col("window_start"), 60) <= F.col("final_until"),
            }
        )
    )


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
    is_known = F.col("home").isNotNull()
    waited_for = F.col("is_due") & (F.col("home") == F.col("store_id")) & _is_active(F.col("active_from"), F.col("retired_at"))
    is_expected = F.when(is_known, waited_for).otherwise(F.lit(settings.expected_every_s <= DUE_EVERY_S))
    return per_sensor.join(F.broadcast(inventory), "sensor_id", "left").withColumn("is_expected", is_expected)


def with_silent_minutes(minutes: DataFrame, settings: Settings) -> DataFrame:
    """Each minute, and the final ones without a reading that follow it, as long as they start less than `silent_store_hours`
    after the last reading before them."""
    in_order = Window.partitionBy("store_id").orderBy("window_start")
    last_final = plus_seconds(minute_of(F.col("final_until")), -60)
    # The last minute that starts before the limit: a minute that starts at the limit itself is not written down any more.
    # Where the last reading lies before the minutes at hand, the limit is over, or all up to it has been written down.
    limit = plus_seconds(F.last("last_reading_at", ignorenulls=True).over(in_order), settings.silent_store_hours * 3600)
    last_heard = F.coalesce(minute_of(F.timestamp_micros(F.unix_micros(limit) - 1)), "window_start")
    before_next = plus_seconds(F.lead("window_start").over(in_order), -60)
    until = F.greatest(F.col("window_start"), F.least(before_next, last_final, last_heard))
    spread = minutes.withColumn("until", until).withColumn(
        "minute", F.explode(F.sequence("window_start", "until", F.expr("INTERVAL 1 MINUTE")))
    )
    is_itself = F.col("minute") == F.col("window_start")
    return spread.select(
        "store_id",
        F.col("minute").alias("window_start"),
        *(F.when(is_itself, F.col(name)).otherwise(0).alias(name) for name in COUNTS),
        *(F.when(is_itself, F.col(name)).alias(name) for name in (*MEASURES, "sensors_expected", "completeness")),
        "final_until",
        "spans",
        "anew_from",
    )


def with_expected(minutes: DataFrame) -> DataFrame:
    """How many sensors are due in the minute, and the share of them that reported. Published minutes keep theirs, but where the
    store waits for someone new."""
    due = F.aggregate(
        "spans",
        F.lit(0).cast("bigint"),
        lambda total, span: total + F.when(_is_active(span["since"], span["until"]), span["sensors"]).otherwise(0),
    )
    keeps = F.col("sensors_expected").isNotNull() & ~F.coalesce(plus_seconds(F.col("window_start"), 60) > F.col("anew_from"), F.lit(False))
    reported = F.coalesce("expected_reporting", F.rint(F.col("completeness") * F.col("sensors_expected")).cast("bigint"), F.lit(0))
    return (
        minutes.withColumns({"keeps": keeps, "due": due, "reported": reported})
        .withColumns(
            {
                "sensors_expected": F.when(F.col("keeps"), F.col("sensors_expected")).otherwise(F.col("due")),
                "completeness": F.when(F.col("keeps"), F.col("completeness")).when(F.col("due") > 0, F.col("reported") / F.col("due")),
            }
        )
        .drop("keeps", "due", "reported", "spans", "anew_from", "expected_reporting")
    )


def _is_active(since: Column, until: Column) -> Column:
    """At any moment of the minute; an empty end is open."""
    starts, ends = F.col("window_start"), plus_seconds(F.col("window_start"), 60)
    return (since.isNull() | (since < ends)) & (until.isNull() | (until > starts))
