"""Wrong values for each field, as JSON text; None leaves the field out."""

from simulator.timestamps import HOUR, MINUTE, reading_time, to_datetime

MISSING: dict[str, tuple[str | None, ...]] = {
    "sensor_id": (None, "null", '""'),
    "store_id": (None, "null", '""'),
    "temperature": (None, "null"),
    "event_ts": (None, "null"),
}
TYPES: dict[str, tuple[str, ...]] = {
    "sensor_id": ("42", "true", '["sensor-0042"]', '{"id":42}'),
    "store_id": ("11", "false", '["store-011"]', "{}"),
    "temperature": ('"2.7"', "true", '"warm"', "[2.7]", "{}", '""'),
    "door_open": ('"false"', "0", "1", "[]", '""'),
    "battery_pct": ('"87"', "true", "[87]", '"full"'),
    "event_ts": ("1762615932", "1762615932123", "true", '["2025-11-08T15:32:12Z"]'),
    "event_id": ("17", "false", '["a"]'),
}
TEMPERATURES = ("579.27", "1e400", "-90.001", "60.001", "-1e400", "-273.15", "85000", "1e22")
BATTERIES = ("101", "-1", "100.5", "255", "-0.1", "1e400")


def bad_times(event_ms: int) -> tuple[str, ...]:
    """No time, no offset, not of this calendar, or before the year 2000."""
    good = reading_time(event_ms)
    moment = to_datetime(event_ms)
    texts = (
        "",
        "yesterday",
        good[:-1],
        good[:10],
        good[:10] + "Z",
        good.replace("T", " "),
        good + " ",
        good[:19] + "+1",
        f"{moment:%Y-02-30T%H:%M:%SZ}",
        f"{moment:%Y-13-%dT%H:%M:%SZ}",
        f"{moment:%Y-%m-%dT25:%M:%SZ}",
        f"{moment:%Y-%m-%dT%H:61:%SZ}",
        f"{moment:%a, %d %b %Y %H:%M:%S GMT}",
        f"{moment:%d.%m.%Y %H:%M}",
        str(event_ms),
        "1999-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
    )
    return tuple(f'"{text}"' for text in texts)


def too_early_or_future(arrived_ms: int) -> list[tuple[str | None, str]]:
    return [
        ('"1999-12-31T23:59:59.999Z"', "bad_event_ts"),
        (f'"{reading_time(arrived_ms)[:-1]}"', "bad_event_ts"),
        (f'"{reading_time(arrived_ms + 5 * MINUTE + 1)}"', "event_ts_in_future"),
        (f'"{reading_time(arrived_ms + 9 * HOUR)}"', "event_ts_in_future"),
    ]
