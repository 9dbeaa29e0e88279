"""Event time as section 3 has it: watermark, frontier, finality, lateness; every time is an int of milliseconds since 1970 UTC.

Read as: "seen from that store" means the readings that won (P6); a quarantined line moves nobody's watermark.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from tests.oracle.lines import Reading

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

WATERMARK_DELAY = 30 * SECOND
SILENT_STORE_AFTER = 10 * MINUTE
ALLOWED_LATENESS = 2 * MINUTE
LATE_AFTER = 2 * MINUTE + 30 * SECOND


def window_start(moment: int, length: int) -> int:
    """The whole minute (or 5 minutes) of UTC that holds the moment."""
    return moment - moment % length


def heard_until(as_of: int) -> int:
    """How far silence can be judged."""
    return as_of - WATERMARK_DELAY


def frontier(readings_of_store: Iterable[Reading], as_of: int) -> int:
    """How far a store's event time has come; a silent store cannot hold its windows open."""
    watermark = max(reading.event_ms for reading in readings_of_store) - WATERMARK_DELAY
    return max(watermark, as_of - SILENT_STORE_AFTER)


def is_final(window_end: int, store_frontier: int) -> bool:
    """Whether the allowed lateness after the window's end is over."""
    return store_frontier >= window_end + ALLOWED_LATENESS


def is_late(reading: Reading) -> bool:
    """Whether the reading arrived when its minute may have been final."""
    minute_end = window_start(reading.event_ms, MINUTE) + MINUTE
    return reading.arrived_ms >= minute_end + LATE_AFTER


def as_text(moment: int) -> str:
    """The moment as `2025-11-08T15:32:12.123Z`."""
    whole_seconds, milliseconds = divmod(moment, SECOND)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole_seconds)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"
