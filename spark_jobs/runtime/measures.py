"""What the checks judge, counted once by the job that has the rows at hand: keys, ranges, completeness, reconciliation, freshness."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import TABLES
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import HOUR_S
from spark_jobs.runtime.lake import Lake
from spark_jobs.transforms import outages

Measures = dict[str, dict[str, Any]]


def take(lake: Lake, derived: Derivation, staged: dict[str, DataFrame]) -> Measures:
    measures: Measures = {table: _keys_and_ranges(table, rows, lake.settings) for table, rows in staged.items()}
    measures["store_minutes"] |= _completeness(staged["store_minutes"])
    measures["store_minutes"]["unaccounted"] = _unaccounted(lake, derived, staged["store_minutes"])
    measures["readings"] = _readings(derived)
    return measures


def _keys_and_ranges(table: str, staged: DataFrame, settings: Settings) -> dict[str, Any]:
    rows = staged.filter("change <> 'delete'")
    sane = _is_sane(table, settings)
    row = rows.agg(F.count("*").alias("rows"), F.countDistinct(*TABLES[table].key).alias("keys"), F.count_if(~F.coalesce(sane, F.lit(False))).alias("odd")).collect()[0]
    return {"rows": row["rows"], "doubled_keys": row["rows"] - row["keys"], "out_of_range": row["odd"]}


def _is_sane(table: str, settings: Settings) -> Column:
    low, high = settings.lowest_temperature_c, settings.highest_temperature_c
    is_open = F.col("status") == "open"
    silent_minute = F.col("temperature_avg_c").isNull() & (F.col("sensors_reporting") == 0) & (F.col("late_rows") == 0)
    spoken_minute = F.col("temperature_min_c").between(low, high) & F.col("temperature_max_c").between(low, high)
    return {
        "sensor_stores": F.col("first_seen_at") <= F.col("last_seen_at"),
        "store_minutes": F.coalesce(F.col("completeness").between(0, 1), F.col("sensors_expected") == 0)
        & F.when(F.col("readings") == 0, silent_minute).otherwise(spoken_minute & (F.col("sensors_reporting").between(1, F.col("readings")))),
        "heartbeats": F.col("status").isin("reporting", "never_reported", "retired")
        | ((F.col("status") == "silent") & F.col("silent_since").isNotNull() & F.col("cause").isNotNull()),
        "outages": F.coalesce(F.col("ended_at") > F.col("started_at"), F.lit(True)) & F.col("cause").isin("sensor", "store", "input"),
        "alerts": (is_open == F.col("ended_at").isNull()) & F.coalesce(F.col("ended_at") >= F.col("started_at"), F.lit(True)),
    }[table]


def _completeness(staged: DataFrame) -> dict[str, Any]:
    """Among the final minutes that the run touched: the share of expected reports that came."""
    minutes = staged.filter("is_final and sensors_expected > 0 and change <> 'delete'")
    share = F.sum(F.col("completeness") * F.col("sensors_expected")) / F.sum("sensors_expected")
    row = minutes.groupBy("store_id").agg(share.alias("share"), F.sum("sensors_expected").alias("due")).agg(
        (F.sum(F.col("share") * F.col("due")) / F.sum("due")).alias("all"), F.min_by("store_id", "share").alias("worst"), F.min("share").alias("least")
    )
    found = row.collect()[0]
    return {"completeness": found["all"], "by_store": {found.worst: found.least} if found.worst is not None else {}}


def _unaccounted(lake: Lake, derived: Derivation, staged: DataFrame) -> int:
    """Readings of the touched days, less those that the minutes of these days will count once published."""
    days = {row.window_date for row in staged.select("window_date").distinct().collect() if row.window_date is not None}
    days |= {row.day for row in _days(derived).collect()}
    if not days:
        return 0
    after = lake.read("store_minutes").filter(F.col("window_date").isin(sorted(days))).join(staged, list(TABLES["store_minutes"].key), "left_anti")
    in_minutes = after.select("readings").unionByName(staged.filter("change <> 'delete'").select("readings")).agg(F.coalesce(F.sum("readings"), F.lit(0)))
    there = derived.readings.filter(F.col("event_date").isin(sorted(days))).count()
    return int(there - in_minutes.collect()[0][0])


def _days(derived: Derivation) -> DataFrame:
    hours = derived.lake.spark.createDataFrame([(hour,) for hour in derived.changes.hours], "hour bigint")
    return hours.select(F.to_date(F.timestamp_seconds(F.col("hour") * HOUR_S)).alias("day")).distinct()


def _readings(derived: Derivation) -> dict[str, Any]:
    settings = derived.settings
    newest = derived.sensor_stores.agg(F.max("last_seen_at").alias("at")).collect()[0]["at"]
    low, high = round(settings.lowest_temperature_c * 1000), round(settings.highest_temperature_c * 1000)
    odd = derived.recent.filter(~(F.col("lowest_mc") >= low) | ~(F.col("highest_mc") <= high)).count()
    doubled = derived.notable.filter(outages.is_doubled()).count()
    age = None if newest is None else max(0.0, derived.clock.as_of.timestamp() - newest.timestamp())
    return {"doubled_keys": doubled, "out_of_range": odd, "age_s": age}
