"""The contract's P2 and P6 once more, from its text alone, with nothing but the standard library."""

import calendar
import json
import math
import re
from typing import Any

TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)", re.ASCII)
TYPES: dict[str, Any] = {"sensor_id": str, "store_id": str, "event_ts": str, "event_id": str, "door_open": bool}
REQUIRED = ("sensor_id", "store_id", "temperature", "event_ts")


def reasons_and_reading(line: bytes, arrived_ms: int) -> tuple[list[str], dict[str, Any] | None]:
    if len(line) > 65536:
        return ["line_too_long"], None
    try:
        text = line.decode("utf-8", errors="strict")
    except UnicodeDecodeError:
        return ["invalid_utf8"], None
    try:
        said = json.loads(text, parse_constant=_refuse)
        json.dumps(said, ensure_ascii=False).encode("utf-8")
    except (ValueError, UnicodeEncodeError):
        return ["malformed_json"], None
    if not isinstance(said, dict):
        return ["not_an_object"], None
    reasons = sorted(reason for field in (*TYPES, "temperature", "battery_pct") if (reason := _reason(field, said.get(field), arrived_ms)))
    return reasons, None if reasons else said


def event_ms(text: str) -> int | None:
    matched = TIME.fullmatch(text)
    if not matched:
        return None
    year, month, day, hour, minute = (int(part) for part in matched.groups()[:5])
    second, fraction, offset = int(matched[6] or 0), (matched[7] or "0")[:3].ljust(3, "0"), matched[8]
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(max(year, 1), month)[1] and hour < 24 and minute < 60 and second < 60):
        return None
    digits = offset[1:].replace(":", "").ljust(4, "0") if offset != "Z" else "0000"
    east = (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if offset[0] == "-" else 1)
    return (calendar.timegm((year, month, day, hour, minute, second)) - east * 60) * 1000 + int(fraction)


def thousandths(temperature: float) -> int:
    return round(float(temperature) * 1000)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _reason(field: str, value: Any, arrived_ms: int) -> str | None:
    if value is None or (field in ("sensor_id", "store_id") and value == ""):
        return f"missing_{field}" if field in REQUIRED else None
    if field in ("temperature", "battery_pct"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"wrong_type_{field}"
        low, high, reason = (-90, 60, "temperature_out_of_range") if field == "temperature" else (0, 100, "battery_out_of_range")
        return None if math.isfinite(value) and low <= value <= high else reason
    if not isinstance(value, TYPES[field]):
        return f"wrong_type_{field}"
    if field == "event_ts":
        ms = event_ms(value)
        if ms is None or ms < calendar.timegm((2000, 1, 1, 0, 0, 0)) * 1000:
            return "bad_event_ts"
        return "event_ts_in_future" if ms > arrived_ms + 300_000 else None
    return None
