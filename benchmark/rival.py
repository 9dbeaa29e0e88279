"""The rival: DuckDB and delta-rs make the same tables from the same files, in one process: python -m benchmark.rival --help"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake

from benchmark import rival_alerts, rival_readings, rival_reference, rival_sensors, rival_stores

LONGEST_LINE = 64 * 1024
ROWS_AT_ONCE = 100_000
EPOCH = datetime(1970, 1, 1)
DERIVED = ("store_minutes", "store_trends", "door_sessions", "outages", "heartbeats", "alerts")
WRITTEN = {"readings": rival_readings.READINGS} | {name: f"FROM {name}" for name in ("quarantine", *DERIVED)}
PARTITIONED_BY = {"readings": "event_date", "store_minutes": "window_date", "store_trends": "window_date"}


def run(landing: Path, reference: Path, tables: Path, as_of: str) -> dict[str, int]:
    """Write the tables; how many rows each has."""
    tables.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(config={"temp_directory": str(tables / ".duckdb"), "preserve_insertion_order": "false"}) as db:
        make(db, landing, reference, as_of)
        return {name: _write(db, query, tables / name, PARTITIONED_BY.get(name)) for name, query in WRITTEN.items()}


def make(db: duckdb.DuckDBPyConnection, landing: Path, reference: Path, as_of: str) -> None:
    """All tables, in the database; those that are read but once are views."""
    db.execute("SET VARIABLE as_of = $as_of", {"as_of": datetime.fromisoformat(as_of).astimezone(UTC).replace(tzinfo=None)})
    lines = rival_readings.judged(_arrivals(db, landing), LONGEST_LINE)
    derived = (*rival_stores.STEPS, *rival_sensors.STEPS, *rival_alerts.STEPS)
    for step in (*rival_reference.steps(reference), lines, *rival_readings.STEPS, *derived):
        db.execute(step)


def _arrivals(db: duckdb.DuckDBPyConnection, landing: Path) -> list[str]:
    """The landing files, and a table of when each arrived."""
    paths = sorted(landing.rglob("*.jsonl"))
    db.execute("CREATE TABLE files (file_id INTEGER, filename VARCHAR, arrived_at TIMESTAMP)")
    arrivals = [
        (number, str(path), EPOCH + timedelta(milliseconds=path.stat().st_mtime_ns // 1_000_000)) for number, path in enumerate(paths)
    ]
    db.executemany("INSERT INTO files VALUES (?, ?, ?)", arrivals)
    return [str(path) for path in paths]


def _write(db: duckdb.DuckDBPyConnection, query: str, place: Path, by: str | None = None) -> int:
    """Stream a query's rows into a Delta table, as wide as memory allows and no wider."""
    rows = db.sql(query).to_arrow_reader(ROWS_AT_ONCE)
    schema = pa.schema([pa.field(item.name, _in_utc(item.type)) for item in rows.schema])
    written = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal written
        for batch in rows:
            written += batch.num_rows
            yield batch.cast(schema)

    stream = pa.RecordBatchReader.from_batches(schema, batches())
    write_deltalake(place, stream, partition_by=[by] if by else None, writer_properties=WriterProperties(compression="ZSTD"))
    return written


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landing", type=Path, required=True, help="folder of landing files (plain .jsonl)")
    parser.add_argument("--reference", type=Path, required=True, help="folder of the reference files")
    parser.add_argument("--tables", type=Path, required=True, help="where the Delta tables go")
    parser.add_argument("--as-of", required=True, help="the clock, ISO 8601")
    given = parser.parse_args()
    print(json.dumps(run(given.landing, given.reference, given.tables, given.as_of)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
