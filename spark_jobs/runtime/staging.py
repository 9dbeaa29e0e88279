"""Staged changes: what a run wants to change in the published tables, kept beside them until the checks have passed."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import TABLES
from spark_jobs.runtime import small_tables, storage
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row


def place(lake: Lake, run: Run, name: str = "") -> str:
    return lake.place("staging", f"{run.number:06d}", *([name] if name else []))


def start(lake: Lake, run: Run) -> None:
    """Whatever an earlier attempt, or an earlier run, staged is out of date."""
    storage.delete(lake.place("staging"))
    storage.make_folder(place(lake, run))


def stage(lake: Lake, run: Run, table: str, changes: DataFrame) -> DataFrame:
    """Write the changes down and give them back from there, so that they are worked out once."""
    where = place(lake, run, table)
    changes.select(*TABLES[table].names, "change").write.mode("overwrite").parquet(where)
    return staged(lake, run, table)


def staged(lake: Lake, run: Run, table: str) -> DataFrame:
    return lake.spark.read.schema(f"{TABLES[table].schema}, change string").parquet(place(lake, run, table))


def is_staged(lake: Lake, run: Run, table: str) -> bool:
    return storage.exists(place(lake, run, table))


def stage_rows(lake: Lake, run: Run, table: str, rows: list[Row]) -> None:
    """A small table, whole."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=small_tables.schema_of(DeltaTable(lake.path(table)))), sink)
    storage.write_bytes(place(lake, run, table), sink.getvalue().to_pybytes())


def staged_rows(lake: Lake, run: Run, table: str) -> list[Row]:
    return list(pq.read_table(pa.BufferReader(storage.read_bytes(place(lake, run, table)))).to_pylist())


def difference(table: str, fresh: DataFrame, published: DataFrame, content: list[str], deletes: bool = True) -> DataFrame:
    """Rows of `fresh` that are new or say something else than the published ones (with the old `revision`, if the table has one),
    and published ones that are no longer there."""
    key = list(TABLES[table].key)
    rest = [name for name in content if name not in key]
    old_revision = [F.col("revision").alias("old_revision")] if "revision" in published.columns else []
    was_final = [F.col("is_final").alias("was_final")] if "is_final" in published.columns else []
    before = published.select(*key, F.struct(*rest).alias("before"), F.lit(True).alias("is_published"), *old_revision, *was_final)
    after = fresh.withColumns({"after": F.struct(*rest), "is_fresh": F.lit(True)})
    both = after.join(before, key, "full" if deletes else "left")
    changed = both.filter(~F.col("after").eqNullSafe(F.col("before")))
    return changed.withColumn(
        "change", F.when(F.col("is_fresh"), F.when(F.col("is_published"), "update").otherwise("insert")).otherwise("delete")
    )


def write_notes(lake: Lake, run: Run, name: str, notes: dict[str, Any]) -> None:
    storage.write_text(place(lake, run, f"{name}.json"), json.dumps(notes))


def read_notes(lake: Lake, run: Run, name: str) -> dict[str, Any]:
    return dict(json.loads(storage.read_text(place(lake, run, f"{name}.json")) or "{}"))
