"""From the bytes of one landing file to Arrow rows: readings, bad lines with their reasons, and the file's own counts.

Good lines take a fast path (a typed, strict JSON decoder, then whole columns at a time); whatever it does not take is
given to `judge`, line by line. The two agree, and a test says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.settings import Settings
from spark_jobs.readers.judge import YEAR_2000_MS, Verdict, is_blank, judge
from spark_jobs.readers.line_splitter import BrokenOff, Lines, split
from spark_jobs.readers.unpacker import Readable, unpacked

READING, BAD, FILE = 0, 1, 2

SCHEMA = pa.schema(
    [
        ("kind", pa.int8()),
        ("source", pa.string()),
        ("position", pa.int64()),
        ("arrived_at", pa.timestamp("us", "UTC")),
        ("sensor_id", pa.string()),
        ("store_id", pa.string()),
        ("event_ts", pa.timestamp("us", "UTC")),
        ("temperature_mc", pa.int32()),
        ("door_open", pa.bool_()),
        ("battery_pct", pa.float64()),
        ("event_id", pa.string()),
        ("line", pa.binary()),
        ("reasons", pa.list_(pa.string())),
        ("lines", pa.int64()),
        ("blank", pa.int64()),
        ("sha256", pa.string()),
        ("bytes", pa.int64()),
    ]
)
PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,3})?Z$"


class _Reading(msgspec.Struct):
    sensor_id: str
    store_id: str
    temperature: float
    event_ts: str
    door_open: bool | None = None
    battery_pct: float | None = None
    event_id: str | None = None


_decode = msgspec.json.Decoder(_Reading).decode


@dataclass
class Slice:
    """A part of a landing file that one task reads: the lines that start in [start, end); an empty part is for the checksum."""

    source: str
    arrived_ms: int
    start: int = 0
    end: int | None = None


@dataclass
class _Books:
    lines: int = 0
    blank: int = 0
    bad: list[tuple[int, bytes, Verdict]] = field(default_factory=list)


def decode(part: Slice, stream: Readable, settings: Settings) -> Iterator[pa.RecordBatch]:
    """All rows of one slice; the last one is the file's own (`kind` FILE) with its counts."""
    books = _Books()
    hashing = _Hashing(stream) if part.start == 0 and not part.end else None
    try:
        for lines in split(unpacked(part.source, hashing or stream), settings.max_line_bytes, part.start, part.end):
            yield from _rows(lines, part, settings, books)
    except BrokenOff as broken:
        books.lines += 1
        books.bad.append((broken.position, broken.rest, Verdict(("truncated_file",))))
    if books.bad:
        yield _bad_rows(books.bad, part, settings)
    yield _file_row(part, books, hashing.finish() if hashing else (None, None))


def _rows(lines: Lines, part: Slice, settings: Settings, books: _Books) -> Iterator[pa.RecordBatch]:
    books.lines += len(lines.texts)
    good, rest = fast_readings(lines, part.arrived_ms, settings)
    slow: list[tuple[int, Verdict]] = []
    for index in rest:
        line, position = lines.texts[index], int(lines.positions[index])
        if is_blank(line):
            books.blank += 1
            continue
        verdict = judge(line, part.arrived_ms, settings)
        if verdict.reasons:
            books.bad.append((position, line, verdict))
        else:
            slow.append((position, verdict))
    if good is not None:
        yield _batch(part, good)
    if slow:
        yield _slow_rows(slow, part)
    if len(books.bad) >= 1000:
        yield _bad_rows(books.bad, part, settings)
        books.bad.clear()


def fast_readings(lines: Lines, arrived_ms: int, settings: Settings) -> tuple[dict[str, Any] | None, list[int]]:
    """The columns of the lines that are surely good, and the indexes of all others."""
    readings: list[_Reading] = []
    taken: list[int] = []
    rest: list[int] = []
    limit = settings.max_line_bytes
    for index, line in enumerate(lines.texts):
        try:
            # What the decoder skips it does not look at closely: escapes and other alphabets are judged the slow way.
            if b"\\" in line or not line.isascii() or len(line) > limit:
                raise ValueError
            reading = _decode(line)
        except (ValueError, RecursionError):
            rest.append(index)
            continue
        readings.append(reading)
        taken.append(index)
    if not readings:
        return None, rest

    event_ms, is_time = plain_times([reading.event_ts for reading in readings])
    temperature = np.array([reading.temperature for reading in readings])
    battery = np.array([reading.battery_pct for reading in readings], dtype=np.float64)  # None becomes nan
    thousandths = np.rint(temperature * 1000)
    good = (
        is_time
        & (event_ms >= YEAR_2000_MS)
        & (event_ms <= arrived_ms + settings.future_tolerance_s * 1000)
        & (thousandths >= settings.lowest_temperature_c * 1000)
        & (thousandths <= settings.highest_temperature_c * 1000)
        & (np.isnan(battery) | ((battery >= 0) & (battery <= 100)))
        & np.array([bool(reading.sensor_id and reading.store_id) for reading in readings])
    )
    index_of = np.array(taken)
    if not good.all():
        rest = sorted(rest + index_of[~good].tolist())
        readings = [reading for reading, is_good in zip(readings, good.tolist(), strict=True) if is_good]
        if not readings:
            return None, rest
    battery = battery[good]
    return {
        "position": lines.positions[index_of[good]],
        "sensor_id": [reading.sensor_id for reading in readings],
        "store_id": [reading.store_id for reading in readings],
        "event_ts": _timestamps(event_ms[good]),
        "temperature_mc": thousandths[good].astype(np.int32),
        "door_open": [reading.door_open for reading in readings],
        "battery_pct": pa.array(battery + 0.0, mask=np.isnan(battery)),
        "event_id": [reading.event_id for reading in readings],
    }, rest


def plain_times(texts: list[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Milliseconds of the times written the usual way, and which those are; the rest is for `judge`."""
    column = pa.array(texts, pa.string())
    is_plain = pc.match_substring_regex(column, PLAIN_TIME)
    plain = pc.if_else(is_plain, column, pa.scalar(None, pa.string()))
    try:
        parsed = pc.cast(plain, pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:  # one of them is no date, such as 30 February: let each be judged
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    return pc.fill_null(pc.cast(parsed, pa.int64()), 0).to_numpy(), is_plain.to_numpy(zero_copy_only=False)


def _slow_rows(slow: list[tuple[int, Verdict]], part: Slice) -> pa.RecordBatch:
    verdicts = [verdict for _, verdict in slow]
    return _batch(
        part,
        {
            "position": [position for position, _ in slow],
            "event_ts": _timestamps(np.array([verdict.event_ms for verdict in verdicts], np.int64)),
            **{
                name: [getattr(verdict, name) for verdict in verdicts]
                for name in ("sensor_id", "store_id", "temperature_mc", "door_open", "battery_pct", "event_id")
            },
        },
    )


def _bad_rows(bad: list[tuple[int, bytes, Verdict]], part: Slice, settings: Settings) -> pa.RecordBatch:
    return _batch(
        part,
        {
            "position": [position for position, _, _ in bad],
            "line": [line[: settings.max_line_bytes] for _, line, _ in bad],
            "reasons": [list(verdict.reasons) for _, _, verdict in bad],
            "store_id": [verdict.store_id for _, _, verdict in bad],
        },
        BAD,
    )


def _file_row(part: Slice, books: _Books, checksum: tuple[str | None, int | None]) -> pa.RecordBatch:
    sha256, size = checksum
    return _batch(part, {"lines": [books.lines], "blank": [books.blank], "sha256": [sha256], "bytes": [size]}, FILE)


def _batch(part: Slice, columns: dict[str, Any], kind: int = READING) -> pa.RecordBatch:
    rows = len(next(iter(columns.values())))
    columns["kind"] = np.full(rows, kind, np.int8)
    columns["source"] = pa.repeat(part.source, rows)
    columns["arrived_at"] = _timestamps(np.full(rows, part.arrived_ms, np.int64))
    return pa.RecordBatch.from_arrays([_array(columns.get(item.name), item.type, rows) for item in SCHEMA], schema=SCHEMA)


def _array(values: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, kind)
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _timestamps(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(milliseconds * 1000, pa.timestamp("us", "UTC"))


class _Hashing:
    """Passes bytes on, and knows the checksum of all of them when asked."""

    def __init__(self, stream: Readable) -> None:
        self._stream, self._sha256, self._size = stream, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self._sha256.update(piece)
        self._size += len(piece)
        return piece

    def finish(self) -> tuple[str, int]:
        while self.read(1 << 20):
            pass
        return self._sha256.hexdigest(), self._size
