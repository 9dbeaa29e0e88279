"""What the checks judge, counted from what is staged: keys, ranges, completeness, reconciliation, freshness. On the driver."""

from __future__ import annotations

from datetime import date
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from include.rules import RULES
from include.settings import Settings
from include.tables import TABLES
from spark_jobs.runtime import staging
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import day
from spark_jobs.runtime.small_tables import Row

Measures = dict[str, dict[str, Any]]
Field: TypeAlias = Any  # a condition of pyarrow.compute
NONE = {"doubled_keys": 0, "out_of_range": 0}


def take(derived: Derivation, doubled_readings: int, small: dict[str, list[Row]]) -> Measures:
    measures: Measures = {table: _of_rows(table, rows) for table, rows in small.items()}
    settings = derived.lake.settings
    sane = {
        "store_trends": _is_sane_trend(settings),
        "door_sessions": _is_sane_session(),
        "outages": _is_sane_outage(),
        "alerts": _is_sane_alert(),
    }
    for table, is_sane in sane.items():
        staged = staging.staged_table(derived.lake, derived.run, table)
        measures[table] = dict(NONE) if staged is None else _of_changes(table, _without_deleted(staged), is_sane)
    measures["store_minutes"] = _of_minutes(derived)
    measures["readings"] = _of_readings(derived, doubled_readings)
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


def _of_changes(table: str, staged: pa.Table, is_sane: Field) -> dict[str, Any]:
    keys = staged.group_by(list(TABLES[table].key)).aggregate([])
    return {"doubled_keys": len(staged) - len(keys), "out_of_range": len(staged) - len(staged.filter(is_sane))}


def _without_deleted(staged: pa.Table) -> pa.Table:
    return staged.filter(pc.field("action") != "delete")


# Null is not sane: a comparison with it does not hold, and the row is counted


def _ends_after_start() -> Field:
    return pc.field("ended_at").is_null() | (pc.field("ended_at") >= pc.field("started_at"))


def _is_sane_session() -> Field:
    return _ends_after_start() & (pc.field("readings") > 0) & (pc.field("rise_c") >= 0.0)


def _is_sane_outage() -> Field:
    lasts = pc.field("ended_at").is_null() | (pc.field("ended_at") > pc.field("started_at"))
    return lasts & pc.field("cause").isin(["sensor", "store", "input"])


def _is_sane_alert() -> Field:
    is_known = pc.field("rule").isin([rule.name for rule in RULES]) | (pc.field("status") == "retracted")
    return _ends_after_start() & is_known & ((pc.field("status") == "open") == pc.field("ended_at").is_null())


def _is_in_range(settings: Settings, *names: str) -> Field:
    low, high = settings.lowest_temperature_c, settings.highest_temperature_c
    found = pc.scalar(True)
    for name in names:
        found = found & (pc.field(name) >= low) & (pc.field(name) <= high)
    return found


def _is_sane_trend(settings: Settings) -> Field:
    return (pc.field("readings") > 0) & _is_in_range(settings, "temperature_avg_c", "temperature_min_c", "temperature_max_c")


def _is_sane_minute(settings: Settings) -> Field:
    silent = pc.field("temperature_avg_c").is_null() & (pc.field("sensors_reporting") == 0) & (pc.field("late_rows") == 0)
    spoken = _is_in_range(settings, "temperature_min_c", "temperature_max_c") & (pc.field("sensors_reporting") >= 1)
    spoken = spoken & (pc.field("sensors_reporting") <= pc.field("readings"))
    completeness = (pc.field("completeness") >= 0.0) & (pc.field("completeness") <= 1.0)
    complete = pc.if_else(pc.field("completeness").is_null(), pc.field("sensors_expected") == 0, completeness)
    return complete & pc.if_else(pc.field("readings") == 0, silent, spoken)


def _of_minutes(derived: Derivation) -> dict[str, Any]:
    """Keys and ranges; completeness among the final minutes that the run touched: the share of expected reports that came."""
    found = staging.staged_table(derived.lake, derived.run, "store_minutes")
    if found is None:
        return {**NONE, "completeness": None, "by_store": {}, "unaccounted": _unaccounted(derived, None)}
    staged = _without_deleted(found)
    judged = staged.filter(pc.field("is_final") & (pc.field("sensors_expected") > 0))
    came = pc.multiply(judged["completeness"], judged["sensors_expected"].cast(pa.float64()))
    stores = judged.select(["store_id", "sensors_expected"]).append_column("came", came).group_by("store_id")
    rows = stores.aggregate([("sensors_expected", "sum"), ("came", "sum")]).to_pylist()
    shares = {row["store_id"]: row["came_sum"] / row["sensors_expected_sum"] for row in rows}
    due, worst = sum(row["sensors_expected_sum"] for row in rows), min(shares, key=lambda store_id: shares[store_id], default=None)
    return {
        **_of_changes("store_minutes", staged, _is_sane_minute(derived.lake.settings)),
        "completeness": sum(row["came_sum"] for row in rows) / due if due else None,
        "by_store": {worst: shares[worst]} if worst is not None else {},
        "unaccounted": _unaccounted(derived, found),
    }


def _unaccounted(derived: Derivation, staged: pa.Table | None) -> int:
    """Readings of the touched days, less those that the minutes of these days will count once published."""
    lake, days = derived.lake, {day(hour) for hour in derived.changes.hours}
    days |= set(staged["window_date"].unique().to_pylist()) if staged is not None else set()
    if not days:
        return 0
    key = list(TABLES["store_minutes"].key)
    minutes = lake.table("store_minutes", [*key, "readings"], pc.field("window_date").isin(sorted(days)))
    stay = minutes if staged is None else minutes.join(staged.select(key), key, join_type="left anti")
    counted = [stay["readings"], _without_deleted(staged)["readings"]] if staged is not None else [stay["readings"]]
    return _readings_on(derived, sorted(days)) - sum(pc.sum(column).as_py() or 0 for column in counted)


def _readings_on(derived: Derivation, days: list[date]) -> int:
    return derived.lake.count("readings", derived.changes.version, pc.field("event_date").isin(days))


def _of_readings(derived: Derivation, doubled: int) -> dict[str, Any]:
    settings, heard = derived.lake.settings, derived.changes.heard
    low, high = round(settings.lowest_temperature_c * 1000), round(settings.highest_temperature_c * 1000)
    newest = max((stay.last_seen_at for stay in derived.stays.values()), default=None)
    return {
        "doubled_keys": doubled,
        "out_of_range": sum(each.lowest_mc < low or each.highest_mc > high for each in heard),
        "age_s": None if newest is None else max(0.0, (derived.clock.as_of - newest).total_seconds()),
    }
