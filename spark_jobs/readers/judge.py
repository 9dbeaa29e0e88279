"""Judge one line thoroughly: the reading it holds, or all the reasons why it holds none (P2).

The slow and complete word on a line; `decoder` asks it only about lines that its fast path did not take.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from include.settings import Settings

YEAR_2000_MS = 946_684_800_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVENT_TS = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
TEXT_FIELDS, NUMBER_FIELDS = ("sensor_id", "store_id", "event_ts", "event_id"), ("temperature", "battery_pct")
REQUIRED = ("sensor_id", "store_id", "temperature", "event_ts")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reading when there are no reasons; the store is told apart even for a bad line, where it can be read."""

    reasons: tuple[str, ...] = ()
    sensor_id: str | None = None
    store_id: str | None = None
    event_ms: int | None = None
    temperature_mc: int | None = None
    door_open: bool | None = None
    battery_pct: float | None = None
    event_id: str | None = None


class _Malformed(ValueError):
    pass


def is_blank(line: bytes) -> bool:
    return not line.strip(b" \t")


def judge(line: bytes, arrived_ms: int, settings: Settings) -> Verdict:
    if len(line) > settings.max_line_bytes:
        return Verdict(("line_too_long",))
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return Verdict(("invalid_utf8",))
    try:
        value = parse(text)
    except (_Malformed, json.JSONDecodeError, RecursionError):
        return Verdict(("malformed_json",))
    if not isinstance(value, dict):
        return Verdict(("not_an_object",))
    return _judge_fields(value, arrived_ms, settings)


def parse(text: str) -> Any:
    """JSON as RFC 8259 has it: stricter than the standard library's (no NaN, no lone surrogate)."""
    value = json.loads(text, object_pairs_hook=_checked_object, parse_constant=_refuse, parse_int=float)
    _check_text(value)
    return value


def _checked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, value in pairs:
        _check_text(key)
        _check_text(value)
    return dict(pairs)


def _check_text(value: Any) -> None:
    if isinstance(value, str):
        if LONE_SURROGATE.search(value):
            raise _Malformed("a lone surrogate")
    elif isinstance(value, list):
        for item in value:
            _check_text(item)


def _refuse(constant: str) -> None:
    raise _Malformed(constant)


def _judge_fields(fields: dict[str, Any], arrived_ms: int, settings: Settings) -> Verdict:
    present = {name: value for name, value in fields.items() if value is not None}
    for name in ("sensor_id", "store_id"):
        if present.get(name) == "":
            del present[name]
    wrong = {name for name in present if not _has_its_type(name, present[name])}
    reasons = [f"missing_{name}" for name in REQUIRED if name not in present]
    reasons += [f"wrong_type_{name}" for name in (*REQUIRED, "door_open", "battery_pct", "event_id") if name in wrong]
    right = {name: value for name, value in present.items() if name not in wrong}

    event_ms = event_time_ms(right["event_ts"]) if "event_ts" in right else None
    if "event_ts" in right and event_ms is None:
        reasons.append("bad_event_ts")
    elif event_ms is not None and event_ms > arrived_ms + settings.future_tolerance_s * 1000:
        reasons.append("event_ts_in_future")
    temperature_mc = thousandths(right["temperature"]) if "temperature" in right else None
    if "temperature" in right and not _in_range(temperature_mc, settings):
        reasons.append("temperature_out_of_range")
    battery_pct = right.get("battery_pct")
    if battery_pct is not None and not 0 <= battery_pct <= 100:
        reasons.append("battery_out_of_range")

    store_id = right.get("store_id")
    if reasons:
        return Verdict(tuple(reasons), store_id=store_id)
    return Verdict(
        (),
        right["sensor_id"],
        store_id,
        event_ms,
        temperature_mc,
        right.get("door_open"),
        None if battery_pct is None else battery_pct + 0.0,  # −0 is 0
        right.get("event_id"),
    )


def _has_its_type(name: str, value: Any) -> bool:
    if name in TEXT_FIELDS:
        return isinstance(value, str)
    if name in NUMBER_FIELDS:
        return isinstance(value, float)  # every JSON number is parsed as a float
    return isinstance(value, bool) if name == "door_open" else True


def thousandths(temperature: float) -> int | None:
    """The integer that every sum, difference and comparison uses: half to even, of the double product."""
    product = temperature * 1000
    return round(product) if math.isfinite(product) else None


def _in_range(temperature_mc: int | None, settings: Settings) -> bool:
    low, high = settings.lowest_temperature_c * 1000, settings.highest_temperature_c * 1000
    return temperature_mc is not None and low <= temperature_mc <= high


def event_time_ms(text: str) -> int | None:
    """Milliseconds since 1970 in UTC, cut and not rounded; None when it is no time, has no offset or lies before 2000."""
    match = EVENT_TS.fullmatch(text)
    if match is None:
        return None
    date, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    try:
        local = datetime.fromisoformat(f"{date}T{minute}:{second or '00'}+00:00")
        offset = timedelta(hours=int(offset_hours or 0), minutes=int(offset_minutes or 0))
        if int(offset_minutes or 0) > 59:
            return None
        zone = timezone(-offset if sign == "-" else offset)
    except ValueError:
        return None
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    utc_ms = (local - EPOCH) // timedelta(milliseconds=1) - zone.utcoffset(None) // timedelta(milliseconds=1) + milliseconds
    return utc_ms if utc_ms >= YEAR_2000_MS else None
