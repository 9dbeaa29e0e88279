"""store_minutes: what a store reported in one minute of event time; a silent minute is a row too.

Read as:
- a minute with readings always has a row; the 24 h bound only the silent ones;
- an unknown sensor is expected from the minute of its first reading there on ("active: at any moment of the minute");
- an expected sensor reported when a reading of it names this store in this minute;
- door_open_share is null when no reading says, so in a silent minute too.
"""

from __future__ import annotations

from tests.oracle.clock import HOUR, MINUTE, frontier, is_final, is_late, window_start
from tests.oracle.lines import Reading
from tests.oracle.measures import measures
from tests.oracle.readings import Winners, by_store
from tests.oracle.reference import Reference, expected_sensors, first_reports

WRITTEN_DOWN_FOR = 24 * HOUR


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows of every store, by store and minute."""
    first_there = first_reports(winners.values())
    rows = []
    for store_id, readings in by_store(winners).items():
        reached = frontier(readings, as_of)
        per_minute: dict[int, list[Reading]] = {}
        for reading in readings:
            per_minute.setdefault(window_start(reading.event_ms, MINUTE), []).append(reading)
        for start in sorted(per_minute.keys() | _silent_minutes(readings, reached)):
            in_minute = per_minute.get(start, [])
            expected = expected_sensors(store_id, start, start + MINUTE, reference, first_there)
            rows.append(_row(store_id, start, in_minute, expected, reached))
    return rows


def _silent_minutes(readings: list[Reading], reached: int) -> set[int]:
    """The final minutes that start less than 24 h after the last reading before them, and said nothing."""
    said = {window_start(reading.event_ms, MINUTE) for reading in readings}
    silent: set[int] = set()
    for last in readings:
        start = window_start(last.event_ms, MINUTE) + MINUTE
        while start not in said and is_final(start + MINUTE, reached) and start - last.event_ms < WRITTEN_DOWN_FOR:
            silent.add(start)
            start += MINUTE
    return silent


def _row(store_id: str, start: int, readings: list[Reading], expected: set[str], reached: int) -> dict:
    reporting = {reading.sensor_id for reading in readings}
    return {
        "store_id": store_id,
        "window_start": start,
        "window_end": start + MINUTE,
        **measures(readings),
        "sensors_reporting": len(reporting),
        "sensors_expected": len(expected),
        "completeness": len(expected & reporting) / len(expected) if expected else None,
        "late_rows": sum(is_late(reading) for reading in readings),
        "is_final": is_final(start + MINUTE, reached),
    }
