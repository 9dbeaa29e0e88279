"""Publication: the staged changes move into the tables that people read, and the row in `runs` says so (P21).

Each MERGE carries the run's number, so a second attempt repeats none of them; from the first one on the run is finished by whoever
comes next.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from include.tables import PUBLISHED, TABLES
from spark_jobs.runtime import ledger, staging
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.lake import Lake, together
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row, Write

# The column by which a MERGE passes over files that cannot hold a staged row.
TIMES = {"store_minutes": "window_date", "outages": "started_at", "alerts": "started_at"}


def publish(lake: Lake, run: Run, note: str = "") -> None:
    runs.mark_publishing(lake, run)
    together(*(lambda table=table: _move(lake, run, table) for table in PUBLISHED))
    books = ledger.unbooked(lake, run)
    versions = {table: lake.version(table) for table in TABLES if table not in ("runs", "run_stores")}
    versions["readings"] = staging.read_notes(lake, run, "measures")["versions"]["readings"]
    ledger.book(lake, run, books, "published", versions, note)


def _replace(lake: Lake, table: str, rows: list[Row], write: Write) -> None:
    """Only where something differs: a run that changes nothing leaves no new version."""
    before = sorted(lake.rows(table), key=lambda row: [row[name] for name in TABLES[table].key])
    if rows != before:
        lake.replace_rows(table, rows, write)


def _move(lake: Lake, run: Run, table: str) -> None:
    write = run.write("publish")
    if not staging.is_staged(lake, run, table):
        return
    if TABLES[table].is_small:
        _replace(lake, table, staging.staged_rows(lake, run, table), write)
        return
    staged = staging.staged(lake, run, table)
    time = TIMES[table]
    bounds = staged.agg(F.count("*").alias("rows"), F.min(time).alias("first"), F.max(time).alias("last")).collect()[0]
    if bounds["rows"] == 0:
        return
    if lake.version(table) == 0:
        lake.append(table, staged, write)
        return
    kind = TABLES[table].type_of(time)
    narrowed = f"target.{time} BETWEEN {kind} '{bounds['first']}' AND {kind} '{bounds['last']}'"
    lake.upsert(table, staged, write, narrowed)
