"""One history for all places and crashes: three stores that are late, doubled, contradicted, silent and wrong, in files whose order of reading
is not the order of their arrival. Small enough for a pass of seconds; what must come of it says the oracle."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.oracle.histories import BAD_LINES, MINUTE, SECOND, START_MS, History, Line, iso

AS_OF_MS = START_MS + 90 * MINUTE
SENSORS = {"a1": "store-a", "a2": "store-a", "b1": "store-b", "b2": "store-b", "c1": "store-c"}


def history() -> History:
    lines = [Line(_text(sensor, at), _arrival(sensor, at)) for sensor in SENSORS for at in _times(sensor)]
    again = [line for number, line in enumerate(lines) if number % 17 == 0]
    lines += [replace(line, arrived_ms=line.arrived_ms + 5 * MINUTE) for line in again]  # sent twice
    lines += [Line(_contradicted(line), line.arrived_ms - 10 * MINUTE) for line in again[::2]]  # arrived first, and wins
    lines += [Line(_contradicted(line), line.arrived_ms + 20 * MINUTE) for line in again[1::2]]
    lines += [Line(text, START_MS + number * 10 * MINUTE) for number, text in enumerate(BAD_LINES)]
    return History(
        tuple(lines),
        AS_OF_MS,
        sensors=tuple(_known(sensor) for sensor in ("a1", "b1", "c1", "z9")),
        limits=({"store_id": "store-a", "valid_from": None, "valid_to": None, "low_c": -1.0, "high_c": 5.0},),
        suppressions=(
            {"store_id": "store-b", "sensor_id": None, "rule": None, "from": START_MS, "to": AS_OF_MS, "reason": "defrost"},
        ),
    )  # fmt: skip


def _times(sensor: str) -> list[int]:
    """A reading a minute; b2 pauses for a quarter of an hour, c1 falls silent."""
    minutes = [minute for minute in range(60) if not (sensor == "b2" and 20 <= minute < 35) and not (sensor == "c1" and minute >= 40)]
    return [START_MS + minute * MINUTE + 7 * SECOND for minute in minutes]


def _arrival(sensor: str, at: int) -> int:
    """Every ten minutes a file; store-b's gateway was cut off and sends all at the end."""
    return START_MS + 65 * MINUTE if SENSORS[sensor] == "store-b" else at - at % (10 * MINUTE) + 11 * MINUTE


def _text(sensor: str, at: int) -> bytes:
    minute = (at - START_MS) // MINUTE
    fields = {
        "sensor_id": sensor,
        "store_id": SENSORS[sensor],
        "temperature": 2.0 + (7.5 if 15 <= minute < 30 else 0.0) + minute % 3 * 0.25,
        "door_open": minute in range(12, 20),
        "battery_pct": 30 - minute / 4 if sensor == "a2" else 80,
        "event_ts": iso(at),
    }
    return json.dumps(fields).encode()


def _contradicted(line: Line) -> bytes:
    return json.dumps(json.loads(line.text) | {"temperature": -7.25}).encode()


def _known(sensor: str) -> dict[str, object]:
    nothing = dict.fromkeys(("active_from", "retired_at", "silent_after_s", "expected_every_s"))
    return {"sensor_id": sensor, "store_id": SENSORS.get(sensor, "store-a"), **nothing}
