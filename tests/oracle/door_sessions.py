"""door_sessions: a sensor's door-open readings, joined while the gap between them is at most 2 min.

Read as: a session ends with its last open reading (the gap after it is no part of it); readings counts the open ones only.
"""

from __future__ import annotations

from tests.oracle.clock import MINUTE
from tests.oracle.lines import Reading
from tests.oracle.measures import degrees
from tests.oracle.readings import Winners, by_sensor
from tests.oracle.reference import Reference

LONGEST_GAP = 2 * MINUTE


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows of every sensor, by sensor and start."""
    return [_row(session) for readings in by_sensor(winners).values() for session in sessions_of(readings)]


def sessions_of(readings: list[Reading]) -> list[list[Reading]]:
    """One sensor's open readings, session by session; closed ones between do not matter."""
    sessions: list[list[Reading]] = []
    for reading in readings:
        if reading.door_open is not True:
            continue
        # Exactly 2 min included.
        if sessions and reading.event_ms - sessions[-1][-1].event_ms <= LONGEST_GAP:
            sessions[-1].append(reading)
        else:
            sessions.append([reading])
    return sessions


def _row(session: list[Reading]) -> dict:
    first, last = session[0], session[-1]
    peak = max(reading.temperature for reading in session)
    return {
        "sensor_id": first.sensor_id,
        "store_id": first.store_id,
        "started_at": first.event_ms,
        "ended_at": last.event_ms,
        "readings": len(session),
        "peak_c": degrees(peak),
        "rise_c": degrees(peak - first.temperature),
    }
