"""From the lines of one landing file, or of messages, to Arrow rows: readings, bad lines with their reasons, and the counts of the whole.

Good lines take a fast path (a typed, strict JSON decoder, then whole columns at a time); whatever it does not take is
given to `judge`, line by line. The two agree, and a test says so.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.settings import Settings
from spark_jobs.readers.judge import YEAR_2000_MS, Verdict, is_blank, judge
from spark_jobs.readers.line_splitter import BrokenOff, Lines, split
from spark_jobs.readers.unpacker import Readable, unpacked

Milliseconds: TypeAlias = npt.NDArray[np.int64]

READING, BAD, FILE = 0, 1, 2
MICROSECONDS_PER_HOUR = 3_600_000_000

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
        ("hours", pa.list_(pa.int64())),
    ]
)
UP_TO_SECONDS, LONGEST_TIME = b"0000-00-00T00:00:00", 30  # 0 stands for any digit; a fraction and Z may follow


class _Reading(msgspec.Struct, gc=False):
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


@dataclass(frozen=True)
class _Judged:
    """A line that the fast path did not take."""

    position: int
    arrived_ms: int
    line: bytes
    verdict: Verdict


@dataclass
class _Books:
    lines: int = 0
    blank: int = 0
    hours: set[int] = field(default_factory=set)  # since 1970, that its readings lie in
    bad: list[_Judged] = field(default_factory=list)


def decode(part: Slice, stream: Readable, settings: Settings) -> Iterator[pa.RecordBatch]:
    """All rows of one slice; the last one is the file's own (`kind` FILE) with its counts."""
    books = _Books()
    hashing = _Hashing(stream) if part.start == 0 and not part.end else None
    try:
        for lines in split(unpacked(part.source, hashing or stream), settings.max_line_bytes, part.start, part.end):
            arrived_ms = np.full(len(lines.texts), part.arrived_ms, np.int64)
            yield from _rows(lines, arrived_ms, part.source, settings, books)
    except BrokenOff as broken:
        books.lines += 1
        books.bad.append(_Judged(broken.position, part.arrived_ms, broken.rest, Verdict(("truncated_file",))))
    if books.bad:
        yield _bad_rows(books.bad, part.source, settings)
    yield _file_row(part.source, part.arrived_ms, books, hashing.finish() if hashing else (None, None))


def decode_messages(lines: Lines, arrived_ms: Milliseconds, source: str, settings: Settings) -> Iterator[pa.RecordBatch]:
    """All rows of some messages of one topic and partition, each with its own arrival; the last one has their counts, as for a file."""
    books = _Books()
    yield from _rows(lines, arrived_ms, source, settings, books)
    if books.bad:
        yield _bad_rows(books.bad, source, settings)
    yield _file_row(source, int(arrived_ms[-1]), books, (None, None))


def _rows(lines: Lines, arrived_ms: Milliseconds, source: str, settings: Settings, books: _Books) -> Iterator[pa.RecordBatch]:
    books.lines += len(lines.texts)
    good, rest = fast_readings(lines, arrived_ms, settings)
    slow: list[_Judged] = []
    for index in rest:
        line, arrived = lines.texts[index], int(arrived_ms[index])
        if is_blank(line):
            books.blank += 1
            continue
        judged = _Judged(int(lines.positions[index]), arrived, line, judge(line, arrived, settings))
        (books.bad if judged.verdict.reasons else slow).append(judged)
    for readings in ([_batch(source, good)] if good is not None else []) + ([_slow_rows(slow, source)] if slow else []):
        books.hours.update(np.unique(readings["event_ts"].cast(pa.int64()).to_numpy() // MICROSECONDS_PER_HOUR).tolist())
        yield readings
    if len(books.bad) >= 1000:
        yield _bad_rows(books.bad, source, settings)
        books.bad.clear()


def fast_readings(lines: Lines, arrived_ms: Milliseconds, settings: Settings) -> tuple[dict[str, Any] | None, list[int]]:
    """The columns of the lines that are surely good, and the indexes of all others."""
    readings, index_of, rest = _decoded(lines.texts, settings.max_line_bytes)
    if not readings:
        return None, rest
    event_ms, is_time = plain_times(pa.array([reading.event_ts for reading in readings], pa.string()))
    thousandths = np.rint(np.array([reading.temperature for reading in readings]) * 1000)
    battery_pct = pa.array([reading.battery_pct for reading in readings], pa.float64())
    battery = pc.fill_null(battery_pct, 0).to_numpy() + 0.0  # −0 is 0
    sensor_id = pa.array([reading.sensor_id for reading in readings], pa.string())
    store_id = pa.array([reading.store_id for reading in readings], pa.string())
    good = (
        is_time
        & (event_ms >= YEAR_2000_MS)
        & (event_ms <= arrived_ms[index_of] + settings.future_tolerance_s * 1000)
        & (thousandths >= settings.lowest_temperature_c * 1000)
        & (thousandths <= settings.highest_temperature_c * 1000)
        & (battery >= 0)
        & (battery <= 100)
        & (pc.binary_length(sensor_id).to_numpy() > 0)
        & (pc.binary_length(store_id).to_numpy() > 0)
    )
    columns = {
        "position": pa.array(lines.positions[index_of]),
        "arrived_at": _timestamps(arrived_ms[index_of]),
        "sensor_id": sensor_id,
        "store_id": store_id,
        "event_ts": _timestamps(event_ms),
        "temperature_mc": pa.array(np.where(good, thousandths, 0).astype(np.int32)),
        "door_open": pa.array([reading.door_open for reading in readings], pa.bool_()),
        "battery_pct": pa.array(battery, mask=battery_pct.is_null().to_numpy(zero_copy_only=False)),
        "event_id": pa.array([reading.event_id for reading in readings], pa.string()),
    }
    if not good.all():
        rest = sorted(rest + index_of[~good].tolist())
        columns = {name: column.filter(pa.array(good)) for name, column in columns.items()}
    return (columns if good.any() else None), rest


def _decoded(texts: list[bytes], limit: int) -> tuple[list[_Reading], npt.NDArray[np.int64], list[int]]:
    """What the typed decoder takes, at which indexes, and the indexes of the rest."""
    # What the decoder skips it does not look at closely: escapes and other alphabets are judged the slow way.
    is_plain = np.fromiter((text.isascii() and b"\\" not in text and len(text) <= limit for text in texts), bool, len(texts))
    index_of = np.flatnonzero(is_plain)
    readings: list[_Reading] = []
    failed: list[int] = []
    decoded = map(_decode, itertools.compress(texts, is_plain))
    while True:
        try:
            readings.extend(decoded)
            break
        except (ValueError, RecursionError):  # the iterator goes on with the line after it
            failed.append(len(readings) + len(failed))
    rest = np.flatnonzero(~is_plain).tolist() + index_of[failed].tolist()
    return readings, np.delete(index_of, failed), sorted(rest)


def plain_times(column: pa.StringArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Milliseconds of the times written the usual way (2025-11-08T15:32:12.123Z), and which those are; the rest is for `judge`."""
    _, offsets_buffer, letters_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[: len(column) + 1]
    letters = np.frombuffer(letters_buffer or b"", np.uint8)
    lengths = np.diff(offsets)
    event_ms, is_time = np.zeros(len(column), np.int64), np.zeros(len(column), bool)
    for length in np.unique(lengths):
        if length == len(UP_TO_SECONDS) + 1 or len(UP_TO_SECONDS) + 3 <= length <= LONGEST_TIME:  # Z alone, or . a digit and Z
            rows = np.flatnonzero(lengths == length)
            event_ms[rows], is_time[rows] = _times_of_one_length(letters[offsets[rows, None] + np.arange(length)])
    return event_ms, is_time


def _times_of_one_length(letters: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """One row of letters each; the form is checked letter by letter, then that there is such a day and time of day."""
    digits = letters.astype(np.int64) - ord("0")
    form = np.frombuffer((UP_TO_SECONDS + b".").ljust(letters.shape[1] - 1, b"0")[: letters.shape[1] - 1] + b"Z", np.uint8)
    is_time = np.where(form == ord("0"), (digits >= 0) & (digits <= 9), letters == form).all(axis=1)

    def number(start: int, end: int) -> npt.NDArray[np.int64]:
        return digits[:, start:end] @ (10 ** np.arange(end - start - 1, -1, -1))

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    hour, minute, second = number(11, 13), number(14, 16), number(17, 19)
    is_time &= (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 60)
    months = ((np.where(is_time, year, 1970) - 1970) * 12 + np.where(is_time, month, 1) - 1).astype("datetime64[M]")
    first, next_first = (start.astype("datetime64[D]").astype(np.int64) for start in (months, months + 1))
    is_time &= day <= next_first - first
    fraction = digits[:, 20 : min(23, letters.shape[1] - 1)]  # cut to the millisecond
    milliseconds = fraction @ (100 // 10 ** np.arange(fraction.shape[1]))
    seconds = ((first + day - 1) * 24 + hour) * 3600 + minute * 60 + second
    return np.where(is_time, seconds * 1000 + milliseconds, 0), is_time


def _slow_rows(slow: list[_Judged], source: str) -> pa.RecordBatch:
    verdicts = [each.verdict for each in slow]
    return _batch(
        source,
        {
            **_places(slow),
            "event_ts": _timestamps(np.array([verdict.event_ms for verdict in verdicts], np.int64)),
            **{
                name: [getattr(verdict, name) for verdict in verdicts]
                for name in ("sensor_id", "store_id", "temperature_mc", "door_open", "battery_pct", "event_id")
            },
        },
    )


def _bad_rows(bad: list[_Judged], source: str, settings: Settings) -> pa.RecordBatch:
    return _batch(
        source,
        {
            **_places(bad),
            "line": [each.line[: settings.max_line_bytes] for each in bad],
            "reasons": [list(each.verdict.reasons) for each in bad],
            "store_id": [each.verdict.store_id for each in bad],
        },
        BAD,
    )


def _places(judged: list[_Judged]) -> dict[str, Any]:
    arrivals = np.array([each.arrived_ms for each in judged], np.int64)
    return {"position": [each.position for each in judged], "arrived_at": _timestamps(arrivals)}


def _file_row(source: str, arrived_ms: int, books: _Books, checksum: tuple[str | None, int | None]) -> pa.RecordBatch:
    sha256, size = checksum
    counts = {"lines": [books.lines], "blank": [books.blank], "sha256": [sha256], "bytes": [size], "hours": [sorted(books.hours)]}
    return _batch(source, {"arrived_at": _timestamps(np.array([arrived_ms], np.int64)), **counts}, FILE)


def _batch(source: str, columns: dict[str, Any], kind: int = READING) -> pa.RecordBatch:
    rows = len(columns["arrived_at"])
    columns["kind"] = np.full(rows, kind, np.int8)
    columns["source"] = pa.repeat(source, rows)
    return pa.RecordBatch.from_arrays([_array(columns.get(item.name), item.type, rows) for item in SCHEMA], schema=SCHEMA)


def _array(values: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, kind)
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _timestamps(milliseconds: Milliseconds) -> pa.Array:
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
