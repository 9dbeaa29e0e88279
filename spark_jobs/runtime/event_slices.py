"""Which stretches of event time a batch touches, as a filter that lets a read pass most files over."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MOST_RANGES = 50
HOUR_S = 3600


def hour_of(column: str) -> Column:
    """The hour, counted from 1970, that a time lies in."""
    return F.floor(F.unix_seconds(column) / HOUR_S)


def touched_hours(rows: DataFrame) -> list[int]:
    """The hours that the rows' event times lie in, each once."""
    hours = rows.select(hour_of("event_ts").alias("hour")).filter("hour is not null").distinct()
    return sorted(row.hour for row in hours.collect())


def day(hour: int) -> date:
    return datetime.fromtimestamp(hour * HOUR_S, UTC).date()


def within(hours: list[int], column: str = "event_ts", date: str | None = "event_date") -> Column:
    """Rows in those hours; many scattered ones are taken together with what lies between them."""
    ranges = _ranges(hours)
    return reduce(lambda left, right: left | right, (_between(first, last, column, date) for first, last in ranges), F.lit(False))


def _ranges(hours: list[int]) -> list[tuple[int, int]]:
    gap, ranges = 1, _joined(hours, 1)
    while len(ranges) > MOST_RANGES:
        gap *= 4
        ranges = _joined(hours, gap)
    return ranges


def _joined(hours: list[int], gap: int) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for hour in hours:
        if ranges and hour - ranges[-1][1] <= gap:
            ranges[-1] = (ranges[-1][0], hour)
        else:
            ranges.append((hour, hour))
    return ranges


def _between(first: int, last: int, column: str, date: str | None) -> Column:
    start = datetime.fromtimestamp(first * HOUR_S, UTC)
    end = datetime.fromtimestamp((last + 1) * HOUR_S, UTC)
    inside = (F.col(column) >= F.lit(start)) & (F.col(column) < F.lit(end))
    if date is not None:
        inside = inside & F.col(date).between(F.lit(start.date()), F.lit((end - timedelta(microseconds=1)).date()))
    return inside
