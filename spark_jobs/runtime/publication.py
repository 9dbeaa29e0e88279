"""Publication: the staged changes move into the tables that people read, and the row in `runs` says so (P21). Without Spark.

Each write carries the run's number, so a second attempt repeats none of them; from the first one on the run is finished by whoever
comes next.
"""

from __future__ import annotations

from include.tables import PUBLISHED, TABLES
from spark_jobs.runtime import ledger, notices, staging
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.lake import Lake, together
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row, Write


def publish(lake: Lake, run: Run, note: str = "") -> None:
    runs.mark_publishing(lake, run)
    together(*(lambda table=table: _move(lake, run, table) for table in PUBLISHED))
    books = ledger.unbooked(lake, run)
    versions = {table: lake.version(table) for table in TABLES if table not in ("runs", "run_stores")}
    versions["readings"] = staging.read_notes(lake, run, "measures")["versions"]["readings"]
    ledger.book(lake, run, books, "published", versions, "; ".join(filter(None, [note, *notices.unpublished(lake, run)])))


def _move(lake: Lake, run: Run, table: str) -> None:
    write = run.write("publish")
    if TABLES[table].is_small:
        _replace(lake, table, staging.staged_rows(lake, run, table), write)
        return
    if lake.version(table) == 0 or not TABLES[table].partitioned_by:
        if any(len(batch) for batch in staging.staged(lake, run, table)):
            lake.append_batches(table, staging.staged(lake, run, table), write)
    elif (changes := staging.staged_table(lake, run, table)) is not None:
        lake.change(table, changes, write)


def _replace(lake: Lake, table: str, rows: list[Row], write: Write) -> None:
    """Only where something differs: a run that changes nothing leaves no new version."""
    before = sorted(lake.rows(table), key=lambda row: [row[name] for name in TABLES[table].key])
    if rows != before:
        lake.replace_rows(table, rows, write)
