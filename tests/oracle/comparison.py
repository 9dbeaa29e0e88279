"""A history into a lake and out again: the lake's tables and the oracle's in the same words, and where they differ."""

from __future__ import annotations

import csv
import io
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.lakes import TestLake
from tests.oracle import alerts, door_sessions, heartbeats, outages, readings, reference, store_minutes, store_trends
from tests.oracle.histories import History, iso

BUILT = {
    "store_minutes": store_minutes.build,
    "store_trends": store_trends.build,
    "door_sessions": door_sessions.build,
    "heartbeats": heartbeats.build,
    "outages": outages.build,
    "alerts": alerts.build,
}
ORACLE_COLUMNS = {
    "readings": ("sensor_id", "store_id", "event_ts", "temperature_c", "door_open", "battery_pct", "event_id", "arrived_at"),
    "store_minutes": (
        "store_id", "window_start", "window_end", "readings", "sensors_reporting", "sensors_expected", "completeness", "temperature_avg_c",
        "temperature_min_c", "temperature_max_c", "door_open_share", "late_rows", "is_final",
    ),
    "store_trends": (
        "store_id", "window_start", "window_end", "readings", "temperature_avg_c", "temperature_min_c", "temperature_max_c", "door_open_share",
        "slope_c_per_hour", "is_final",
    ),
    "door_sessions": ("sensor_id", "store_id", "started_at", "ended_at", "readings", "peak_c", "rise_c"),
    "heartbeats": ("sensor_id", "store_id", "status", "last_seen_at", "silent_since", "cause", "as_of"),
    "outages": ("sensor_id", "store_id", "started_at", "ended_at", "cause"),
    "alerts": (
        "alert_id", "rule", "sensor_id", "store_id", "started_at", "ended_at", "peak", "evidence", "limit_low_c", "limit_high_c", "status",
        "suppressed_by",
    ),
}  # fmt: skip
REFERENCE_COLUMNS = {
    "sensors": ("sensor_id", "store_id", "active_from", "retired_at", "silent_after_s", "expected_every_s"),
    "limits": ("store_id", "valid_from", "valid_to", "low_c", "high_c"),
    "suppressions": ("store_id", "sensor_id", "rule", "from", "to", "reason"),
}
TIMES = ("active_from", "retired_at", "valid_from", "valid_to", "from", "to")
SHOWN = 3


def a_lake(place: Path, spark: SparkSession, history: History) -> TestLake:
    """A lake with the history's reference files that publishes whatever share is quarantined."""
    lake = TestLake(place, spark, quarantine_critical=1.0)
    write_reference(lake, history)
    return lake


def write_reference(lake: TestLake, history: History) -> None:
    for name, columns in REFERENCE_COLUMNS.items():
        text = io.StringIO()
        rows = csv.writer(text)
        rows.writerow(columns)
        rows.writerows([_cell(column, row[column]) for column in columns] for row in getattr(history, name))
        lake.keeps(f"reference/{name}.csv", text.getvalue().encode())


def _cell(column: str, value: Any) -> Any:
    return "" if value is None else iso(value) if column in TIMES else value


def deliver(lake: TestLake, files: list[tuple[int, list[bytes]]]) -> None:
    """Each file into the landing folder, with its arrival as its modification time."""
    for arrived_ms, lines in files:
        lake.keeps(f"landing/{arrived_ms}.jsonl", b"".join(line + b"\n" for line in lines), arrived_ms)


def oracle_tables(history: History) -> dict[str, Any]:
    """What the contract's text makes of the history."""
    read = readings.read_history([readings.Line(line.text, line.arrived_ms) for line in history.lines])
    known = _reference(history)
    found: dict[str, Any] = {name: build(read.winners, known, history.as_of_ms) for name, build in BUILT.items()}
    found["readings"] = [
        {
            "sensor_id": row.sensor_id, "store_id": row.store_id, "event_ts": row.event_ms, "temperature_c": row.temperature / 1000,
            "door_open": row.door_open, "battery_pct": row.battery_pct, "event_id": row.event_id, "arrived_at": row.arrived_ms,
        }
        for row in read.winners.values()
    ]  # fmt: skip
    return {name: _sorted(rows) for name, rows in found.items()} | {
        "quarantine": sorted((row.line.content, sorted(row.reasons)) for row in read.quarantined),
        "books": read.books,
        "stores": _without_zeros(read.books_by_store),
    }


def _reference(history: History) -> reference.Reference:
    return reference.Reference(
        tuple(reference.Sensor(**row) for row in history.sensors),
        tuple(reference.Limit(**row) for row in history.limits),
        tuple(
            reference.Suppression(row["store_id"], row["reason"], row["sensor_id"], row["rule"], row["from"], row["to"])
            for row in history.suppressions
        ),
    )


def tables(lake: TestLake) -> dict[str, Any]:
    """The lake's, in the oracle's words: its columns only, times in milliseconds."""
    found: dict[str, Any] = {}
    for name, columns in ORACLE_COLUMNS.items():
        rows = [row for row in lake.rows(name) if row.get("status") != "retracted"]
        found[name] = _sorted([{column: _plain(column, row[column]) for column in columns} for row in rows])
    stores: dict[str | None, dict[str, int]] = {}
    for row in lake.rows("run_stores"):
        books = stores.setdefault(row["store_id"], {})
        for count in ("readings_new", "duplicates", "quarantined", "late_rows"):
            books[count] = books.get(count, 0) + row[count]
    return found | {
        "quarantine": sorted((row["line"], sorted(row["reasons"])) for row in lake.rows("quarantine")),
        "books": lake.books(),
        "stores": _without_zeros(stores),
    }


def differences(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Empty when all is equal; else the first rows of each table that one side alone has (a whole diff of real tables takes minutes)."""
    return "\n".join(
        line
        for name in (*expected, *(found.keys() - expected.keys()))
        if found.get(name) != expected.get(name)
        for line in _difference(name, _texts(found.get(name)), _texts(expected.get(name)))
    )


def _difference(name: str, found: Counter[str], expected: Counter[str]) -> list[str]:
    missing, extra = sorted((expected - found).elements()), sorted((found - expected).elements())
    return [
        f"{name}: {len(missing)} rows missing, {len(extra)} too many",
        *(f"  missing  {text}" for text in missing[:SHOWN]),
        *(f"  too many {text}" for text in extra[:SHOWN]),
    ]


def _texts(rows: Any) -> Counter[str]:
    listed = rows.items() if isinstance(rows, dict) else rows or ()
    # The columns in one order, whichever side the row is from.
    return Counter(repr(dict(sorted(row.items())) if isinstance(row, dict) else row) for row in listed)


def _without_zeros(stores: dict[str | None, dict[str, int]]) -> dict[str | None, dict[str, int]]:
    counted = {store: {name: count for name, count in books.items() if count} for store, books in stores.items()}
    return {store: books for store, books in counted.items() if books}


def _plain(column: str, value: Any) -> Any:
    if column == "evidence":
        return {name: value[name] and _plain("", value[name]["event_ts"]) for name in ("first", "worst", "last")}
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])
