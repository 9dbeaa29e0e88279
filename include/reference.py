"""The reference files: sensors, limits and suppressions, checked line by line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from include.settings import TEN_YEARS_S


def _text(cell: str) -> str:
    return cell


def _time(cell: str) -> datetime:
    """A date, or a time with or without an offset: people write these files by hand, and without one UTC is meant."""
    moment = datetime.fromisoformat(cell)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _degrees(cell: str) -> float:
    degrees = float(cell)
    if not math.isfinite(degrees):
        raise ValueError
    return degrees


def _whole_seconds(cell: str) -> int:
    seconds = int(cell)
    if not 0 < seconds <= TEN_YEARS_S:
        raise ValueError
    return seconds


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    parse: Callable[[str], Any]
    required: bool = False


@dataclass(frozen=True)
class ReferenceFile:
    name: str
    fields: tuple[Field, ...]
    intervals: tuple[str, str]
    unique: str = ""


FILES = (
    ReferenceFile(
        "sensors",
        (
            Field("sensor_id", "string", _text, required=True),
            Field("store_id", "string", _text, required=True),
            Field("active_from", "timestamp", _time),
            Field("retired_at", "timestamp", _time),
            Field("silent_after_s", "bigint", _whole_seconds),
            Field("expected_every_s", "bigint", _whole_seconds),
        ),
        intervals=("active_from", "retired_at"),
        unique="sensor_id",
    ),
    ReferenceFile(
        "limits",
        (
            Field("store_id", "string", _text, required=True),
            Field("valid_from", "timestamp", _time),
            Field("valid_to", "timestamp", _time),
            Field("low_c", "double", _degrees),
            Field("high_c", "double", _degrees),
        ),
        intervals=("valid_from", "valid_to"),
    ),
    ReferenceFile(
        "suppressions",
        (
            Field("store_id", "string", _text, required=True),
            Field("sensor_id", "string", _text),
            Field("rule", "string", _text),
            Field("from", "timestamp", _time),
            Field("to", "timestamp", _time),
            Field("reason", "string", _text),
        ),
        intervals=("from", "to"),
    ),
)

Rows = list[dict[str, Any]]


class BrokenReference(Exception):
    """Names file, line and what to do."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}.csv line {line}: {problem}; nothing was changed. Correct the file and run the pass again.")


def parsed(name: str, content: bytes) -> Rows:
    """The rows of one file; an empty one has none."""
    file = next(file for file in FILES if file.name == name)
    try:
        return _read(file, content.decode("utf-8"))
    except UnicodeDecodeError as odd:
        line = odd.object[: odd.start].count(b"\n") + 1
        raise BrokenReference(file.name, line, "it is not UTF-8 text") from None


def _read(file: ReferenceFile, text: str) -> Rows:
    lines = _lines(file, text)
    header_line, header = next(lines, (0, []))
    if not header:
        return []
    header = [name.strip() for name in header]
    if missing := [field.name for field in file.fields if field.name not in header]:
        raise BrokenReference(file.name, header_line, f"the column {missing[0]} is missing")
    if twice := [name for name in header if name and header.count(name) > 1]:
        raise BrokenReference(file.name, header_line, f"the column {twice[0]} stands there twice")
    rows: Rows = []
    seen: dict[str, int] = {}
    for line, cells in lines:
        if len(cells) > len(header):
            raise BrokenReference(file.name, line, f"it has {len(cells)} cells, and the header {len(header)}")
        row = _row(file, line, dict(zip(header, cells, strict=False)))
        if file.unique:
            first = seen.setdefault(row[file.unique], line)
            if first != line:
                raise BrokenReference(file.name, line, f"{file.unique} {row[file.unique]} stands in line {first} already")
        rows.append(row)
    return rows


def _lines(file: ReferenceFile, text: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any, with the number of the line they start in."""
    table = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=None), strict=True)
    while True:
        line = table.line_num + 1
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as odd:
            raise BrokenReference(file.name, line, f"its cells cannot be told apart ({odd}): look at its quotes") from None
        if any(cell.strip() for cell in cells):
            yield line, cells


def _row(file: ReferenceFile, line: int, cells: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"line": line}
    for field in file.fields:
        cell = (cells.get(field.name) or "").strip()
        if cell == "" and field.required:
            raise BrokenReference(file.name, line, f"{field.name} is empty")
        try:
            row[field.name] = field.parse(cell) if cell else None
        except (ValueError, OverflowError):  # a time that UTC has no date for
            raise BrokenReference(file.name, line, f"{field.name} {cell!r} cannot be read as {_kind(field)}") from None
    start, end = (row[name] for name in file.intervals)
    if start is not None and end is not None and end < start:
        raise BrokenReference(file.name, line, f"{file.intervals[1]} {_cell(end)} lies before {file.intervals[0]} {_cell(start)}")
    low, high = row.get("low_c"), row.get("high_c")
    if low is not None and high is not None and low > high:
        raise BrokenReference(file.name, line, f"low_c {low:g} lies above high_c {high:g}")
    return row


def _kind(field: Field) -> str:
    if field.parse is _time:
        return "a time like 2025-11-08T15:30:00Z"
    return "a number" if field.parse is _degrees else "a whole number of seconds from 1 to ten years"


def _cell(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
