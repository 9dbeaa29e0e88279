"""One line of input and its arrival: a reading, a rejected line with all its reasons, or a blank.

Read as:
- blank goes before `line_too_long`: a line of spaces and tabs only is blank however long it is;
- of the reasons that stand alone the first that a reader meets counts: line_too_long, invalid_utf8, malformed_json, not_an_object;
- a lone surrogate is malformed wherever it is: in a name, an unknown field, or a value that a repeated key overrides;
- the 64 KiB are counted without line end and byte-order mark ("belong to no line"); one byte-order mark is taken off, a second is malformed;
- an empty event_ts is bad_event_ts, not missing (only ids are said to be missing when empty); an empty event_id is text;
- a fraction has at least one digit; hours 00-23, seconds 00-59, offsets up to 23:59; `T` and `Z` in capitals; no leap second, no 24:00;
- the year 2000 and the 5 minutes of the future are judged in UTC, after the cut to the millisecond;
- an event_id that is not text is wrong_type_event_id;
- RFC 8259 lets a reader limit the depth of nesting: deeper than Python's reader goes (about 1000) is malformed.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

LONGEST_LINE_BYTES = 64 * 1024
FURTHEST_FUTURE_MS = 5 * 60_000
EARLIEST_EVENT_MS = (date(2000, 1, 1) - date(1970, 1, 1)).days * 86_400_000
COLDEST, WARMEST = -90_000, 60_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

EVENT_TS = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
)


@dataclass(frozen=True)
class Reading:
    """A valid line; the temperature in thousandths of a degree."""

    sensor_id: str
    store_id: str
    temperature: int
    event_ms: int
    arrived_ms: int
    door_open: bool | None = None
    battery_pct: float | None = None
    event_id: str | None = None


@dataclass(frozen=True)
class Rejected:
    """A line for the quarantine; the store where it could be read."""

    reasons: tuple[str, ...]
    store_id: str | None = None


@dataclass(frozen=True)
class Blank:
    """A line of spaces and tabs only: counted, not quarantined."""


class Malformed(ValueError):
    """The text is no JSON as RFC 8259 has it."""


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a whole file, without their ends."""
    *ended, rest = text.split(b"\n")
    # A lone CR ends nothing, so it is taken off only in front of an LF.
    lines = [line.removesuffix(b"\r") for line in ended]
    return [*lines, rest] if rest else lines


def read_line(line: bytes, arrived_ms: int) -> Reading | Rejected | Blank:
    """What the line says, or why it says nothing."""
    content = _without_line_end(line).removeprefix(BYTE_ORDER_MARK)
    if not content.strip(b" \t"):
        return Blank()
    if len(content) > LONGEST_LINE_BYTES:
        return Rejected(("line_too_long",))
    try:
        value = _parse_json(content.decode("utf-8"))
    except UnicodeDecodeError:
        return Rejected(("invalid_utf8",))
    except Malformed:
        return Rejected(("malformed_json",))
    if not isinstance(value, _JsonObject):
        return Rejected(("not_an_object",))
    return _read_fields(value.fields(), arrived_ms)


def thousandths(celsius: float) -> int | None:
    """rint(temperature × 1000) of the double product, half to even; None when that is not finite."""
    product = float(celsius) * 1000.0
    return round(product) if math.isfinite(product) else None


def parse_event_ts(text: str) -> int | None:
    """Milliseconds of the instant, cut; None when the text names no instant."""
    match = EVENT_TS.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute = (int(part) for part in match.group(1, 2, 3, 4, 5))
    second = int(match.group(6) or 0)
    offset_hour, offset_minute = int(match.group(9) or 0), int(match.group(10) or 0)
    if hour > 23 or minute > 59 or second > 59 or offset_hour > 23 or offset_minute > 59:
        return None
    try:
        days = date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    milliseconds = int((match.group(7) or "")[:3].ljust(3, "0"))
    local = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milliseconds
    offset = (offset_hour * 60 + offset_minute) * 60_000
    return local + offset if match.group(8) == "-" else local - offset


def _without_line_end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line.removesuffix(b"\n")


class _JsonObject:
    """An object with every pair as written, so that nothing malformed hides behind a repeated key."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs

    def fields(self) -> dict[str, Any]:
        # Of a repeated key the last counts.
        return dict(self.pairs)


def _refuse_constant(name: str) -> None:
    raise Malformed(name)


def _parse_json(text: str) -> Any:
    try:
        # Every number is read as a double: an integer of any length must neither fail nor keep digits a double has not.
        value = json.loads(text, parse_int=float, parse_constant=_refuse_constant, object_pairs_hook=_JsonObject)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from error
    if _holds_lone_surrogate(value):
        raise Malformed("lone surrogate")
    return value


def _holds_lone_surrogate(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
            return True
        if isinstance(item, list):
            waiting.extend(item)
        if isinstance(item, _JsonObject):
            waiting.extend(part for pair in item.pairs for part in pair)
    return False


def _read_fields(fields: dict[str, Any], arrived_ms: int) -> Reading | Rejected:
    """The reading, or the reasons of all its fields together."""
    sensor_id, sensor_reason = _read_id(fields, "sensor_id")
    store_id, store_reason = _read_id(fields, "store_id")
    temperature, temperature_reason = _read_temperature(fields)
    event_ms, event_reason = _read_event_ts(fields, arrived_ms)
    door_open, door_reason = _read_optional(fields, "door_open", bool)
    battery_pct, battery_reason = _read_battery(fields)
    event_id, event_id_reason = _read_optional(fields, "event_id", str)
    found = (sensor_reason, store_reason, temperature_reason, event_reason, door_reason, battery_reason, event_id_reason)
    reasons = tuple(sorted(reason for reason in found if reason))
    if reasons:
        return Rejected(reasons, store_id)
    return Reading(sensor_id, store_id, temperature, event_ms, arrived_ms, door_open, battery_pct, event_id)


def _read_id(fields: dict[str, Any], name: str) -> tuple[Any, str | None]:
    value = fields.get(name)
    # An empty sensor_id or store_id is missing; ids are not trimmed.
    if value is None or value == "":
        return None, f"missing_{name}"
    return _read_optional(fields, name, str)


def _read_optional(fields: dict[str, Any], name: str, kind: type) -> tuple[Any, str | None]:
    value = fields.get(name)
    if value is None or isinstance(value, kind):
        return value, None
    return None, f"wrong_type_{name}"


def _read_temperature(fields: dict[str, Any]) -> tuple[int | None, str | None]:
    # Numbers are floats here, so a boolean is never taken for one.
    celsius, reason = _read_optional(fields, "temperature", float)
    if reason:
        return None, reason
    if celsius is None:
        return None, "missing_temperature"
    value = thousandths(celsius)
    if value is None or not COLDEST <= value <= WARMEST:
        return None, "temperature_out_of_range"
    return value, None


def _read_battery(fields: dict[str, Any]) -> tuple[float | None, str | None]:
    level, reason = _read_optional(fields, "battery_pct", float)
    if level is None:
        return None, reason
    if not 0 <= level <= 100:
        return None, "battery_out_of_range"
    # −0 is 0.
    return level + 0.0, None


def _read_event_ts(fields: dict[str, Any], arrived_ms: int) -> tuple[int | None, str | None]:
    text, reason = _read_optional(fields, "event_ts", str)
    if reason:
        return None, reason
    if text is None:
        return None, "missing_event_ts"
    event_ms = parse_event_ts(text)
    if event_ms is None or event_ms < EARLIEST_EVENT_MS:
        return None, "bad_event_ts"
    # More than 5 min after arrived_at; exactly 5 min is not.
    if event_ms > arrived_ms + FURTHEST_FUTURE_MS:
        return None, "event_ts_in_future"
    return event_ms, None
