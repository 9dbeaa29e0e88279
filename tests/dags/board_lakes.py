"""A published lake without Spark: its tables written row by row, with the columns of the data dictionary that the board reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from include.tables import TABLES

KINDS = {
    "string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "map<string, bigint>": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
AS_OF = datetime(2025, 11, 8, 12, tzinfo=UTC)
READ = ("store_minutes", "heartbeats", "alerts", "acknowledgements", "outages", "door_sessions", "readings")


def ago(hours: float) -> datetime:
    return AS_OF - timedelta(hours=hours)


def a_lake(place: Path, rows: dict[str, list[dict[str, Any]]], status: str = "published") -> Path:
    """As one run left it, and perhaps another that was held or failed."""
    for table in READ:
        write(place, table, [_with_day(table, row) for row in rows.get(table, [])])
    run = {"run_id": "night", "number": 1, "as_of": AS_OF, "status": "published", "finished_at": datetime.now(UTC) - timedelta(minutes=7)}
    runs = [{**run, "versions": dict.fromkeys(READ, 0)}]
    if status != "published":
        runs.append({**run, "run_id": "morning", "number": 2, "status": status, "versions": {}})
    write(place, "runs", [{**each, "versions": list(each["versions"].items())} for each in runs])
    return place


def _with_day(table: str, row: dict[str, Any]) -> dict[str, Any]:
    days = {"window_date": "window_start", "started_date": "started_at", "event_date": "event_ts"}
    return {**row, **{day: row[days[day]].date() for day in TABLES[table].partitioned_by if day in days}}


def write(place: Path, table: str, rows: list[dict[str, Any]], mode: str = "error") -> None:
    schema = pa.schema([(column.name, KINDS[column.type]) for column in TABLES[table].columns if column.type in KINDS])
    partitions = [name for name in TABLES[table].partitioned_by if name in schema.names]
    write_deltalake(str(place / "tables" / table), pa.Table.from_pylist(rows, schema), partition_by=partitions or None, mode=mode)


def minutes(store: str, hours: float, temperature: float = 2.0, **more: Any) -> list[dict[str, Any]]:
    """Of a store, one row for each up to the clock."""
    found = []
    for number in range(int(hours * 60)):
        starts = ago(hours) + timedelta(minutes=number)
        measured = {f"temperature_{which}_c": temperature + shift for which, shift in (("min", -1), ("avg", 0), ("max", 1))}
        found.append(
            {"store_id": store, "window_start": starts, "window_end": starts + timedelta(minutes=1), "readings": 2, "completeness": 1.0,
             "is_final": True, "revision": 0, "late_rows": 0, **measured, **more}
        )  # fmt: skip
    return found
