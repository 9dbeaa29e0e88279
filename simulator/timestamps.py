"""Times are whole milliseconds since 1970 in UTC; people read and write ISO 8601."""

from datetime import UTC, datetime, timedelta, timezone

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_iso(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def from_datetime(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def to_datetime(ms: int, offset_minutes: int = 0) -> datetime:
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.astimezone(timezone(timedelta(minutes=offset_minutes))) if offset_minutes else moment


def to_iso(ms: int) -> str:
    """As short as the moment allows: 2025-11-08T06:00:00Z, or with milliseconds where there are any."""
    precision = "milliseconds" if ms % SECOND else "seconds"
    return to_datetime(ms).isoformat(timespec=precision)[:-6] + "Z"


def reading_time(ms: int) -> str:
    """As a sensor writes it: always with milliseconds."""
    return to_datetime(ms).isoformat(timespec="milliseconds")[:-6] + "Z"


def clock_time(ms: int) -> str:
    return f"{to_datetime(ms):%H:%M}"
