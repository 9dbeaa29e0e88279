"""What the checks judge, counted once by the job that has the rows at hand: keys, ranges, completeness, reconciliation, freshness."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import TABLES
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import day
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.small_tables import Row
from spark_jobs.transforms import outages

Measures = dict[str, dict[str, Any]]


def take(lake: Lake, derived: Derivation, staged: dict[str, DataFrame], small: dict[str, list[Row]]) -> Measures:
    measures: Measures = {table: _of_rows(table, rows) for table, rows in small.items()}
    measures["store_minutes"] = _of_minutes(lake, derived, staged["store_minutes"])
    for table in ("outages", "alerts"):
        measures[table] = _of_changes(table, staged[table]) if table in staged else {"doubled_keys": 0, "out_of_range": 0}
    measures["readings"] = _of_readings(derived)
    return measures


def _of_rows(table: str, rows: list[Row]) -> dict[str, Any]:
    keys = {tuple(row[name] for name in TABLES[table].key) for row in rows}
    is_sane = _is_sane_stay if table == "sensor_stores" else _is_sane_heartbeat
    return {"doubled_keys": len(rows) - len(keys), "out_of_range": sum(not is_sane(row) for row in rows)}


def _is_sane_stay(row: Row) -> bool:
    return bool(row["first_seen_at"] <= row["last_seen_at"])


def _is_sane_heartbeat(row: Row) -> bool:
    if row["status"] == "silent":
        return row["silent_since"] is not None and row["cause"] in ("sensor", "store", "input")
    return row["status"] in ("reporting", "never_reported", "retired")


def _of_changes(table: str, staged: DataFrame) -> dict[str, Any]:
    is_odd = F.count_if(~F.coalesce(_is_sane_change(table), F.lit(False)))
    per_key = staged.filter("change <> 'delete'").groupBy(*TABLES[table].key).agg(F.count("*").alias("rows"), is_odd.alias("odd"))
    row = per_key.agg(F.sum(F.col("rows") - 1).alias("doubled"), F.sum("odd").alias("odd")).collect()[0]
    return {"doubled_keys": row.doubled or 0, "out_of_range": row.odd or 0}


def _is_sane_change(table: str) -> Column:
    ends_after_start = F.coalesce(F.col("ended_at") >= F.col("started_at"), F.lit(True))
    if table == "outages":
        return ends_after_start & ~F.col("ended_at").eqNullSafe(F.col("started_at")) & F.col("cause").isin("sensor", "store", "input")
    return ends_after_start & ((F.col("status") == "open") == F.col("ended_at").isNull())


def _of_minutes(lake: Lake, derived: Derivation, staged: DataFrame) -> dict[str, Any]:
    """Keys and ranges; completeness among the final minutes that the run touched: the share of expected reports that came."""
    is_judged = F.col("is_final") & (F.col("sensors_expected") > 0)
    per_store = (
        staged.filter("change <> 'delete'")
        .groupBy("store_id")
        .agg(
            (F.count("*") - F.count_distinct("window_start")).alias("doubled"),
            F.count_if(~F.coalesce(_is_sane_minute(lake.settings), F.lit(False))).alias("odd"),
            F.sum(F.when(is_judged, F.col("completeness") * F.col("sensors_expected"))).alias("came"),
            F.sum(F.when(is_judged, F.col("sensors_expected"))).alias("due"),
            F.sum("readings").alias("readings"),
            F.collect_set("window_date").alias("days"),
        )
    )
    stores = per_store.collect()
    due = sum(row.due or 0 for row in stores)
    shares = {row.store_id: row.came / row.due for row in stores if row.due}
    worst = min(shares, key=lambda store_id: shares[store_id], default=None)
    days = {date for row in stores for date in row.days} | {day(hour) for hour in derived.changes.hours}
    return {
        "doubled_keys": sum(row.doubled for row in stores),
        "out_of_range": sum(row.odd for row in stores),
        "completeness": sum(row.came or 0 for row in stores) / due if due else None,
        "by_store": {worst: shares[worst]} if worst is not None else {},
        "unaccounted": _unaccounted(lake, derived, staged, sorted(days), sum(row.readings for row in stores)),
    }


def _is_sane_minute(settings: Settings) -> Column:
    low, high = settings.lowest_temperature_c, settings.highest_temperature_c
    silent = F.col("temperature_avg_c").isNull() & (F.col("sensors_reporting") == 0) & (F.col("late_rows") == 0)
    spoken = F.col("temperature_min_c").between(low, high) & F.col("temperature_max_c").between(low, high)
    spoken = spoken & F.col("sensors_reporting").between(1, F.col("readings"))
    completeness = F.coalesce(F.col("completeness").between(0, 1), F.col("sensors_expected") == 0)
    return completeness & F.when(F.col("readings") == 0, silent).otherwise(spoken)


def _unaccounted(lake: Lake, derived: Derivation, staged: DataFrame, days: list[Any], in_staged: int) -> int:
    """Readings of the touched days, less those that the minutes of these days will count once published."""
    if not days:
        return 0
    published = lake.read("store_minutes").filter(F.col("window_date").isin(days))
    stay = published.join(staged, list(TABLES["store_minutes"].key), "left_anti").agg(F.sum("readings").alias("readings"))
    there = derived.readings.filter(F.col("event_date").isin(days)).agg(F.count("*").alias("readings"))
    in_others, in_readings = (row.readings or 0 for row in stay.unionAll(there).collect())
    return int(in_readings - in_others - in_staged)


def _of_readings(derived: Derivation) -> dict[str, Any]:
    settings, heard = derived.settings, derived.changes.heard
    low, high = round(settings.lowest_temperature_c * 1000), round(settings.highest_temperature_c * 1000)
    newest = max((stay.last_seen_at for stay in derived.stays.values()), default=None)
    return {
        "doubled_keys": 0 if derived.is_quiet else derived.notable.filter(outages.is_doubled()).count(),
        "out_of_range": sum(each.lowest_mc < low or each.highest_mc > high for each in heard),
        "age_s": None if newest is None else max(0.0, (derived.clock.as_of - newest).total_seconds()),
    }
