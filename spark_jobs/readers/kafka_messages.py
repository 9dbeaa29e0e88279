"""Kafka messages: as the topic has them, as `raw_messages` keeps them, and their lines as a frame. One message is one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.readers.decoder import decode_messages
from spark_jobs.readers.landing_files import DECODED
from spark_jobs.readers.line_splitter import BOM, Lines

EARLIEST = -2  # as Spark writes it


def is_topic(source: str) -> bool:
    """A file's path, or URI, has a slash in it; a topic's name never has."""
    return "/" not in source


def stream(spark: SparkSession, topic: str, starts: dict[int, int], options: dict[str, str], settings: Settings) -> DataFrame:
    """New messages. `starts` counts when the checkpoint is new; what is deleted while we read is an error, never passed over."""
    reader = spark.readStream.format("kafka").options(**options).option("subscribe", topic).option("includeHeaders", "true")
    reader = reader.option("startingOffsets", json.dumps({topic: starts})).option("failOnDataLoss", "true")
    return reader.option("maxOffsetsPerTrigger", settings.kafka_batch_messages).load()


def whole(messages: DataFrame, suffix: str) -> DataFrame:
    """Every message as it is, with the names that `raw_messages` has for things."""
    return messages.select(
        F.concat("topic", F.lit("-"), F.col("partition").cast("string"), F.lit(suffix)).alias("source"),
        F.col("offset").alias("position"),
        "key",
        "value",
        "headers",
        F.col("timestamp").alias("arrived_at"),
    )


def decoded(raw_messages: DataFrame, settings: Settings) -> DataFrame:
    """Every message's line, judged once: readings, bad lines, and rows with their counts."""
    return raw_messages.select("source", "position", "arrived_at", "value").mapInArrow(partial(_decode, settings), DECODED)


def _decode(settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for source in batch["source"].unique().to_pylist():
            rows = batch.filter(pa.compute.equal(batch["source"], source))
            lines = Lines([line_of(value) for value in rows["value"].to_pylist()], rows["position"].to_numpy())
            arrived_ms = rows["arrived_at"].cast(pa.int64()).to_numpy() // 1000
            yield from decode_messages(lines, np.asarray(arrived_ms, np.int64), source, settings)


def line_of(value: bytes | None) -> bytes:
    """A message's line, without what belongs to no line: a byte-order mark, a line's end. A tombstone's is blank."""
    if value is None:
        return b""
    line = value[:-1].removesuffix(b"\r") if value.endswith(b"\n") else value
    return line.removeprefix(BOM)
