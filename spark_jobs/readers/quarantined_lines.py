"""Lines in quarantine, judged again (P5): those that are readings by today's rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.readers.decoder import READING
from spark_jobs.readers.judge import judge
from spark_jobs.readers.landing_files import DECODED

# Of these no whole line was kept, or it was never the line that was wrong.
NOT_REPLAYED = ("line_too_long", "truncated_file", "conflicting_duplicate")
JUDGED = ("sensor_id", "store_id", "temperature_mc", "door_open", "battery_pct", "event_id")


def now_valid(quarantine: DataFrame, reason: str, settings: Settings) -> DataFrame:
    """Quarantine rows that hold a reading now, with its fields filled in; `reason` narrows down which are looked at.

    The store may be readable only now: `booked_store_id` is the one that the books have the line under.
    """
    waiting = quarantine.filter(F.col("replayed_at").isNull() & ~F.arrays_overlap("reasons", F.array(*map(F.lit, NOT_REPLAYED))))
    if reason:
        waiting = waiting.filter(F.array_contains("reasons", reason))
    waiting = waiting.withColumn("booked_store_id", F.col("store_id"))
    return waiting.mapInArrow(partial(_judge_again, settings), waiting.schema).filter("event_ts is not null")


def as_lines(quarantine: DataFrame) -> DataFrame:
    """Such rows in the shape of lines just read; they keep their arrival, source and position."""
    kept = quarantine.select("source", "position", "arrived_at", "event_ts", *JUDGED, F.lit(READING).cast("tinyint").alias("kind"))
    blank = quarantine.sparkSession.createDataFrame([], DECODED)
    return blank.unionByName(kept, allowMissingColumns=True)


def _judge_again(settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            arrived_ms = round(row["arrived_at"].timestamp() * 1000)
            verdict = judge(row["line"], arrived_ms, settings)
            if not verdict.reasons:
                row.update({name: getattr(verdict, name) for name in JUDGED})
                row["event_ts"] = verdict.event_ms * 1000 if verdict.event_ms is not None else None
        yield _with_times(rows, batch.schema)


def _with_times(rows: list[dict[str, object]], schema: pa.Schema) -> pa.RecordBatch:
    times = pa.array([row.pop("event_ts") for row in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.RecordBatch.from_pylist([{**row, "event_ts": None} for row in rows], schema=schema)
    return table.set_column(schema.get_field_index("event_ts"), schema.field("event_ts"), times)
