"""Files that changed after they were taken (P1): of their lines, those that the lake does not have from them yet.

Equal lines are counted: of three in the file, where the lake has two, one is new. They are compared by what they say, whatever the rules and the
file's time made of them: both may be others by now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.readers.decoder import FILE
from spark_jobs.readers.judge import judge
from spark_jobs.readers.quarantined_lines import NOT_REPLAYED
from spark_jobs.runtime.event_slices import touched_hours, within
from spark_jobs.runtime.lake import Lake

YEAR_9000_MS = 221_845_392_000_000
FIELDS = ("sensor_id", "temperature_mc", "store_id", "door_open", "battery_pct", "event_id")
CONTENT = """event_ms bigint, sensor_id string, temperature_mc int, store_id string, door_open boolean, battery_pct double, event_id string,
    line binary"""


def new_lines(lake: Lake, lines: DataFrame, sources: list[str]) -> DataFrame:
    """Those of `lines`, and the files' own rows, which say how many lines are `known`."""
    lines = lines.persist(StorageLevel.MEMORY_AND_DISK)
    found = _with_content(lines.filter(F.col("kind") != FILE), lake.settings).persist(StorageLevel.MEMORY_AND_DISK)
    held = _held(lake, sources, touched_hours(found.select(F.timestamp_millis("content.event_ms").alias("event_ts"))))
    both = found.withColumn("held", F.lit(0)).unionByName(held.withColumn("held", F.lit(1)), allowMissingColumns=True)
    equal = Window.partitionBy("source", "content")
    in_order = Window.partitionBy("source", "content", "held").orderBy("position")
    counted = both.withColumns({"number": F.row_number().over(in_order), "known": F.sum("held").over(equal)})
    marked = counted.filter("held = 0").withColumn("is_known", F.col("number") <= F.col("known")).persist(StorageLevel.MEMORY_AND_DISK)
    known = marked.filter("is_known").groupBy("source").agg(F.count("*").alias("known"))
    files = lines.filter(F.col("kind") == FILE).join(known, "source", "left")
    is_first_slice = F.col("sha256").isNotNull()
    files = files.withColumn("known", F.when(is_first_slice, F.coalesce("known", F.lit(0))).otherwise(0))
    return files.unionByName(marked.filter("not is_known").select(*lines.columns), allowMissingColumns=True)


def _held(lake: Lake, sources: list[str], hours: list[int]) -> DataFrame:
    """The lines of these files that the lake has. A line that was replayed is in two tables: the reading stands for it."""
    theirs, columns = F.col("source").isin(sources), ("source", "content")
    readings = _with_content(lake.read("readings").filter(within(hours) & theirs), lake.settings)
    duplicates = _with_content(lake.read("duplicates").filter(within(hours, date=None) & theirs), lake.settings)
    is_conflict = F.array_contains("reasons", "conflicting_duplicate")
    refused = lake.read("quarantine").filter(theirs).withColumn("event_ts", F.when(is_conflict, F.col("event_ts")))
    refused = _with_content(refused, lake.settings).filter("replayed_at is null or content.sensor_id is null")
    return readings.select(*columns).unionByName(duplicates.select(*columns)).unionByName(refused.select(*columns))


def _with_content(rows: DataFrame, settings: Settings) -> DataFrame:
    """What a line says: its fields where it could be a reading, else its bytes."""
    keyed, other = rows.filter("event_ts is not null"), rows.filter("event_ts is null")
    if "line" not in rows.columns:
        return keyed.withColumn("content", _fields())
    said = F.udf(_said(replace(settings, lowest_temperature_c=-1e6, highest_temperature_c=1e6)), CONTENT, useArrow=False)
    return keyed.withColumn("content", _fields()).unionByName(other.withColumn("content", said("line", "reasons")))


def _fields() -> Column:
    return F.struct(F.unix_millis("event_ts").alias("event_ms"), *FIELDS, F.lit(None).cast("binary").alias("line"))


def _said(settings: Settings) -> Callable[[bytes, list[str]], tuple[Any, ...]]:
    def said(line: bytes, reasons: list[str]) -> tuple[Any, ...]:
        if not set(reasons) & set(NOT_REPLAYED):
            verdict = judge(bytes(line), YEAR_9000_MS, settings)
            if not verdict.reasons:
                return verdict.event_ms, *(getattr(verdict, name) for name in FIELDS), None
        return *(None for _ in ("event_ms", *FIELDS)), line

    return said
