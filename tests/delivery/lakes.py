"""A lake with what delivery needs, made without Spark: published runs, and the events that they wrote."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from include.settings import Settings
from include.tables import TABLES
from spark_jobs.runtime.lake import Lake
from tests.lakes import moment

KINDS = {
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "date": pa.date32(),
    "map<string, bigint>": pa.map_(pa.string(), pa.int64()),
}


def an_event(alert: str = "alert-1", change: str = "opened", clock: str = "10:00", ended: str = "", **more: Any) -> dict[str, Any]:
    """A change of an alert on the day that the tests play on; the run that writes it adds its id and number."""
    return {
        "event_id": hashlib.sha256(f"{alert}|{change}|{clock}".encode()).hexdigest()[:32],
        "alert_id": alert,
        "change": change,
        "at": moment(clock),
        "is_historic": False,
        "rule": "too_warm",
        "severity": "critical",
        "sensor_id": "sensor-1",
        "store_id": "store-1",
        "started_at": moment("09:59"),
        "ended_at": moment(ended) if ended else None,
        "peak": 9.125,
        "suppressed_by": None,
        "superseded_by": None,
        **more,
    }


class AlertLake:
    """`lake.publishes(an_event(...), ...)` is a published run; `lake.delivers()` what comes after it."""

    def __init__(self, place: Path, **settings: Any) -> None:
        self.place = place
        self.settings = replace(Settings.from_env({"COLDSTORE_LAKE": str(place)}), **settings)
        self.lake = Lake(None, self.settings)
        self.runs = 0
        for table in ("runs", "alert_events", "deliveries"):
            fields = [pa.field(column.name, KINDS[column.type]) for column in TABLES[table].columns]
            deltalake.DeltaTable.create(self.path(table), pa.schema(fields))

    def path(self, table: str) -> str:
        return str(self.place / "tables" / table)

    def publishes(self, *events: dict[str, Any], as_of: datetime | None = None, status: str = "published") -> None:
        self.runs += 1
        written = [{**event, "number": self.runs, "run_id": f"run-{self.runs}"} for event in events]
        self._append("alert_events", written)
        if status:
            run = {"number": self.runs, "run_id": f"run-{self.runs}", "status": status}
            self._append("runs", [{**run, "as_of": as_of or moment("12:00") + timedelta(minutes=self.runs)}])

    def _append(self, table: str, rows: list[dict[str, Any]]) -> None:
        there = deltalake.DeltaTable(self.path(table))
        deltalake.write_deltalake(there, pa.Table.from_pylist(rows, schema=pa.schema(there.schema().to_arrow())), mode="append")

    def with_settings(self, **settings: Any) -> Lake:
        return Lake(None, replace(self.settings, **settings))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return list(deltalake.DeltaTable(self.path(table)).to_pyarrow_table().to_pylist())

    def booked(self) -> dict[str, tuple[str, int, str]]:
        """Status, attempts and detail of each event that was settled; one row each."""
        rows = self.rows("deliveries")
        found = {row["event_id"]: (row["status"], row["attempts"], row["detail"]) for row in rows}
        assert len(found) == len(rows) and {row["sink"] for row in rows} <= {"webhook"}
        return found

    def delivered_until(self) -> int:
        return int(json.loads((self.place / "control" / "delivered.json").read_text())["webhook"])
