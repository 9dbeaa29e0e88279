"""What the checks judge, counted once by the job that has the rows at hand: keys, ranges, completeness, reconciliation, freshness."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import TABLES
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import day
from spark_jobs.runtime.lake import Lake
from spark_jobs.transforms import outages

Measures = dict[str, dict[str, Any]]


def take(lake: Lake, derived: Derivation, staged: dict[str, DataFrame]) -> Measures:
    measures = _keys_and_ranges(staged, lake.settings)
    measures["store_minutes"] |= _completeness(staged["store_minutes"])
    measures["store_minutes"]["unaccounted"] = _unaccounted(lake, derived, staged["store_minutes"])
    measures["readings"] = _readings(derived)
    return measures


def _keys_and_ranges(staged: dict[str, DataFrame], settings: Settings) -> Measures:
    counts = []
    for table, changes in staged.items():
        is_odd = F.count_if(~F.coalesce(_is_sane(table, settings), F.lit(False)))
        per_key = changes.filter("change <> 'delete'").groupBy(*TABLES[table].key).agg(F.count("*").alias("rows"), is_odd.alias("odd"))
        counts.append(
            per_key.agg(
                F.lit(table).alias("table"), *(F.coalesce(F.sum(F.expr(each)), F.lit(0)).alias(name) for name, each in _SUMS.items())
            )
        )
    return {row.table: {name: row[name] for name in _SUMS} for row in reduce(DataFrame.unionByName, counts).collect()}


_SUMS = {"doubled_keys": "rows - 1", "out_of_range": "odd"}


def _is_sane(table: str, settings: Settings) -> Column:
    low, high = settings.lowest_temperature_c, settings.highest_temperature_c
    is_open = F.col("status") == "open"
    silent_minute = F.col("temperature_avg_c").isNull() & (F.col("sensors_reporting") == 0) & (F.col("late_rows") == 0)
    spoken_minute = F.col("temperature_min_c").between(low, high) & F.col("temperature_max_c").between(low, high)
    return {
        "sensor_stores": F.col("first_seen_at") <= F.col("last_seen_at"),
        "store_minutes": F.coalesce(F.col("completeness").between(0, 1), F.col("sensors_expected") == 0)
        & F.when(F.col("readings") == 0, silent_minute).otherwise(
            spoken_minute & (F.col("sensors_reporting").between(1, F.col("readings")))
        ),
        "heartbeats": F.col("status").isin("reporting", "never_reported", "retired")
        | ((F.col("status") == "silent") & F.col("silent_since").isNotNull() & F.col("cause").isNotNull()),
        "outages": F.coalesce(F.col("ended_at") > F.col("started_at"), F.lit(True)) & F.col("cause").isin("sensor", "store", "input"),
        "alerts": (is_open == F.col("ended_at").isNull()) & F.coalesce(F.col("ended_at") >= F.col("started_at"), F.lit(True)),
    }[table]


def _completeness(staged: DataFrame) -> dict[str, Any]:
    """Among the final minutes that the run touched: the share of expected reports that came."""
    minutes = staged.filter("is_final and sensors_expected > 0 and change <> 'delete'")
    share = F.sum(F.col("completeness") * F.col("sensors_expected")) / F.sum("sensors_expected")
    row = (
        minutes.groupBy("store_id")
        .agg(share.alias("share"), F.sum("sensors_expected").alias("due"))
        .agg(
            (F.sum(F.col("share") * F.col("due")) / F.sum("due")).alias("all"),
            F.min_by("store_id", "share").alias("worst"),
            F.min("share").alias("least"),
        )
    )
    found = row.collect()[0]
    return {"completeness": found["all"], "by_store": {found.worst: found.least} if found.worst is not None else {}}


def _unaccounted(lake: Lake, derived: Derivation, staged: DataFrame) -> int:
    """Readings of the touched days, less those that the minutes of these days will count once published."""
    days = {row.window_date for row in staged.select("window_date").distinct().collect() if row.window_date is not None}
    days |= {day(hour) for hour in derived.changes.hours}
    if not days:
        return 0
    after = (
        lake.read("store_minutes")
        .filter(F.col("window_date").isin(sorted(days)))
        .join(staged, list(TABLES["store_minutes"].key), "left_anti")
    )
    in_minutes = (
        after.select("readings")
        .unionByName(staged.filter("change <> 'delete'").select("readings"))
        .agg(F.coalesce(F.sum("readings"), F.lit(0)))
    )
    there = derived.readings.filter(F.col("event_date").isin(sorted(days))).count()
    return int(there - in_minutes.collect()[0][0])


def _readings(derived: Derivation) -> dict[str, Any]:
    settings = derived.settings
    low, high = round(settings.lowest_temperature_c * 1000), round(settings.highest_temperature_c * 1000)
    newest = derived.sensor_stores.agg(F.max("last_seen_at").alias("newest"))
    odd = derived.recent.agg(F.count_if(~F.col("lowest_mc").between(low, high) | ~F.col("highest_mc").between(low, high)).alias("odd"))
    doubled = derived.notable.agg(F.count_if(outages.is_doubled()).alias("doubled"))
    row = newest.crossJoin(odd).crossJoin(doubled).collect()[0]
    age = None if row.newest is None else max(0.0, derived.clock.as_of.timestamp() - row.newest.timestamp())
    return {"doubled_keys": row.doubled, "out_of_range": row.odd, "age_s": age}
