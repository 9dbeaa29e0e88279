"""Staged changes: what a run wants to change in the published tables, kept beside them until the checks have passed.

A table's changes are a folder of Parquet files with its columns and `action` (insert, update, delete). Those that reviews of sensors or
stores find, done by Spark, lie together in one folder, a struct for each table: `episodes`, `windows`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from include.tables import TABLES
from spark_jobs.runtime import run as runs
from spark_jobs.runtime import storage
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.row_format import EPISODES, WINDOWS
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row

TOGETHER = {"episodes": EPISODES, "windows": WINDOWS}
DAY_OF = {"started_date": "started_at", "window_date": "window_start"}


def place(lake: Lake, run: Run, name: str = "") -> str:
    return lake.place(_folder(run), f"{run.number:06d}-{run.attempt}", *([name] if name else []))


def _folder(run: Run) -> str:
    """A rebuild that is only looked at must not disturb a run that is under way."""
    return "rebuilt" if run.is_rebuild else "staging"


def start(lake: Lake, run: Run) -> Run:
    """A new attempt. Whatever an earlier one, or an earlier run, staged is out of date; what a later run does is not ours."""
    run = replace(run, attempt=secrets.token_hex(4))
    if not run.is_rebuild:  # that is saved once it is swapped in
        runs.save(lake, run)
    for name in storage.folders(lake.place(_folder(run))):
        if int(name.partition("-")[0]) <= run.number:
            lake.delete(_folder(run), name)
    storage.make_folder(place(lake, run))
    return run


def stage_table(lake: Lake, run: Run, table: str, changes: pa.Table) -> None:
    """What the driver worked out."""
    _write_parquet(lake, table, f"{place(lake, run, table)}/changes.parquet", changes)


def stage_rows(lake: Lake, run: Run, table: str, rows: list[Row]) -> None:
    """A small table, whole."""
    schema = lake.small.schema(table)
    _write_parquet(lake, table, place(lake, run, table), pa.Table.from_pylist(rows, schema=schema))


def staged_rows(lake: Lake, run: Run, table: str) -> list[Row]:
    return list(pq.read_table(pa.BufferReader(storage.read(place(lake, run, table)) or b"")).to_pylist())


def is_staged(lake: Lake, run: Run, table: str) -> bool:
    return storage.exists(place(lake, run, table))


def staged(lake: Lake, run: Run, table: str) -> Iterator[pa.RecordBatch]:
    """A table's changes: its columns and `action`, as many rows at once as a file's row group has."""
    if is_staged(lake, run, table):
        yield from (_with_day(table, batch) for batch in _batches(place(lake, run, table)))
        return
    for folder, kinds in TOGETHER.items():
        for kind, name in kinds.items():
            if name == table and is_staged(lake, run, folder):
                for batch in _batches(place(lake, run, folder), columns=["action", kind], filter=ds.field(kind).is_valid()):
                    rows = pa.RecordBatch.from_struct_array(batch[kind]).append_column("action", batch["action"])
                    yield _with_day(table, rows)


def _with_day(table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The column by which the table is partitioned, where it is not there yet."""
    missing = [name for name in TABLES[table].partitioned_by if name not in rows.schema.names]
    return rows.append_column(missing[0], rows[DAY_OF[missing[0]]].cast(pa.date32())) if missing else rows


def staged_table(lake: Lake, run: Run, table: str) -> pa.Table | None:
    batches = [batch for batch in staged(lake, run, table) if len(batch)]
    return pa.Table.from_batches(batches) if batches else None


def add_together(lake: Lake, run: Run, folder: str, changed: DataFrame) -> list[tuple[str, str]]:
    """Write down what reviews found, rows of several tables; their notes are given back, with whom they are about."""
    where = place(lake, run, folder)
    known = set(storage.names(where)) if storage.exists(where) else set()
    with lake.lasting(f"staging of {folder}"):
        changed.write.mode("append").parquet(where)
    new = [name for name in storage.names(where) if name not in known and name.endswith(".parquet")]
    if not new:
        return []
    notes = ds.dataset(new, filesystem=storage.arrow_files(where)).to_table(
        columns=[changed.columns[0], "note"], filter=ds.field("note").is_valid()
    )
    return list(zip(*(column.to_pylist() for column in notes.columns), strict=True))


def _batches(where: str, **wanted: Any) -> Iterator[pa.RecordBatch]:
    names = [name for name in storage.names(where) if name.endswith(".parquet")]
    if names:
        yield from ds.dataset(names, filesystem=storage.arrow_files(where)).to_batches(**wanted)


def write_notes(lake: Lake, run: Run, name: str, notes: dict[str, Any]) -> None:
    with lake.lasting(f"staging of {name}"):
        storage.write_text(place(lake, run, f"{name}.json"), json.dumps(notes))


def read_notes(lake: Lake, run: Run, name: str) -> dict[str, Any]:
    return dict(json.loads(storage.read_text(place(lake, run, f"{name}.json")) or "{}"))


def _write_parquet(lake: Lake, name: str, where: str, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    with lake.lasting(f"staging of {name}"):
        storage.write(where, sink.getvalue().to_pybytes())
