"""P12 against the oracle: any history, in one pass or cut into several in any order, gives the tables that the contract's text gives.

How many histories: COLDSTORE_HISTORIES in the environment.
"""

from __future__ import annotations

import csv
import os
import random
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.lakes import TestLake
from tests.oracle import alerts, heartbeats, outages, readings, reference, store_minutes
from tests.oracle.histories import START_MS, History, histories, iso

BUILT = {"store_minutes": store_minutes.build, "heartbeats": heartbeats.build, "outages": outages.build, "alerts": alerts.build}
RULES = ("missed_heartbeat", "sudden_drop")
COLUMNS = {
    "sensors": ("sensor_id", "store_id", "active_from", "retired_at", "silent_after_s", "expected_every_s"),
    "limits": ("store_id", "valid_from", "valid_to", "low_c", "high_c"),
    "suppressions": ("store_id", "sensor_id", "rule", "from", "to", "reason"),
}
TIMES = ("active_from", "retired_at", "valid_from", "valid_to", "from", "to")


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("COLDSTORE_HISTORIES", "3")),
    deadline=None,
    derandomize="COLDSTORE_HISTORIES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(history=histories(), seed=st.integers(0, 1000))
def test_any_history_gives_the_oracles_tables(spark: SparkSession, history: History, seed: int) -> None:
    expected = oracle_tables(history)
    with tempfile.TemporaryDirectory() as folder:
        in_one = a_lake(Path(folder) / "one", spark, history)
        deliver(in_one, history.files())
        in_one.passes(as_of=iso(history.as_of_ms))
        assert tables(in_one) == expected, history

        in_several, chance, files = a_lake(Path(folder) / "several", spark, history), random.Random(seed), history.files()
        chance.shuffle(files)
        cuts = sorted(chance.sample(range(len(files)), min(len(files) - 1, 2)))
        for start, end in zip([0, *cuts], [*cuts, len(files)], strict=True):
            deliver(in_several, files[start:end])
            clock = chance.randint(START_MS, history.as_of_ms) if end < len(files) else history.as_of_ms
            in_several.passes(as_of=iso(clock))
        assert tables(in_several) == expected, history


def a_lake(place: Path, spark: SparkSession, history: History) -> TestLake:
    lake = TestLake(place, spark, quarantine_critical=1.0)
    (place / "reference").mkdir(parents=True)
    for name, columns in COLUMNS.items():
        with (place / "reference" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(columns)
            rows.writerows([_cell(column, row[column]) for column in columns] for row in getattr(history, name))
    return lake


def _cell(column: str, value: Any) -> Any:
    return "" if value is None else iso(value) if column in TIMES else value


def deliver(lake: TestLake, files: list[tuple[int, list[bytes]]]) -> None:
    folder = lake.place / "landing"
    folder.mkdir(parents=True, exist_ok=True)
    for arrived_ms, lines in files:
        path = folder / f"{arrived_ms}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        os.utime(path, ns=(arrived_ms * 1_000_000, arrived_ms * 1_000_000))


def oracle_tables(history: History) -> dict[str, Any]:
    read = readings.read_history([readings.Line(line.text, line.arrived_ms) for line in history.lines])
    known = reference.Reference(
        tuple(reference.Sensor(**row) for row in history.sensors),
        tuple(reference.Limit(**row) for row in history.limits),
        tuple(
            reference.Suppression(row["store_id"], row["reason"], row["sensor_id"], row["rule"], row["from"], row["to"])
            for row in history.suppressions
        ),
    )
    found: dict[str, Any] = {name: build(read.winners, known, history.as_of_ms) for name, build in BUILT.items()}
    found["alerts"] = [row for row in found["alerts"] if row["rule"] in RULES]
    found["readings"] = [
        {
            "sensor_id": row.sensor_id, "store_id": row.store_id, "event_ts": row.event_ms, "temperature_c": row.temperature / 1000,
            "door_open": row.door_open, "battery_pct": row.battery_pct, "event_id": row.event_id, "arrived_at": row.arrived_ms,
        }
        for row in read.winners.values()
    ]  # fmt: skip
    sorted_tables = {name: _sorted(rows) for name, rows in found.items()}
    quarantine = sorted((row.line.content, sorted(row.reasons)) for row in read.quarantined)
    by_store = {store: {name: count for name, count in books.items() if count} for store, books in read.books_by_store.items()}
    return sorted_tables | {
        "quarantine": quarantine,
        "books": read.books,
        "stores": {store: books for store, books in by_store.items() if books},
    }


def tables(lake: TestLake) -> dict[str, Any]:
    """The lake's, in the oracle's words: its columns only, times in milliseconds."""
    found: dict[str, Any] = {}
    for name, columns in ORACLE_COLUMNS.items():
        rows = [row for row in lake.rows(name) if row.get("status") != "retracted"]
        found[name] = _sorted([{column: _plain(column, row[column]) for column in columns} for row in rows])
    found["quarantine"] = sorted((row["line"], sorted(row["reasons"])) for row in lake.rows("quarantine"))
    stores: dict[str | None, dict[str, int]] = {}
    for row in lake.rows("run_stores"):
        books = stores.setdefault(row["store_id"], {})
        for count in ("readings_new", "duplicates", "quarantined", "late_rows"):
            books[count] = books.get(count, 0) + row[count]
    stores = {store: {name: count for name, count in books.items() if count} for store, books in stores.items()}
    return found | {"books": lake.books(), "stores": {store: books for store, books in stores.items() if books}}


ORACLE_COLUMNS = {
    "readings": ("sensor_id", "store_id", "event_ts", "temperature_c", "door_open", "battery_pct", "event_id", "arrived_at"),
    "store_minutes": (
        "store_id", "window_start", "window_end", "readings", "sensors_reporting", "sensors_expected", "completeness", "temperature_avg_c",
        "temperature_min_c", "temperature_max_c", "door_open_share", "late_rows", "is_final",
    ),
    "heartbeats": ("sensor_id", "store_id", "status", "last_seen_at", "silent_since", "cause", "as_of"),
    "outages": ("sensor_id", "store_id", "started_at", "ended_at", "cause"),
    "alerts": (
        "alert_id", "rule", "sensor_id", "store_id", "started_at", "ended_at", "peak", "evidence", "limit_low_c", "limit_high_c", "status",
        "suppressed_by",
    ),
}  # fmt: skip


def _plain(column: str, value: Any) -> Any:
    if column == "evidence":
        return {name: value[name] and _plain("", value[name]["event_ts"]) for name in ("first", "worst", "last")}
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])
