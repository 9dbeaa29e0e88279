"""Landing files: which there are, which changed after they were taken, and their lines as a frame."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from include.settings import Settings
from spark_jobs.readers.decoder import Slice, decode
from spark_jobs.runtime import storage
from spark_jobs.runtime.entry import Entry, is_hidden
from spark_jobs.runtime.errors import Stop

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
UNKNOWN_LETTER = "\ufffd"  # in Java's spelling of a name that is not UTF-8
BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
DECODED = """kind tinyint, source string, position bigint, arrived_at timestamp, sensor_id string, store_id string,
    event_ts timestamp, temperature_mc int, door_open boolean, battery_pct double, event_id string, line binary,
    reasons array<string>, lines bigint, blank bigint, sha256 string, bytes bigint, hours array<bigint>"""


@dataclass(frozen=True)
class Landing:
    """The landing folder beside what `raw_files` knows of it."""

    files: list[Entry]
    ignored: int  # files with another ending
    taken: dict[str, tuple[int, int]]  # by path: size and time when it was last taken
    misnamed: list[str]  # as they can be printed: names that are not UTF-8, which no table could hold

    @property
    def new(self) -> list[Entry]:
        return [file for file in self.files if file.path not in self.taken]

    @property
    def changed(self) -> list[Entry]:
        """Files that now have another size or time than when they were taken."""
        known = (file for file in self.files if file.path in self.taken)
        return sorted((file for file in known if self.taken[file.path] != (file.size, file.modified_ms)), key=lambda file: file.path)


def landing(settings: Settings, raw_files: list[dict[str, Any]]) -> Landing:
    """`raw_files` are the table's rows: of several about one file the last one counts."""
    taken = {
        row["source"]: (row["bytes"], round(row["arrived_at"].timestamp() * 1000)) for row in sorted(raw_files, key=lambda row: row["seq"])
    }
    files, ignored, misnamed = [], 0, []
    for entry in storage.files(settings.landing):
        if not entry.path.endswith(ENDINGS):
            ignored += 1
        elif _is_text(entry.path):
            files.append(entry)
        else:
            misnamed.append(os.fsencode(entry.path).decode("utf-8", "backslashreplace"))
    return Landing(files, ignored, taken, misnamed)


def _is_text(path: str) -> bool:
    """Python stands in lone surrogates for bytes that are not UTF-8, and does not write them."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def slices(files: list[Entry], settings: Settings) -> list[Slice]:
    """What tasks read: a packed file whole, a large plain one in parts."""
    parts = []
    for file in sorted(files, key=lambda file: file.path):
        if file.size <= settings.split_bytes or not file.path.endswith(".jsonl"):
            parts.append(Slice(file.path, file.modified_ms))
            continue
        starts = range(0, file.size, settings.split_bytes)
        parts.append(Slice(file.path, file.modified_ms, 0, 0))
        parts += [Slice(file.path, file.modified_ms, start, start + settings.split_bytes) for start in starts[:-1]]
        parts.append(Slice(file.path, file.modified_ms, starts[-1], None))  # open: it may have grown since it was listed
    return parts


def decoded(spark: SparkSession, parts: list[Slice], settings: Settings) -> DataFrame:
    """Every line of the slices, judged once: readings, bad lines, and a row per slice with its counts."""
    context = spark.sparkContext
    few = context.defaultParallelism  # many small files are soonest read by few tasks
    tasks = max(1, min(len(parts), few if all(part.end is None and part.start == 0 for part in parts) else 4 * few))
    rows = context.parallelize([(part.source, part.arrived_ms, part.start, part.end) for part in parts], tasks)
    named = spark.createDataFrame(rows, "source string, arrived_ms bigint, start bigint, end bigint")
    return named.mapInArrow(partial(_decode_slices, settings), DECODED)


def _decode_slices(settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            with storage.open_file(row["source"]) as stream:
                yield from decode(Slice(**row), stream, settings)


def stream(spark: SparkSession, settings: Settings) -> DataFrame:
    """New files by name; their content is not read here, and none is ever too old to be taken."""
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).option("recursiveFileLookup", "true").option("maxFileAge", "36500d")
    reader = reader.option("pathGlobFilter", "*.{jsonl,jsonl.gz,jsonl.zst}").option("ignoreMissingFiles", "true")
    files = reader.option("maxBytesPerTrigger", settings.batch_bytes).load(settings.landing)
    return files.select("path")


def named(paths: list[str], landing: Landing, settings: Settings) -> list[Entry]:
    """The stream's files as a listing has them: asked for one file, as Spark does, some S3 servers tell its time to the second only."""
    files = {file.path: file for file in landing.files}
    # A local file has no scheme of ours before it; Spark's listing lets names like `_day=1` through, and misnamed files, in its own spelling.
    shown = [
        path
        for path in (re.sub("^file:(//)?", "", path) for path in paths)
        if not any(map(is_hidden, path.removeprefix(settings.landing).split("/"))) and (UNKNOWN_LETTER not in path or path in files)
    ]
    if any(path not in files for path in shown):  # it came since then
        files |= {file.path: file for file in storage.files(settings.landing)}
    if gone := [path for path in shown if path not in files]:
        raise Stop(f"{gone[0]} was there when this run began and is gone: nothing of this batch was taken, start the run again.")
    return [files[path] for path in shown]
