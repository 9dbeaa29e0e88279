"""The raw line behind a row: by its source and position, read again from the landing file (or the archive), or from `raw_messages`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from include.settings import Settings
from spark_jobs.readers.kafka_messages import is_topic, line_of
from spark_jobs.readers.line_splitter import BLOCK_BYTES
from spark_jobs.readers.unpacker import Broken, Readable, unpacked
from spark_jobs.runtime import storage
from spark_jobs.runtime.small_tables import SmallTables


def archive_place(source: str, settings: Settings) -> str:
    return f"{settings.archive}/{source.removeprefix(settings.landing).lstrip('/')}" if settings.archive else ""


def lines_at(source: str, positions: list[int], settings: Settings) -> list[bytes | None]:
    """The lines at ascending positions of one source; None where a file does not reach that far (any more), or there is no such message."""
    if is_topic(source):
        return _messages_at(source, positions, settings)
    archived = archive_place(source, settings)
    place = archived if archived and not storage.exists(source) else source
    if not storage.exists(place):
        return [None for _ in positions]
    with storage.open_file(place) as stream:
        reader = _LineReader(unpacked(place, stream))
        return [reader.line_at(position) for position in positions]


def _messages_at(source: str, positions: list[int], settings: Settings) -> list[bytes | None]:
    reach = [
        ("source", "=", source),
        ("position", ">=", min(positions)),
        ("position", "<=", max(positions)),
    ]  # lets most files be passed over
    wanted = [*reach, ("position", "in", positions)]
    rows = SmallTables(settings.lake).rows("raw_messages", ["position", "value"], wanted)
    lines: dict[int, bytes] = {row["position"]: line_of(row["value"]) for row in rows}
    return [lines.get(position) for position in positions]


def with_raw_lines(rows: DataFrame, settings: Settings) -> DataFrame:
    """Fill `line` from the sources; each file is read once, by the task that has all its rows."""
    by_source = rows.repartition("source").sortWithinPartitions("source", "position")
    return by_source.mapInArrow(partial(_fill, settings), rows.schema)


def _fill(settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        lines: list[bytes | None] = []
        for source, rows in groupby(batch.select(["source", "position"]).to_pylist(), key=_source):
            lines += lines_at(source, [row["position"] for row in rows], settings)
        cut = [None if line is None else line[: settings.max_line_bytes] for line in lines]
        yield batch.set_column(batch.schema.get_field_index("line"), "line", pa.array(cut, pa.binary()))


def _source(row: dict[str, Any]) -> str:
    return str(row["source"])


class _LineReader:
    def __init__(self, stream: Readable) -> None:
        self._stream, self._block, self._offset, self._is_broken = stream, b"", 0, False

    def line_at(self, position: int) -> bytes | None:
        while self._offset + len(self._block) <= position:
            self._offset += len(self._block)
            self._block = self._read()
            if not self._block:
                return b"" if self._is_broken and self._offset == position else None  # all that is left of its last line
        end = self._block.find(b"\n", position - self._offset)
        while end < 0 and (piece := self._read()):
            searched = len(self._block)
            self._block += piece
            end = self._block.find(b"\n", searched)
        if end < 0:
            return self._block[position - self._offset :]
        return self._block[position - self._offset : end].removesuffix(b"\r")

    def _read(self) -> bytes:
        try:
            return self._stream.read(BLOCK_BYTES)
        except Broken:  # what there is of it was given before
            self._is_broken = True
            return b""
